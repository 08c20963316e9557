"""The closest name in a folder to that of a file which is not there."""

from __future__ import annotations

import os
from itertools import islice

from raconvert.files.places import is_remote

MOST_NAMES = 2000  # of a folder that are looked at
CLOSE = 0.7  # of the letters of both names are the same, in order


def did_you_mean_file(path: str, error: Exception | None = None) -> str:
    """Return ``; did you mean 'x'?`` for the closest file beside one that is not there, if any.

    Of a link that leads nowhere it is said where it leads. A name of the same letters with other
    numbers is another file, and not meant. Nothing is said of another `error` than that there is no
    file. Raises nothing.
    """
    if is_remote(path) or not (error is None or isinstance(error, FileNotFoundError)):
        return ""
    folder, name = os.path.split(path)
    try:
        if os.path.islink(path):
            return f"; it is a link to '{os.readlink(path)}'"
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, MOST_NAMES)]
    except (OSError, ValueError):
        return ""
    close = [(_likeness(name, other), other) for other in sorted(names) if other[0] != "."]
    likeness, best = max(close, default=(0.0, ""))
    return f"; did you mean '{os.path.join(folder, best)}'?" if likeness >= CLOSE else ""


def _likeness(name: str, other: str) -> float:
    """How alike two names are, from 0 to 1; their suffixes count half as much."""
    from difflib import SequenceMatcher

    (stem, ending), (stem2, ending2) = map(os.path.splitext, (name.lower(), other.lower()))
    if abs(len(stem) - len(stem2)) > 3 or _numbers(stem) != _numbers(stem2):
        return 0.0
    stems = SequenceMatcher(None, stem, stem2)
    if stem != stem2 and stems.quick_ratio() < CLOSE - 0.1:
        return 0.0
    endings = SequenceMatcher(None, ending, ending2).ratio()
    return (2 * stems.ratio() + endings) / 3


def _numbers(text: str) -> list[int]:
    import re

    return [int(word) for word in re.findall("[0-9]{1,18}", text)]
