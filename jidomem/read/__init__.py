"""What is asked: named queries and the reader."""
