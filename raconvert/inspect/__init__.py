"""What is in a file: `info`, `diff`, `verify`, `digest`."""
