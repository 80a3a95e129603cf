"""The curator's pages. They import the server. Start with `pages`."""
