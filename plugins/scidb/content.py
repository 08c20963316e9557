"""What is SciDB's, but no binary load file: named by its first bytes."""

from __future__ import annotations

import re

# SciDB text: an optional place {0,4}, brackets, then a cell (1,'x'), an empty one (), or {1}(2).
_PLACE = rb"\{ *-?[0-9]+(?: *, *-?[0-9]+)* *\}"
_TEXT = re.compile(rb"\s*(?:" + _PLACE + rb"\s*)?(?:\[\s*)+(?:" + _PLACE + rb"\s*)?\(")
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"
_HEAD = 256

OPAQUE = bytes.fromhex("0ec05a00")  # OPAQUE_MAGIC of 19.11
OPAQUE_OLD = bytes.fromhex("acec0a00")


def name_of(head: bytes) -> str | None:
    """What these first bytes of a file are, if they are known."""
    if head.startswith(OPAQUE):
        return "an opaque SciDB dump"
    if head.startswith(OPAQUE_OLD):
        return "an opaque SciDB dump of an old version"
    start = head[:_HEAD]
    is_text = not start.translate(None, _PRINTABLE + bytes(range(128, 256)))
    return "SciDB text" if is_text and _TEXT.match(start) else None
