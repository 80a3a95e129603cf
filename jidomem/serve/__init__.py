"""The doors for programs: the HTTP server, and the child that answers ad hoc SPARQL."""
