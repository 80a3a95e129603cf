"""Embedders and language models behind their contracts: offline, and over an endpoint."""
