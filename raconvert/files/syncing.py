"""Waiting until files, and folders of them, are on the disk."""

from __future__ import annotations

import os
import sys

from raconvert.files.folders import walk
from raconvert.files.places import sync_folder


def sync_file(path: str) -> None:
    """Wait until the bytes of a closed file are on the disk."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SYNC_EACH = 16  # files: from so many on, one wait for the whole file system is shorter


def sync_tree(folder: str) -> None:
    """Wait until all files in a folder, and the folders in it, are on the disk."""
    found = [(place, names) for place, _, names in walk(folder)]
    if sum(len(names) for _, names in found) > SYNC_EACH and _sync_file_system(folder):
        return
    for place, names in found:
        for name in names:
            sync_file(os.path.join(place, name))
        sync_folder(os.path.join(place, "."))


def sync_files_below(folder: str, names: list[str]) -> None:
    """Wait until these files below a folder, and the folders that they are in, are on the disk."""
    if len(names) > SYNC_EACH and _sync_file_system(folder):
        return
    places = [os.path.join(folder, name) for name in names]
    for place in places:
        if os.path.isdir(place):
            sync_tree(place)
        else:
            sync_file(place)
    for parent in {os.path.dirname(place) for place in places}:
        sync_folder(os.path.join(parent, "."))


def _sync_file_system(path: str) -> bool:
    """Wait for all that is to be written to a file system; False where no system call does it."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (ImportError, OSError, AttributeError):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)
    return True
