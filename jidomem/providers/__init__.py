"""Who performs what a directive asks for."""
