"""The models: embedders and language models, local and of an endpoint. Start with `embeddings`."""
