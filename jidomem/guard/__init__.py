"""Memory at the moment of an edit: what governs a file, once a session, and the checks that stop an edit."""
