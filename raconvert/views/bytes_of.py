"""Where the bytes of a file are: its header, its arrays, what lies between and behind them."""

from __future__ import annotations

from raconvert.views.drawings import BETWEEN, CODED, DATA, END, HEADER, Stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.bundle import Bundle

_MOST = 40  # stretches that are told one by one


def stretches_of(bundle: Bundle, size: int) -> list[Stretch]:
    """The stretches of a file of `size` bytes, in order; all of it is in one of them."""
    known, coded = [], 0
    for array in bundle.arrays:
        extent = array.extent
        if extent is not None and extent.path == bundle.path and extent.nbytes:
            known.append(
                Stretch(
                    extent.offset,
                    extent.nbytes,
                    DATA,
                    array.name if len(bundle.arrays) > 1 else "elements",
                )
            )
        elif extent is None and array.problem is None:
            stored = array.storage.get("stored_bytes")
            coded += stored if isinstance(stored, int) else 0
    known.sort()
    found: list[Stretch] = []
    at = 0
    for one in known:
        if one.start > at:
            rest = ("header", HEADER) if not at else ("between them", BETWEEN)
            found.append(Stretch(at, one.start - at, rest[1], rest[0]))
        if one.start < at:  # several arrays of the same bytes
            continue
        found.append(one)
        at = one.start + one.nbytes
    if at < size:
        rest = ("behind the elements", END) if at else ("the whole file, encoded", CODED)
        if coded and at:
            rest = (f"the rest, encoded elements of {coded:,} bytes among it", CODED)
        elif coded:
            rest = (f"the whole file, encoded elements of {coded:,} bytes among it", CODED)
        found.append(Stretch(at, size - at, rest[1], rest[0]))
    return _fewer(found)


def _fewer(found: list[Stretch]) -> list[Stretch]:
    """Of many stretches the largest, and those between them as one each."""
    if len(found) <= _MOST:
        return found
    least = sorted((one.nbytes for one in found), reverse=True)[_MOST // 2 - 1]
    kept: list[Stretch] = []
    several = 0
    for one in found:
        if one.nbytes >= least and len(kept) < _MOST:
            kept.append(one)
            several = 0
        elif several:
            several += 1
            last = kept[-1]
            end = one.start + one.nbytes
            name = f"{several} smaller parts"
            kept[-1] = Stretch(last.start, end - last.start, BETWEEN, name)
        else:
            kept.append(one)
            several = 1
    return kept
