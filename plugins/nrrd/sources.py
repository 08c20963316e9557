"""The decoder of the parts of NRRD data, by their encoding."""

from __future__ import annotations

from raconvert.arrays.numbers_in_text import numbers
from raconvert.arrays.sources import inflated
from raconvert.files.inflate import Part

from . import codecs
from .tables import COMPRESSED, HEX, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy as np


def decoder(
    encoding: str, dtype: np.dtype[Any], notes: list[str]
) -> Callable[[Any, Part], Iterator[Any]]:
    """Return the function that yields the bytes of a part from its open file."""

    def decode(file: Any, part: Part) -> Iterator[Any]:
        if encoding in COMPRESSED:
            return inflated(file, part, encoding, notes)
        if encoding == TEXT:
            return numbers(file, part.nbytes, dtype, notes, part.source.limits, commas=True)
        read = codecs.hexadecimal if encoding == HEX else codecs.zero_runs
        return codecs.bounded(read(file), part.nbytes, notes)

    return decode
