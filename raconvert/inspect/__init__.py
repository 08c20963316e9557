"""Inspection of files: `info`, `diff`, `verify`, `digest`."""
