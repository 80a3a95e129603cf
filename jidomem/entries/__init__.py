"""The recall and write contract: entries, requests, results, and the stores that keep them."""
