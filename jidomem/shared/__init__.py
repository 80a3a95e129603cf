"""One memory for many machines: where its commits lie beyond the files of one of them."""
