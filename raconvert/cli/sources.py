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

        several = "://" in word or os.path.isdir(word) or is_pattern(word)
        found += gather([word]).paths if several else [word]
    return found


def each(
    paths: Sequence[str],
    look: Callable[[str], Any],
    tell: Callable[[str, Any], int],
    console: Console,
) -> int:
    """Look at every file, tell what was found, and return the exit code.

    One that fails does not stop the rest. The code of a single kind of failure stays, several kinds
    are 1. What `look` returns is made of values of JSON (`raconvert.conversion.isolated`).
    """
    from raconvert.conversion.read import is_native

    if len(paths) == 1 and not is_native(paths[0]):
        return tell(paths[0], look(paths[0]))
    from raconvert.conversion.isolated import Jobs, outcomes

    codes = set()
    found = outcomes(paths, Jobs(lambda number: look(paths[number])), fewest=1)
    for path, facts in zip(paths, found, strict=True):
        if isinstance(facts, RaconvertError) and len(paths) > 1:
            codes.add(console.error(facts))
        elif isinstance(facts, Exception):
            raise facts
        else:
            codes.add(tell(path, facts))
    codes.discard(0)
    return codes.pop() if len(codes) == 1 else int(bool(codes))
