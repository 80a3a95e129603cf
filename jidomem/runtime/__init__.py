"""What opens and configures everything."""
