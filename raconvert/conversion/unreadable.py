"""Arrays that cannot be read beside others that can: named, refused, or left out on request.

A reader puts such an array into the bundle, with the reason in `Array.problem`
(`Array.unreadable` if not even its type is known). The others can be read by name; a conversion
of the whole is refused, unless ``--allow arrays`` leaves them out, each named in the report. Damage
that only shows while elements are read, as of a chunk, is found by reading every array once more
after the conversion has failed.
"""

from __future__ import annotations

from raconvert.conversion.read import open_spec
from raconvert.errors import (
    UNREADABLE,
    Corrupt,
    RaconvertError,
    ReadFailed,
    UnknownFormat,
    Unsafe,
    Unsupported,
    WouldLose,
    counted,
    quoted,
)
from raconvert.plugin import refused
from raconvert.workers.interrupts import raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.conversion.inputs import Gathered
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Report
    from raconvert.plugin import Fit


FLAG = "--allow arrays"
LISTED = 20  # arrays that one message names


def why(problem: RaconvertError, path: str | None = None) -> str:
    """Return a problem in one line; its path is left out if it is `path`, or that is None."""
    text = problem.what.removeprefix("cannot be read: ")
    if problem.path is not None and path is not None and problem.path != path:
        text = f"'{problem.path}': {text}"
    if problem.expected is not None:
        text += f"; expected {problem.expected}"
    if problem.got is not None:
        text += f"{',' if problem.expected is not None else ';'} got {problem.got}"
    return " ".join(text.split())


def without(bundle: Bundle, settings: Settings) -> tuple[Bundle, list[Fit]]:
    """Return the bundle without the arrays that cannot be read, and the losses by that.

    Raises the problem of the first one if no array can be read, and `WouldLose` if the loss is not
    allowed.
    """
    for array in bundle.arrays:
        array.settle()
    broken = [(array, array.problem) for array in bundle.arrays if array.problem is not None]
    if not broken:
        return bundle, []
    readable = [array for array in bundle.arrays if array.problem is None]
    if not readable:
        raise broken[0][1]
    fits = [_fit(array, problem, bundle.path) for array, problem in broken]
    if not settings.allows("arrays"):
        raise _refusal(bundle, fits)
    rest = bundle.like(readable)
    left_out = {array.name for array, _ in broken}
    rest.aliases = {a: real for a, real in bundle.aliases.items() if real not in left_out}
    return rest, fits


def find(arrays: list[Array], max_memory: int) -> bool:
    """Read every array to its end and set the `problem` of those that fail; True if any has one."""
    from raconvert.arrays.blocks import block_bytes, blocks

    for array in arrays:
        try:
            for _ in blocks(array, block_bytes(max_memory)):
                pass
        except UNREADABLE as error:
            raise_interruption(error)
            array.problem = error
    return any(array.problem is not None for array in arrays)


def _fit(array: Array, problem: RaconvertError, path: str) -> Fit:
    """Return the loss of an array that cannot be read."""
    reason = f"cannot be read and is left out: {why(problem, path)}"
    return refused(array.name, "elements", reason, FLAG)


def _refusal(bundle: Bundle, fits: list[Fit]) -> WouldLose:
    """Return the error that lists the arrays that cannot be read, and the remedies."""
    count = len(bundle.arrays)
    texts = [f"array '{fit.array}': {fit.reason}".replace(" and is left out", "") for fit in fits]
    lines = [quoted(text) for text in texts]
    rest = [f"and {len(lines) - LISTED} more"] * (len(lines) > LISTED)
    return WouldLose(
        f"{len(fits)} of its {counted(count, 'array')} cannot be read",
        path=bundle.path or None,
        remedy="\n  ".join(
            [
                *lines[:LISTED],
                *rest,
                f"`{FLAG}` leaves them out; the others can also be chosen by name, with FILE#NAME "
                "or `--array`",
                "nothing was written",
            ]
        ),
    )


# Sources that cannot be read, left out of a stack (``--skip-bad``) --------------------------------


BAD = (Corrupt, ReadFailed, UnknownFormat, Unsafe, Unsupported)


def without_bad(gathered: Gathered, settings: Settings, report: Report) -> Gathered:
    """Return the sources of which every element can be read; the report names the others.

    Each is decoded to its last element, since the header of a stack has the number of items. Raises
    the error of the first if no source can be read, and at once any error that is not about a file.
    """
    good, problems = [], []
    for path in gathered.paths:
        try:
            _read_through(path, settings)
        except BAD as error:
            raise_interruption(error)
            problems.append(error)
            report.left_out.append((path, reason_of(error)))
        else:
            good.append(path)
    if problems and not good:
        raise problems[0]
    return gathered._replace(paths=good, odd=None) if problems else gathered


def name_way_out(error: RaconvertError, paths: list[str]) -> None:
    """Add the remedy ``--skip-bad`` to the error about one of many sources."""
    if isinstance(error, BAD) and error.path in paths:
        remedy = "`--skip-bad` leaves such files out"
        error.remedy = f"{error.remedy}\n{remedy}" if error.remedy else remedy


def reason_of(error: RaconvertError) -> str:
    """Return the reason why a file was left out, in one line without its path."""
    where = f", at {error.where}" if error.where else ""
    return f"{error.what}{where}"


def _read_through(path: str, settings: Settings) -> None:
    """Read every element of a file. Raises what reading raises."""
    from raconvert.arrays.blocks import blocks

    with open_spec(path, settings) as opened:
        for array in opened.bundle.arrays:
            for _ in blocks(array):
                pass
