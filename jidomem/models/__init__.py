"""The models: embedders and language models, local or at an endpoint.

They import the records. Start with `embeddings`.
"""
