"""The curation: review of proposals, redaction, proposed terms. Start with `review_queue`."""
