"""Reading a MAT file of any version."""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.plugin import Bundle, Source

from . import level4
from .tables import HDF5_MAGIC, HDF5_OFFSET, MARKS_5, MARKS_73


def level_of(source: Source) -> str | None:
    """The level of a MAT file: ``5``, ``7.3`` or ``4``; None for other files."""
    head = source.head
    mark = head[124:128]
    if mark in MARKS_5:
        return "5"
    if mark in MARKS_73:
        return "7.3" if head[HDF5_OFFSET:].startswith(HDF5_MAGIC) else None
    if level4.order_of(head) and source.path.lower().endswith(".mat") and level4.is_chain(source):
        return "4"
    return None


def read(
    source: Source, *, char: str = "strings", sparse: str = "dense", times: str = "exact"
) -> Bundle:
    """Read all variables that are arrays, and those inside structs and cells, lazily.

    Shapes are MATLAB's, index order F. Raises `Corrupt` for a damaged file, `Unsupported` if it
    holds no array that can be read.
    """
    from .tree import Tree

    level = level_of(source)
    if level is None and level4.order_of(source.head) is None:
        raise Corrupt("is not a MAT file", path=source.path, where="byte 124",
                      expected="the mark of v5 or v7.3", got=source.head[124:128])  # fmt: skip
    tree = Tree(source, char=char, sparse=sparse, times=times)
    closers = []
    if level == "7.3":
        from . import level73

        facts, close = level73.read(tree)
        closers.append(close)
    elif level == "5":
        from . import level5

        facts = level5.read(tree)
    else:
        facts = level4.read(tree)
    try:
        own = facts | tree.finish()
    except BaseException:
        for close in closers:
            close()
        raise
    return Bundle(
        tree.arrays, groups=tree.groups, formats={"mat": own}, notes=tree.notes, closers=closers
    )
