"""``raconvert diff A B``: exit code 0 if they are the same, 1 if not, 2 if not comparable."""

from __future__ import annotations

from raconvert.cli.console import one_line
from raconvert.cli.pages import refuse_existing, write_page
from raconvert.cli.sources import below, is_tree, reading
from raconvert.errors import RaconvertError, UsageError, counted
from raconvert.files.paths import refuse_used
from raconvert.inspect.diff import checked_rule, compare_bundles, diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.cli.console import Console
    from raconvert.inspect.where import Where
    from raconvert.migration.compare import Finding

_DIFFERENT = 1
_ABSENT = object()  # in place of a value that one side lacks
_RULES = ("atol", "rtol", "bitwise", "ignore_meta", "ignore_singletons")
_ALL = 8  # up to so many files that differ are all shown, also without -v


def run(args: Any, console: Console) -> int:
    """Compare and print what differs."""
    how: dict[str, Any] = {name: getattr(args, name) for name in _RULES}
    _check_page(args)
    try:
        if all(map(is_tree, args.files)):
            return _run_trees(args, how, console)
        differences = _with_page(args, how, console) if args.html else _compared(args, how)
    except RaconvertError as error:
        if error.exit_code == _DIFFERENT:  # a file that cannot be read is not one that differs
            error.exit_code = UsageError.exit_code
        raise
    if args.output == "-":
        return 0 if differences["same"] else _DIFFERENT
    if console.json:
        console.result_json(differences)
    elif not (differences["same"] and console.quiet):
        for line in _lines(differences):
            console.result(line)
    return 0 if differences["same"] else _DIFFERENT


def _compared(args: Any, how: dict[str, Any]) -> dict[str, Any]:
    """Compare two files; return their differences."""
    a, b = args.files
    return diff(a, b, **how, **reading(args))


# Pages --------------------------------------------------------------------------------------------


def _check_page(args: Any) -> None:
    """Refuse a page that cannot be written, before anything is read."""
    if args.html != (args.output is not None) or (args.overwrite and not args.html):
        raise UsageError(
            "-o and --overwrite are for the page of --html, which needs -o",
            remedy="diff A B --html -o PAGE",
        )
    if args.html:
        refuse_existing(args.output, overwrite=args.overwrite)


def _with_page(args: Any, how: dict[str, Any], console: Console) -> dict[str, Any]:
    """Compare two files and write the page about them; return what differs."""
    from contextlib import ExitStack

    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import open_spec
    from raconvert.views.comparison import where_of_pair
    from raconvert.views.pages.comparison import Compared, page_of

    options = reading(args)
    rule = checked_rule(
        how["atol"],
        how["rtol"],
        how["bitwise"],
        options["max_memory"],
        singletons=not how["ignore_singletons"],
    )
    watched: list[tuple[Array, Array, Where]] = []

    def watch(a: Array, b: Array) -> Where:
        watched.append((a, b, where_of_pair(a, b)))
        return watched[-1][2]

    with ExitStack() as stack:
        opened = [stack.enter_context(open_spec(path, Settings(**options))) for path in args.files]
        used = opened[0].used | opened[1].used
        if args.output != "-":
            refuse_used([args.output], used)
        left, right = (one.bundle for one in opened)
        differences = compare_bundles(
            left, right, rule, ignore_meta=how["ignore_meta"], watch=watch
        )
        differences = {"a": args.files[0], "b": args.files[1], **differences}
        pairs = [
            Compared(a, b, facts, where)
            for (a, b, where), facts in zip(watched, differences["arrays"], strict=True)
        ]
        page = "".join(page_of(differences, pairs))
    write_page(page, args.output, console, overwrite=args.overwrite, used=used)
    return differences


def _write_tree_page(
    args: Any, counts: dict[str, int], lists: dict[str, list[Finding]], console: Console
) -> None:
    """Write the page about two folders, with the files that differ by verdict."""
    from raconvert.views.pages.comparison import tree_page

    rows = {word: [(one.path, one.reason) for one in some] for word, some in lists.items()}
    a, b = args.files
    page = "".join(tree_page(a, b, counts, rows))
    write_page(page, args.output, console, overwrite=args.overwrite)


# Trees --------------------------------------------------------------------------------------------


def _run_trees(args: Any, how: dict[str, Any], console: Console) -> int:
    """Compare the files of two folders by their names, and print a summary of many differences."""
    from raconvert.migration.compare import ERROR, MARKS, ONLY_HERE, ONLY_THERE, SAME, diff_trees

    a, b = args.files
    words = {**MARKS, ONLY_HERE: "only in a", ONLY_THERE: "only in b"}
    findings = list(diff_trees(a, b, how=how, **below(args), **reading(args)))
    by_mark = {mark: [one for one in findings if one.mark == mark] for mark in words}
    counts = {words[mark]: len(some) for mark, some in by_mark.items()}
    del by_mark[SAME]
    same = not any(by_mark.values())
    code = 0 if same else _DIFFERENT
    if by_mark[ERROR]:
        code = UsageError.exit_code
    if args.html:
        lists = {words[mark]: some for mark, some in by_mark.items()}
        _write_tree_page(args, counts, lists, console)
    if args.output == "-":
        return code
    if console.json:
        files = [one._asdict() for one in findings]
        facts = {"a": a, "b": b, "same": same, "counts": counts}
        console.result_json({**facts, "files": files})
    elif not (same and console.quiet):
        many = sum(map(len, by_mark.values())) > _ALL and not console.verbose
        for mark, some in by_mark.items():
            for one in some[:1] if many else some:
                reason = f"   {one.reason}" if one.reason else ""
                console.result(one_line(f"{mark} {one.path}{reason}"))
            if many and len(some) > 1:
                console.result(f"{mark} and {len(some) - 1} more (-v shows all)")
        parts = [f"{count} {word}" for word, count in counts.items() if count]
        console.result(one_line(f"{counted(len(findings), 'file')}: {', '.join(parts) or 'none'}"))
    return code


def _lines(differences: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about two files: their arrays, and the differences of the whole files."""
    several = sum(len(differences[key]) for key in ("arrays", "only_in_a", "only_in_b")) > 1
    for array in differences["arrays"]:
        if several:
            yield f"{one_line(array['name'])}: {'same' if array['same'] else 'different'}"
        if not (several and array["same"]):
            indent = "  " if several else ""
            yield from (indent + line for line in _array_lines(array))
    for side in ("a", "b"):
        for name in differences[f"only_in_{side}"]:
            yield f"{one_line(name)}: only in {side}"
    for item in [*differences["metadata"], *differences["groups"]]:
        yield f"attribute {_field(item)}"
    for item in differences["forms"]:
        forms = [f"{item.get(side) or 'a plain group'} in {side}" for side in "ab"]
        yield one_line(f"form     group {item['field']}: {', '.join(forms)}")
    for item in differences["aliases"]:
        yield f"alias    {_field(item)}"
    if differences["order"]:
        a, b = one_line(differences["order"]["a"]), one_line(differences["order"]["b"])
        yield f"order    array {differences['order']['index']}: {a} ≠ {b}"


def _array_lines(array: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about two arrays."""
    if any(array["problems"]):
        for side, problem in zip("ab", array["problems"], strict=True):
            if problem:
                yield f"cannot be read in {side}: {one_line(problem)}"
        return
    (type_a, type_b), (shape_a, shape_b) = array["type"], map(_shape, array["shape"])
    yield f"dtype    {one_line(type_a)} {_sign(array['same_type'])} {one_line(type_b)}"
    yield f"shape    {shape_a} {_sign(array['same_shape'])} {shape_b}"
    yield f"data     {_data(array['data'], same_shape=array['same_shape'])}"
    for item in array["metadata"]:
        yield f"metadata {_field(item)}"
    items = array["items"]
    if items:
        yield f"items    {items['differ']} differ in metadata; first at [{items['first']}]"
        for item in items["fields"]:
            yield f"  metadata {_field(item)}"


def _sign(same: bool) -> str:
    """The sign between two values."""
    return "=" if same else "≠"


def _shape(shape: list[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _data(data: dict[str, Any] | None, *, same_shape: bool) -> str:
    """Describe how the elements of two arrays differ."""
    if data is None:
        what = "the types differ" if same_shape else "the shapes differ"
        return f"not compared, {what}"
    parts = [f"{data['differ']} of {data['count']} differ" if data["differ"] else "equal"]
    if data["first"] is not None:
        parts.append(f"first at {data['first']}")
    for name in ("abs", "rel"):
        if data[f"max_{name}"] is not None:
            value = data[f"max_{name}"]
            text = value if isinstance(value, str) else f"{value:.6g}"
            parts.append(f"max {name} {text} at {data[f'max_{name}_index']}")
    nans = {side: data[f"nan_only_in_{side}"] for side in ("a", "b")}
    parts += [f"{count} NaN only in {side}" for side, count in nans.items() if count]
    return "; ".join(parts)


def _field(item: dict[str, Any]) -> str:
    """Describe how a field differs, with the types of values that look alike."""
    a, b = item.get("a", _ABSENT), item.get("b", _ABSENT)
    name = one_line(item["field"])
    if b is _ABSENT:
        return f"{name}: only in a"
    if a is _ABSENT:
        return f"{name}: only in b"
    left, right = one_line(repr(a)), one_line(repr(b))
    if "types" in item:
        left, right = (
            f"{x} ({kind})" for x, kind in zip((left, right), item["types"], strict=True)
        )
    return f"{name}: {left} ≠ {right}"
