"""What the inspecting verbs share: how sources are named and read, and codes of many files."""

from __future__ import annotations

import os

from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.cli.console import Console


def reading(args: Any) -> dict[str, Any]:
    """Return the options that say how sources are read, as `open_bundle` takes them."""
    return {
        "from_": args.from_,
        "arrays": args.arrays,
        "in_opts": dict(args.in_opts or ()),
        "meta": args.meta,
        "index_order": args.index_order,
        "trust": args.trust or (),
        "max_memory": args.max_memory,
    }


def expand(words: Sequence[str]) -> list[str]:
    """Return the files that words mean: files as they are, the content of folders and globs."""
    found: list[str] = []
    for word in words:
        if os.path.isfile(word):
            found.append(word)
            continue
        from raconvert.conversion.inputs import gather, is_pattern

        several = os.path.isdir(word) or is_pattern(word)
        found += gather([word]).paths if several else [word]
    return found


def each(paths: Sequence[str], show: Callable[[str], int], console: Console) -> int:
    """Call `show` for every file and return the exit code; one that fails does not stop the rest.

    The code of a single kind of failure stays, several kinds are 1.
    """
    if len(paths) == 1:
        return show(paths[0])
    codes = set()
    for path in paths:
        try:
            codes.add(show(path))
        except RaconvertError as error:
            codes.add(console.error(error))
    codes.discard(0)
    return codes.pop() if len(codes) == 1 else int(bool(codes))
