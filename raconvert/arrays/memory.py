"""Limits of NumPy and of memory, checked before anything is allocated."""

from __future__ import annotations

import os
from functools import cache

from raconvert.errors import TooLarge, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAX_RANK = 64  # axes: numpy's own limit since 2.0
CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"  # of a container, on Linux


def too_many_axes(name: str, ndim: int, path: str | None = None) -> Unsupported:
    """Return the error for an array of more than `MAX_RANK` axes; its file can still be copied."""
    return Unsupported(
        f"array '{name}' has too many axes for numpy",
        path=path,
        expected=f"at most {MAX_RANK}",
        got=ndim,
    )


def check_memory(nbytes: int, max_memory: int, what: str, got: str | None = None) -> None:
    """Refuse (`TooLarge`) more than `max_memory` bytes at once, or than this machine has.

    `what` names the data, `got` its size in the file.
    """
    installed = machine_memory()
    if nbytes <= min(max_memory, installed):
        return
    remedy = f"allow it with `--max-memory {-(-nbytes // (1 << 20))}M`"
    if nbytes > installed:
        remedy = "read a part of it (raconvert.open), or convert it, which needs little memory"
    expected = f"at most {max_memory} (`--max-memory`)"
    if installed < max_memory:
        expected = f"at most {installed}, the memory of this machine"
    raise TooLarge(
        f"{what} needs {nbytes} bytes",
        expected=expected,
        got=got,
        remedy=remedy,
    )


def stored_bytes(storage: dict[str, Any]) -> str | None:
    """Return the stored size of an array as a phrase for messages; None if unknown."""
    stored = storage.get("stored_bytes")
    return None if stored is None else f"{stored} bytes stored in the file"


def out_of_memory(name: str, nbytes: int, storage: dict[str, Any]) -> TooLarge:
    """Return the error for an array for which the system has no memory."""
    return TooLarge(
        f"array '{name}' needs {nbytes} bytes, more than the system gives",
        got=stored_bytes(storage),
        remedy="read a part of it (raconvert.open), or convert it, which needs little memory",
    )


@cache
def machine_memory() -> int:
    """Return the bytes of memory that this machine or container has; 2^62 if unknown."""
    limits = [1 << 62]
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        with open(CGROUP_LIMIT, encoding="ascii") as file:
            limits.append(int(file.read(32)))
    except (AttributeError, OSError, ValueError):  # Windows; no container, or one without a limit
        pass
    return min(number for number in limits if number > 0)
