"""Bytes on disk: sources, atomic targets, copies, files that a file names, archives."""

from __future__ import annotations

UNFINISHED = ".raconvert-unfinished.tmp"  # a folder of notes (`raconvert.files.unfinished`)
