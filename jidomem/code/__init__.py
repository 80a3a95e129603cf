"""The graph of a project's code: what its files define and depend on, read from them and kept in `codebase`."""
