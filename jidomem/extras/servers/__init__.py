"""The servers: roots in PostgreSQL and S3, and remote SPARQL stores.

They import the journal and the index. Start with `log`.
"""
