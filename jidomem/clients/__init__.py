"""The programs agents run in: what each reads, how that is changed without harm to the rest, and how its hooks talk."""
