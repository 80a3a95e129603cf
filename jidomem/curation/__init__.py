"""The curation: review of proposals, redaction, proposed terms.

It imports the check, the reader and the writer. Start with `review_queue`.
"""
