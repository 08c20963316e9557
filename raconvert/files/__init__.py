"""Bytes on disk: sources, atomic targets, copies, files that a file names, archives."""
