"""Plan of each array in a HAR file: header name, type, sets, texts; and the losses.

Decided from types, shapes, names and metadata alone, before any data is read.
"""

from __future__ import annotations

import re
from itertools import chain, product
from math import prod

from raconvert.plugin import Plan, file_fits, little, type_name

from .metadata import (
    FilePlan,
    HeaderPlan,
    hidden_headers,
    own_fields,
    plan_losses,
    plan_sets,
    plan_texts,
    was_name,
)
from .records import BIG, LAHEY, LITTLE
from .tables import (
    INTEGER,
    MAX_INT32,
    MAX_RANK,
    NAME_CHARS,
    NAMESPACE,
    REAL,
    REAL_BARE,
    REAL_MATRIX,
    STRINGS_BYTES,
    TEXT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.plugin import Array, Bundle, Source, Target

# Integers that float32 holds exactly.
_SMALL = {("bool", 1), ("int", 1), ("int", 2), ("uint", 1), ("uint", 2)}
_OTHERS = "npy, npz, h5 and ra hold it"
_USUAL_NAME = re.compile("[A-Za-z0-9]{1,4}")
_LETTERS = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0"


def plan(bundle: Bundle, *, storage: str = "auto", framing: str = "auto") -> Plan:
    """The headers that the arrays become, with the housekeeping headers that came with them.

    Writing raises `WouldLose` for a string that ends with a blank, unless the target allows
    ``elements``.
    """
    planned = _planned(bundle, storage, framing)

    def write(target: Target) -> None:
        from .writer import write_file

        write_file(planned, target)

    names = [header.name for header in planned.headers]
    fits = [*planned.fits, *file_fits(bundle, "HAR")]
    return Plan(fits, write, names=names, in_opts={"solution": "headers"})


def add(
    bundle: Bundle,
    source: Source,
    held: Bundle,
    *,
    overwrite: bool,
    storage: str = "auto",
    framing: str = "auto",
) -> Plan:
    """Plan to copy a file with the arrays as headers in it; see `Add`."""
    from .adding import check_names, extents_in, framing_in, write_added

    framing = framing_in(source, framing)
    extents = extents_in(source, framing)
    planned = _planned(bundle, storage, framing)
    check_names(planned, extents, source.path, overwrite=overwrite)
    return Plan(
        planned.fits,
        lambda target: write_added(planned, target, source, extents),
        names=[header.name for header in planned.headers],
        in_opts={"solution": "headers"},
    )


def _planned(bundle: Bundle, storage: str, framing: str) -> FilePlan:
    """The plan of a file with every array of a bundle as a header."""
    planned = FilePlan()
    space = bundle.formats.get(NAMESPACE)
    space = space if isinstance(space, dict) else {}
    planned.framing = space.get("framing", LITTLE) if framing == "auto" else framing
    if planned.framing not in (LITTLE, BIG, LAHEY):
        planned.framing = LITTLE
    planned.headers = [HeaderPlan(array) for array in bundle.arrays]
    for header in planned.headers:
        header.own = own_fields(header)
    shown = bundle.format == "har" and space.get("housekeeping") == "shown"
    _name_all(planned, shown=shown)
    for header in planned.headers:
        _plan_type(header)
        plan_texts(header)
        plan_sets(header)
        _plan_storage(header, storage)
        plan_losses(header)
        planned.fits += header.fits
    planned.hidden = hidden_headers(planned, space)
    return planned


# --- names ----------------------------------------------------------------------------------------


def _name_all(planned: FilePlan, *, shown: bool) -> None:
    """Give every header a distinct name: the name of its array, or one made from it."""
    exact: set[str] = set()
    taken: set[str] = set()  # in capitals: GEMPACK ignores case
    for header in planned.headers:
        name = header.array.name
        origin = bool(header.own)
        usable = _USUAL_NAME.fullmatch(name) or (origin and was_name(name))
        hidden = name[:2].upper() == "XX" and not shown
        if usable and not hidden and name not in exact and (origin or name.upper() not in taken):
            header.name = name
            exact.add(name)
            taken.add(name.upper())
    candidates: dict[str, Iterator[str]] = {}  # for each stem, the names not yet tried
    for header in planned.headers:
        if not header.name:
            stem = _stem(header.array.name)
            untried = candidates.setdefault(stem, _candidates(stem))
            header.name = next((name for name in untried if name not in taken), "")
            taken.add(header.name)
            if header.name:
                header.equivalent("names", f"becomes the header '{header.name}'")
            else:
                header.refused("names", "no name of four letters or digits is left")
        raw = header.own.get("name", "")
        header.raw = raw if raw.strip(" ") == header.name else header.name


def _stem(name: str) -> str:
    """The first letters and digits of a name's last part, in capitals."""
    last = name.rstrip("/").rpartition("/")[2][:1000]
    letters = "".join(c for c in last.upper() if c.isascii() and c.isalnum())[:NAME_CHARS]
    return f"A{letters}"[:NAME_CHARS] if not letters or letters.startswith("XX") else letters


def _candidates(stem: str) -> Iterator[str]:
    """Yield the stem, then names that resemble it less and less; none marks housekeeping."""
    numbered = (
        stem[: NAME_CHARS - digits] + "".join(letters)
        for digits in range(1, NAME_CHARS + 1)
        for letters in product(_LETTERS, repeat=digits)
    )
    return (name for name in chain([stem], numbered) if not name.startswith("XX"))


# --- types ----------------------------------------------------------------------------------------


def _plan_type(header: HeaderPlan) -> None:
    array = header.array
    kind, nbytes = array.element.kind, array.element.nbytes
    if kind == "user":
        _plan_strings(header)
    elif (kind, nbytes) == ("float", 4):
        header.type = _real_type(header)
    elif (kind, nbytes) == ("float", 2):
        header.equivalent("type", "float16 becomes float32")
    elif (kind, nbytes) == ("int", 4) or (kind, nbytes) in _SMALL:
        _plan_integers(header, small=(kind, nbytes) in _SMALL)
    else:
        _refuse_number(header)
    if array.ndim > MAX_RANK:
        header.refused("shape", f"{array.ndim} axes; HAR holds {MAX_RANK}; {_OTHERS}")
    elif max(array.dims, default=0) > MAX_INT32:
        header.refused("shape", f"an axis above {MAX_INT32}; {_OTHERS}")


def _real_type(header: HeaderPlan) -> str:
    """The type of a float32 array: the one of its source if that still holds it, else RE."""
    array, own = header.array, header.own.get("type")
    if _has_sets(array):
        return REAL
    if own == REAL_MATRIX and array.ndim == 2:
        return REAL_MATRIX
    bare = own == REAL_BARE and not (array.dims and array.dims[-1] == 1)
    return REAL_BARE if bare else REAL


def _has_sets(array: Array) -> bool:
    return any(axis.name or axis.labels is not None for axis in array.meta.axes)


def _plan_integers(header: HeaderPlan, *, small: bool) -> None:
    array = header.array
    name = type_name(little(array.element))
    if small and (array.ndim > 2 or _has_sets(array)):
        header.equivalent("type", f"{name} becomes float32, which holds all its values")
        return
    if array.ndim > 2:
        reason = f"{array.ndim} axes of int32; HAR holds integers as matrices only"
        header.refused("shape", reason, "--dtype float32")
        return
    header.type = INTEGER
    if small:
        header.equivalent("type", f"{name} becomes int32")
    if array.ndim < 2:
        header.dims = (*array.dims, 1, 1)[:2]
        shape = f"{header.dims[0]} x {header.dims[1]}"
        header.equivalent("shape", f"becomes a matrix of {shape}, the only form of integers")


def _refuse_number(header: HeaderPlan) -> None:
    array = header.array
    name = type_name(little(array.element))
    if array.element.kind == "complex":
        reason = f"HAR holds no {name}; {_OTHERS}, and float32 does if all imaginary parts are 0"
        header.refused("type", reason, "--dtype float32")
        return
    integers = array.element.kind in ("int", "uint") and array.ndim <= 2
    wanted = "int32" if integers else "float32"
    header.refused("type", f"HAR holds no {name}", f"--dtype {wanted}")


def _plan_strings(header: HeaderPlan) -> None:
    array = header.array
    header.type = TEXT
    letter = array.element.descr.lstrip("<>|")[:1] if isinstance(array.element.descr, str) else ""
    width = header.width
    if letter not in ("S", "U"):
        header.refused("type", f"HAR holds no {type_name(array.element)}; {_OTHERS}")
        return
    if letter == "U":
        reason = f"{type_name(array.element)} becomes Latin-1 bytes, padded with blanks"
        header.refused("type", reason, "--allow dtype")
    elif header.own.get("type") != TEXT:
        header.equivalent("type", "strings are padded with blanks")
    if width > STRINGS_BYTES:
        reason = f"strings of {width} characters; HAR holds {STRINGS_BYTES}; {_OTHERS}"
        header.refused("elements", reason)
    if array.ndim > 1:
        reason = f"{array.ndim} axes of strings; HAR holds lists of strings; {_OTHERS}"
        header.refused("shape", reason)
    elif array.ndim == 0:
        header.dims = (1,)
        header.equivalent("shape", "becomes a list of one string")


def _plan_storage(header: HeaderPlan, wanted: str) -> None:
    of_source = header.own.get("storage", "auto")
    header.storage = of_source if wanted == "auto" else wanted
    if header.type not in (REAL, REAL_BARE):
        header.storage = "full"
    elif prod(header.dims) > MAX_INT32:
        if header.storage == "sparse" and wanted == "sparse":
            reason = f"more than {MAX_INT32} values have no position in sparse storage"
            header.refused("storage", reason)
        header.storage = "full"
