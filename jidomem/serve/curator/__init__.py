"""The curator's pages: what a project has learnt, for people who would rather look than read RDF."""
