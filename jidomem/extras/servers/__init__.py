"""The roots beyond one machine: logs in PostgreSQL and S3, remote SPARQL stores.

Start with `log`.
"""
