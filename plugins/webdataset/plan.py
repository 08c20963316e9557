"""Plan of shards: which members the arrays become, by which names, and what is lost."""

from __future__ import annotations

import re
from collections import Counter

from raconvert.arrays.summary import facts_of_axes
from raconvert.files.limits import DEFAULT
from raconvert.files.names import is_inside
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    equivalent,
    facts_of,
    fields_of_axes,
    file_fits,
    refused,
    stack_fits,
)

from ..npy.plan import array_fits
from .tables import (
    ARRAY,
    KINDS,
    MOST_SHARDS,
    NUMBER,
    OTHER,
    TEXT,
    TITLE,
    WRITTEN,
    counted_keys,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["array_name", "kind_of", "plan"]

LONGEST_NAME = 1000  # bytes of a key, or of an extension
_SAMPLES = "--out-opt samples=N"


def plan(bundle: Bundle, *, samples: int = 0, text: str = "txt") -> Plan:
    """Plan a member of each array for each index along the first axis, in shards of `samples`."""
    arrays = bundle.arrays
    fits = _shape_fits(arrays, samples)
    kinds = [_kind(array, text) for array in arrays]
    keys: list[str] = []
    source: tuple[str, ...] | None = None
    if not fits:
        source = next(filter(None, map(_usable_labels, arrays)), None)
        keys = [*source] if source else counted_keys(arrays[0].shape[0])
    fits += _name_fits(arrays)
    for array, kind in zip(arrays, kinds, strict=True):
        fits += _array_fits(array, kind, source)
    count = len(keys)
    step = samples or count

    def write(target: Target) -> None:
        from .writer import write_shards

        extensions = [extension_of(a.name, kind) for a, kind in zip(arrays, kinds, strict=True)]
        write_shards(target, arrays, kinds, extensions, keys, samples)

    return Plan(
        [*fits, *file_fits(bundle, TITLE)],
        write,
        names=bundle.names,
        in_opts={"shards": -(-count // step)} if count > step else None,
    )


def _kind(array: Array, text: str) -> str:
    """Return the kind of the members of an array: NUMBER or TEXT if those hold it, else ARRAY."""
    kind, nbytes, _, descr = array.element
    if array.ndim == 1 and kind == "int" and nbytes == 8:
        return NUMBER
    is_text = array.ndim == 1 and str(descr).startswith("|S") and array.described
    return TEXT if is_text and text == "txt" and array.meta.encoding == "utf-8" else ARRAY


def _shape_fits(arrays: Sequence[Array], samples: int) -> list[Fit]:
    """List what keeps arrays from having samples along their first axis."""
    if flat := [array for array in arrays if not array.ndim]:
        reason = "has no axis, along which there would be samples; NPZ holds it"
        return [refused(array.name, "shape", reason) for array in flat]
    first = arrays[0]
    count = first.shape[0]
    reason = f"samples, where '{first.name}' has {count}; choose arrays of one length by name"
    fits = [
        refused(array.name, "shape", f"{array.shape[0]} {reason}")
        for array in arrays
        if array.shape[0] != count
    ]
    if not fits and not count:
        fits = [refused(first.name, "shape", "has no sample, so that no file would hold it")]
    return fits or _count_fits(first, count, len(arrays), samples)


def _count_fits(first: Array, count: int, arrays: int, samples: int) -> list[Fit]:
    """List whether there are too many members in a file, or too many files."""
    each = min(samples or count, count)
    if each * arrays > DEFAULT.archive_members:
        reason = f"{each * arrays} members in a file; at most {DEFAULT.archive_members} are read"
        return [refused(first.name, "shape", reason, _SAMPLES)]
    shards = -(-count // each)
    if shards > MOST_SHARDS or count * len(str(count)) > DEFAULT.path_characters:
        return [refused(first.name, "shape", f"{count} samples in {shards} files are too many")]
    return []


def _name_fits(arrays: Sequence[Array]) -> list[Fit]:
    """List the names that no member can have, or that readers cannot tell apart."""
    fits: list[Fit] = []
    seen: dict[str, str] = {}
    often = Counter(array.name for array in arrays)
    for array in arrays:
        reason = _name_problem(array.name)
        other = seen.setdefault(array.name.lower(), array.name)
        if other != array.name:
            reason = reason or f"readers of WebDataset cannot tell it from '{other}'"
        if often[array.name] > 1:
            reason = reason or "the name is used twice"
        if reason:
            fits.append(refused(array.name[:80], "names", reason))
    return fits


def _name_problem(name: str) -> str:
    """Return the reason why no member can have a name; empty without one."""
    if not name:
        return "an empty name"
    try:
        nbytes = len(extension_of(name, ARRAY).encode())
    except UnicodeEncodeError:
        return "the name is not valid text"
    return f"the name is above {LONGEST_NAME} bytes" if nbytes > LONGEST_NAME else ""


def _array_fits(array: Array, kind: str, keys: tuple[str, ...] | None) -> list[Fit]:
    """List what is lost of one array."""
    fits = [fit for fit in array_fits(array) if fit.property != "metadata"]
    if kind == TEXT:
        reason = "texts become as wide as the longest of them (`--out-opt text=npy` keeps the type)"
        fits.append(equivalent(array.name, "type", reason))
    labels = _labels(array)
    if keys is not None and labels is None:
        reason = f"takes the keys of other arrays: {_of_samples(array)}"
        fits.append(equivalent(array.name, "metadata", reason))
    if array.described and array.meta:
        lost = _lost(array, kind, is_kept=keys is not None and labels == keys)
        if lost:
            fits.append(equivalent(array.name, "metadata", f"not kept: {', '.join(lost)}"))
    return [*fits, *stack_fits(array)]


def _lost(array: Array, kind: str, *, is_kept: bool) -> list[str]:
    """List the facts that are lost; `is_kept`: the labels of the samples are their keys."""
    by_axis: list[list[str]] = [fields_of_axes([axis], *axis.FIELDS) for axis in array.ra_axes]
    if by_axis and is_kept:
        by_axis[_samples_axis(array)].remove("labels")
    lost = facts_of_axes(array, by_axis) if any(by_axis) else []
    not_lost = ("axes", "items", *(["encoding"] if kind == TEXT else []))
    return lost + facts_of(array, *not_lost)


def _of_samples(array: Array) -> str:
    """Return the words of a report for the labels of the samples, such as "axis 0 (labels)"."""
    axes = array.ra_axes if array.described else ()
    if not axes:
        return "axis 0 (labels)"
    by_axis: list[list[str]] = [[] for _ in axes]
    by_axis[_samples_axis(array)] = ["labels"]
    return ", ".join(facts_of_axes(array, by_axis))


def _samples_axis(array: Array) -> int:
    """Return the number of the axis of the samples, the fastest axis being 0."""
    return 0 if array.index_order == "F" else array.ndim - 1


# Keys ---------------------------------------------------------------------------------------------


def _labels(array: Array) -> tuple[Any, ...] | None:
    """Return the labels of the samples of an array, or None."""
    return array.axes[0].labels if array.described and array.ndim else None


def _usable_labels(array: Array) -> tuple[str, ...] | None:
    """Return the labels of the samples, if they can be keys, and are read as labels again."""
    labels = _labels(array)
    if not labels or len(labels) > DEFAULT.table_labels or len(set(labels)) < len(labels):
        return None
    if not all(map(_is_key, labels)) or sum(map(len, labels)) > DEFAULT.path_characters:
        return None
    return None if [*labels] == counted_keys(len(labels)) else labels


def _is_key(label: object) -> bool:
    """True for a label that is read again as the key of a sample."""
    if not isinstance(label, str) or not is_inside(label) or "." in label.rpartition("/")[2]:
        return False
    try:
        nbytes = len(label.encode())
    except UnicodeEncodeError:
        return False
    return nbytes <= LONGEST_NAME and label.isprintable() and not label.startswith("__")


# Names of arrays and extensions -------------------------------------------------------------------


_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f/\\%]")
_ESCAPED = re.compile(r"(?:%[0-9A-F]{2})+")


def kind_of(extension: str) -> str:
    """Return the kind of the members with an extension. Raises nothing."""
    return KINDS.get(extension.rpartition(".")[2].lower(), OTHER)


def array_name(extension: str) -> str:
    """Return the name of the array of an extension: without what the writer adds, and unescaped."""
    name, dot, last = extension.rpartition(".")
    text = name if dot and name and last.lower() in WRITTEN.values() else extension
    name = _ESCAPED.sub(_unescaped, text)
    return name if escaped(name) == text else text


def _unescaped(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("%", "")).decode("utf-8", "replace")


def escaped(name: str) -> str:
    """Return a name as part of an extension: percent-escaped what a member or path cannot have."""
    return _ODD.sub(lambda match: "".join(f"%{b:02X}" for b in match.group().encode()), name)


def extension_of(name: str, kind: str) -> str:
    """Return the extension of the members of an array, from which `array_name` makes its name.

    >>> extension_of("image", "array"), extension_of("index", "number"), extension_of("x", "text")
    ('image.npy', 'index', 'x.txt')
    """
    own, added = escaped(name), WRITTEN[kind]
    tells_kind = kind_of(own) == kind and (kind != ARRAY or own.lower().endswith("npy"))
    return own if tells_kind and array_name(own) == name else f"{own}.{added}"
