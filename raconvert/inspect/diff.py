"""Compare arrays by index, whatever file format and memory order they are stored in.

Shape, element type (with its description) and every element by logical index count; byte order and
memory order do not. Data is read in blocks, side by side, so that memory stays bounded. Metadata is
compared by structure, and values in it by type: 1, 1.0 and True are three values.
"""

from __future__ import annotations

from contextlib import ExitStack

from raconvert import registry
from raconvert.arrays.dtypes import NUMBERS, described, little, type_name
from raconvert.conversion.options import Inspecting, options_of
from raconvert.conversion.read import open_bundle
from raconvert.conversion.unreadable import find, why
from raconvert.declared import accepts
from raconvert.errors import UNREADABLE, UsageError, counted, listed
from raconvert.files.source import DEFAULT_MAX_MEMORY, path_of
from raconvert.inspect.described import (
    differences_about,
    item_differences,
    meta_differences,
    meta_of,
    without_traces,
)
from raconvert.inspect.elements import Rule, compare_data, letter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Unpack

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.declared import Readable
    from raconvert.inspect.where import Where


@accepts(options_of(Inspecting, arrays=None))
def diff(
    a: Readable,
    b: Readable,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    bitwise: bool = False,
    ignore_meta: bool = False,
    ignore_singletons: bool = False,
    **reading: Unpack[Inspecting],
) -> dict[str, Any]:
    """The differences of two files; ``same`` is True if nothing differs.

    NaN equals NaN at the same index. Two numbers differ if ``abs(x - y) > atol + rtol * max(abs(x),
    abs(y))``; `bitwise` compares bytes instead, so that -0.0 is not 0.0 and NaN payloads count.
    With `ignore_singletons` axes of length 1 do not count: (1, 3, 4) is (3, 4).
    Containers are compared by name, two single arrays whatever their names are. ``metadata`` has
    the differences of the attributes of the files, ``groups`` those of their groups and of empty
    groups that only one side has, ``aliases`` those of further names for arrays and groups;
    ``order`` is the first index at which the arrays of both come in another order, or None.
    The fields by which a format restores a whole file (`Bundle.formats`) are not compared, except
    for the forms of groups. `a`, `b` and the options of reading as in `raconvert.open`.

    >>> found = raconvert.diff("grid.ra", "grid.ra")
    >>> found["same"], found["arrays"][0]["data"]["differ"]
    (True, 0)

    Files whose arrays cannot be paired raise `UsageError`, and so do two single arrays whose
    elements cannot be compared (text with numbers); among several such arrays only differ in type.
    """
    max_memory = reading.get("max_memory", DEFAULT_MAX_MEMORY)
    rule = checked_rule(atol, rtol, bitwise, max_memory, singletons=not ignore_singletons)
    with ExitStack() as stack:
        paths = [path_of(side, stack) for side in (a, b)]
        left, right = (stack.enter_context(open_bundle(path, **reading)) for path in paths)
        differences = compare_bundles(left, right, rule, ignore_meta=ignore_meta)
        return {"a": paths[0], "b": paths[1], **differences}


def compare_bundles(
    left: Bundle,
    right: Bundle,
    rule: Rule,
    *,
    ignore_meta: bool = False,
    watch: Callable[[Array, Array], Where | None] = lambda _, __: None,
) -> dict[str, Any]:
    """The differences of two bundles, as `diff` returns them.

    `watch` is called for each pair of arrays; it may return where to count their differences.
    """
    pairs, only_a, only_b = pair_arrays(left, right)
    formats = left.format, right.format
    compared = [
        compare_arrays(
            x,
            y,
            rule,
            ignore_meta=ignore_meta,
            formats=formats,
            alone=len(pairs) == 1,
            where=watch(x, y),
        )
        for x, y in pairs
    ]
    about = {} if ignore_meta else differences_about(left, right)
    same = all(item["same"] for item in compared) and not (only_a or only_b)
    return {
        "same": same and not any(about.values()),
        "arrays": compared,
        "only_in_a": only_a,
        "only_in_b": only_b,
        "metadata": about.get("metadata", []),
        "groups": about.get("groups", []),
        "forms": about.get("forms", []),
        "aliases": about.get("aliases", []),
        "order": about.get("order"),
    }


def checked_rule(
    atol: float, rtol: float, bitwise: bool, max_memory: int, *, singletons: bool
) -> Rule:
    """The rule of a comparison. Raises `UsageError` for a negative tolerance, or one of bytes."""
    if bitwise and (atol or rtol):
        raise UsageError("a bitwise comparison has no tolerance")
    if not (atol >= 0 and rtol >= 0):
        raise UsageError("a tolerance is not negative", got=f"atol {atol}, rtol {rtol}")
    return Rule(atol, rtol, bitwise, max_memory, singletons=singletons)


def difference(differences: dict[str, Any]) -> str:
    """Summarise the result of `diff` in a few words; empty if there is no difference."""
    parts = []
    for array in differences["arrays"]:
        of_array = []
        if not array["same_type"]:
            of_array.append(f"type {array['type'][0]}, in b {array['type'][1]}")
        if not array["same_shape"]:
            shapes = [tuple(shape) for shape in array["shape"]]
            of_array.append(f"shape {shapes[0]}, in b {shapes[1]}")
        if array["data"] is not None and array["data"]["differ"]:
            data = array["data"]
            of_array.append(f"{data['differ']} of {data['count']} elements differ")
        if array["metadata"] or array["items"]:
            of_array.append("metadata differs")
        of_array += [f"cannot be read: {problem}" for problem in array["problems"] if problem]
        if of_array:
            name = f"{array['name']}: " if len(differences["arrays"]) > 1 else ""
            parts.append(f"{name}{', '.join(of_array)}")
    alone = {side: differences[f"only_in_{side}"] for side in ("a", "b")}
    parts += [f"only in {side}: {listed(names, 5)}" for side, names in alone.items() if names]
    return "; ".join(parts) or ("" if differences["same"] else "metadata of the file differs")


def pair_arrays(a: Bundle, b: Bundle) -> tuple[list[tuple[Array, Array]], list[str], list[str]]:
    """The pairs of arrays to compare, and the names that only one side has.

    Raises `UsageError` if a container has no array of the name of the single array.
    """
    many = [registry.by_name(bundle.format).many for bundle in (a, b)]
    if not all(many) and len(a.arrays) == len(b.arrays) == 1:
        return [(a.arrays[0], b.arrays[0])], [], []
    names_a, names_b = set(a.names), set(b.names)  # without aliases, which are not other arrays
    pairs = [(array, b[array.name]) for array in a.arrays if array.name in names_b]
    if not all(many) and not pairs:
        single, other = (b, a) if many[0] else (a, b)
        raise UsageError(
            f"has {counted(len(other.arrays), 'array')}, none of them called '{single.names[0]}'",
            path=other.path,
            remedy=f"choose with FILE#NAME: {listed(other.names)}",
        )
    only_a = [name for name in a.names if name not in names_b]
    only_b = [name for name in b.names if name not in names_a]
    return pairs, only_a, only_b


def compare_arrays(
    a: Array,
    b: Array,
    rule: Rule,
    *,
    ignore_meta: bool = True,
    formats: tuple[str, str] = ("", ""),
    alone: bool = True,
    where: Where | None = None,
) -> dict[str, Any]:
    """The differences of two arrays in type, shape, elements and, unless ignored, metadata.

    The fields of a third format than the two `formats` are compared only if both sides have them:
    they say through which files the data came, not what it is.
    ``data`` is None if the shapes differ, or the elements cannot be compared; with `alone`, the
    latter raises `UsageError`. ``problems`` are the reasons why either array cannot be read, mostly
    None; such arrays are never the same. ``items`` are the differences of the metadata of single
    items of two stacks, or None.
    """
    if alone:
        for side in (a, b):
            if side.problem is not None:
                raise side.problem
    broken = _problems(a, b)
    same_type = described(a.element) == described(b.element)
    same_shape = rule.shape_of(a) == rule.shape_of(b)
    data: dict[str, Any] | None = None
    differ = 0
    error = _incomparable(a, b, rule) if same_shape else None
    if error is not None and alone:
        raise error
    if same_shape and error is None and not any(broken):
        try:
            data = compare_data(a, b, rule, where)
            differ = data["differ"]
        except UNREADABLE:
            if alone or not find([a, b], rule.max_memory):
                raise
            broken = _problems(a, b)
    left, right = without_traces(_meta_of(a, rule), _meta_of(b, rule), formats)
    metadata = [] if ignore_meta else meta_differences(left, right)
    items = None if ignore_meta else item_differences(a, b, formats)
    return {
        "name": a.name,
        "name_b": b.name,
        "type": [type_text(a), type_text(b)],
        "same_type": same_type,
        "shape": [list(a.shape), list(b.shape)],
        "same_shape": same_shape,
        "data": data,
        "metadata": metadata,
        "items": items,
        "problems": broken,
        "same": same_type and same_shape and not (differ or metadata or items or any(broken)),
    }


def _meta_of(array: Array, rule: Rule) -> dict[str, Any]:
    """The metadata of an array as fields; by the rule, without axes of length 1."""
    fields = meta_of(array)
    axes = fields.get("axes")
    if rule.singletons or not axes or len(axes) != array.ndim:
        return fields
    axes = [axis for axis, length in zip(axes, array.shape, strict=True) if length != 1]
    rest = {name: value for name, value in fields.items() if name != "axes"}
    return {**rest, "axes": axes} if any(axes) else rest


def _problems(a: Array, b: Array) -> list[str | None]:
    """The reasons why two arrays cannot be read, None for one that can."""
    return [None if x.problem is None else why(x.problem) for x in (a, b)]


def type_text(array: Array) -> str:
    """Return the type; for records and the like its description, which the name alone lacks."""
    element = little(array.element)
    return str(element.descr) if isinstance(element.descr, tuple) else type_name(element)


def _incomparable(a: Array, b: Array, rule: Rule) -> UsageError | None:
    """The error for elements that cannot be compared; None if they can."""
    got = f"{type_text(a)} and {type_text(b)}"
    if not are_alike(a, b):
        return UsageError(
            f"elements of '{a.name}' and '{b.name}' cannot be compared",
            expected="two numeric types, or two other types of one kind",
            got=got,
        )
    if rule.bitwise and described(a.element) != described(b.element):
        return UsageError(
            f"elements of '{a.name}' cannot be compared bit by bit",
            expected="one type on both sides",
            got=got,
        )
    return None


def are_alike(a: Array, b: Array) -> bool:
    """True if elements of two types can be compared by their values."""
    kinds = a.element.kind, b.element.kind
    if kinds != ("user", "user"):
        return all(kind in NUMBERS for kind in kinds)
    letters = {letter(a), letter(b)}
    if a.element.nbytes == b.element.nbytes and ("V" in letters or len(letters) == 1):
        return True
    return letters == {"S", "U"} or (len(letters) == 1 and "V" not in letters)
