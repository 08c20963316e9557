"""Sources that cannot be read, left out of what is made of many (``--skip-bad``)."""

from __future__ import annotations

from raconvert.conversion.read import open_spec
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    ReadFailed,
    UnknownFormat,
    Unsafe,
    Unsupported,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.conversion.inputs import Gathered
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Report

BAD = (Corrupt, ReadFailed, UnknownFormat, Unsafe, Unsupported)


def without_bad(gathered: Gathered, settings: Settings, report: Report) -> Gathered:
    """The sources of which every element can be read; the others are named in the report.

    Each is decoded to its last element, since the number of items stands in the header of a stack.
    Raises the error of the first where none is left, and at once what is not about the file.
    """
    good, problems = [], []
    for path in gathered.paths:
        try:
            _read_through(path, settings)
        except BAD as error:
            problems.append(error)
            report.left_out.append((path, reason_of(error)))
        else:
            good.append(path)
    if problems and not good:
        raise problems[0]
    return gathered._replace(paths=good, odd=None) if problems else gathered


def name_way_out(error: RaconvertError, paths: list[str]) -> None:
    """Add to the error of one of many sources that the others can do without it."""
    if isinstance(error, BAD) and error.path in paths:
        way = "`--skip-bad` leaves such files out"
        error.remedy = f"{error.remedy}\n{way}" if error.remedy else way


def reason_of(error: RaconvertError) -> str:
    """Why a file was left out, in one line without its path."""
    where = f", at {error.where}" if error.where else ""
    return f"{error.what}{where}"


def _read_through(path: str, settings: Settings) -> None:
    from raconvert.arrays.blocks import blocks

    with open_spec(path, settings) as opened:
        for array in opened.bundle.arrays:
            for _ in blocks(array):
                pass
