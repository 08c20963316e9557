"""Two trees compared: which arrays of the one are those of the other, whatever their formats.

Files are paired by their path without the suffix of the format. A file may also be the stack of a
folder of the other tree, and a folder may hold the arrays of a container one by one. Marks are
those of ``rclone check --combined``: its destination is the tree that is checked, its source the
tree that this was made from.
"""

from __future__ import annotations

import os
from math import prod

from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import described
from raconvert.arrays.metadata import Metadata
from raconvert.bundle.members import files_of
from raconvert.conversion.combine import open_sources
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.conversion.labels import CLASSES, labels_array
from raconvert.conversion.read import is_native, open_bundle
from raconvert.conversion.unreadable import why
from raconvert.declared import Record
from raconvert.errors import RaconvertError, UsageError, counted, listed
from raconvert.files.source import DEFAULT_MAX_MEMORY
from raconvert.inspect.diff import are_alike, diff, difference, pair_arrays, type_text
from raconvert.inspect.elements import Rule, compare_data
from raconvert.inspect.verify import Changes, verify
from raconvert.migration.plan import row_of, stem_of
from raconvert.migration.tree import UNREADABLE, walk
from raconvert.migration.work import STACK_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.migration.tree import Found, Tree


_OWN = ("meta", "index_order")  # reading options that hold for both trees
SAME, DIFFERENT, ONLY_HERE, ONLY_THERE, ERROR = "=", "*", "-", "+", "!"
MARKS = {
    SAME: "the same",
    DIFFERENT: "different",
    ONLY_HERE: "only here",
    ONLY_THERE: "only there",
    ERROR: "not compared",
}


class Finding(Record):
    """The result of comparing one file, or one array of a container."""

    mark: str
    path: str  # path below the root of its tree
    reason: str = ""  # for equal files that differ in form, too


class Pair(Record):
    """Two paths below the roots that are compared; one is empty if it has no counterpart."""

    here: str
    there: str
    kind: str = "file"  # or "stack", "labels", "parts", "whole"
    files: tuple[str, ...] = ()  # files of a stack's folder, or parts of a container


def compare_trees(
    here: str,
    there: str,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_memory: int = DEFAULT_MAX_MEMORY,
    **reading: Any,
) -> Iterator[Finding]:
    """Compare all arrays of a tree with those of the one that it was made from.

    Elements of one index are compared bit by bit, or by value if the types differ; metadata too,
    except for changes that a conversion names, and not with ``meta="ignore"``. The sources are read
    with `reading` (`raconvert.conversion.read.open_bundle`). One file that cannot be read does not
    stop the others. Raises `UsageError` if a path is not a folder, `ReadFailed`.
    """
    for root, other in ((here, there), (there, here)):
        if not os.path.isdir(root):
            raise UsageError(
                "is a file, and what it is to be compared with is a tree", path=root,
                expected="two trees, or two files", got=f"'{other}' is a folder",
            )  # fmt: skip
    left = walk(here, include=include, exclude=exclude)
    right = walk(there, from_=reading.get("from_"), include=include, exclude=exclude)
    pairs, findings = paired(left, right)
    yield from findings
    yield from unreadable(left)
    yield from unreadable(right)
    comparison = _Comparison(here, there, max_memory, reading)
    jobs = Jobs(lambda index: [list(row) for row in comparison.findings(pairs[index])])
    paths = [comparison.native_of(pair) for pair in pairs]
    for pair, rows in zip(pairs, outcomes(paths, jobs, fewest=1), strict=True):
        if isinstance(rows, Exception):  # reading the files crashed the process
            yield Finding(ERROR, pair.here or pair.there, _first_line(rows))
        else:
            yield from (Finding(*row) for row in rows)


def unreadable(tree: Tree) -> Iterator[Finding]:
    """Yield a finding for each path of a tree that may hold arrays and cannot be read."""
    for path, reason in tree.left_out:
        if reason.startswith(UNREADABLE):
            yield Finding(ERROR, path, reason)


# Pairs ------------------------------------------------------------------------------------------


def paired(
    here: Tree, there: Tree, *, files_only: bool = False
) -> tuple[list[Pair], list[Finding]]:
    """Pair the files of two trees, and list those that have no counterpart or several.

    `files_only`: a file is the counterpart of a file, and never of a folder.
    """
    left, right = _by_stem(here.files), _by_stem(there.files)
    pairs: list[Pair] = []
    findings: list[Finding] = []
    for stem in [stem for stem in left if stem in right]:
        a, b = left[stem], right[stem]
        both = {*a} & {*b}
        pairs += [Pair(path, path) for path in a if path in both]
        a[:] = [path for path in a if path not in both]
        b[:] = [path for path in b if path not in both]
        if len(a) == len(b) == 1:
            pairs.append(Pair(a.pop(), b.pop()))
        elif a and b:
            reason = f"several files have this path without suffix: {listed([*a, *b])}"
            findings += [Finding(ERROR, path, reason) for path in a]
            a.clear()
            b.clear()
    rest_here = {path: stem for stem, paths in left.items() for path in paths}
    rest_there = {path: stem for stem, paths in right.items() for path in paths}
    if files_only:
        findings += [Finding(ONLY_HERE, path) for path in rest_here]
        return pairs, findings + [Finding(ONLY_THERE, path) for path in rest_there]
    many = {
        file.path
        for file in (*here.files, *there.files)
        if (row := row_of(file)) is not None and row.many
    }
    pairs += [
        Pair(folder, whole, "parts", files)
        for whole, folder, files in _parts(rest_there, rest_here, many)
    ]
    pairs += [
        Pair(whole, folder, "whole", files)
        for whole, folder, files in _parts(rest_here, rest_there, many)
    ]
    pairs += _rooted(rest_here, rest_there, many)
    pairs += _stacks(rest_here, rest_there)
    pairs += _labelled(rest_here, rest_there)
    findings += [Finding(ONLY_HERE, path) for path in rest_here]
    findings += [Finding(ONLY_THERE, path) for path in rest_there]
    return pairs, findings


def _by_stem(files: Iterable[Found]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for file in files:
        paths.setdefault(stem_of(file), []).append(file.path)
    return paths


def _stacks(here: dict[str, str], there: dict[str, str]) -> list[Pair]:
    """Pair files with folders of the other tree that they are the stacks of; remove both sides."""
    folders: dict[str, list[str]] = {}
    for path in there:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    pairs = []
    for path, stem in list(here.items()):
        folder = "" if stem == "stack" else stem
        inside = folders.pop(folder, [])
        if len(inside) > 1:
            pairs.append(Pair(path, folder, "stack", tuple(inside)))
            del here[path]
            for name in inside:
                del there[name]
    return pairs


def _rooted(here: dict[str, str], there: dict[str, str], many: set[str]) -> list[Pair]:
    """Pair the container made of class folders at the root of the other tree; remove both sides."""
    inside = tuple(path for path in there if path.count("/") == 1)
    for path, stem in list(here.items()):
        if stem == "stack" and path in many and inside:
            del here[path]
            for name in inside:
                del there[name]
            return [Pair(path, "", "whole", inside)]
    return []


def _labelled(here: dict[str, str], there: dict[str, str]) -> list[Pair]:
    """Pair stacks, and their labels, with folders of class folders; remove both sides."""
    classes: dict[str, list[str]] = {}
    for path in there:
        if "/" in path:
            classes.setdefault("/".join(path.split("/")[:-2]), []).append(path)
    by_stem = {stem: path for path, stem in here.items()}
    pairs = []
    for path, stem in list(here.items()):
        folder, _, name = stem.rpartition("/")
        root = "" if folder == "stack" else folder
        labels = by_stem.get(f"{folder}/{STACK_NAMES[1]}")
        if name != STACK_NAMES[0] or labels is None or root not in classes:
            continue
        inside = tuple(classes.pop(root))
        pairs += [Pair(path, root, "stack", inside), Pair(labels, root, "labels", inside)]
        del here[path], here[labels]
        for member in inside:
            del there[member]
    return pairs


def _parts(
    wholes: dict[str, str], parts: dict[str, str], many: set[str]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """List containers of one tree, each with the folder and the files that hold its arrays.

    The files are of the other tree. What is listed is removed from `wholes` and `parts`.
    """
    inside: dict[str, list[str]] = {}
    for path in parts:
        folder = path.rpartition("/")[0]
        while folder:
            inside.setdefault(folder, []).append(path)
            folder = folder.rpartition("/")[0]
    containers = []
    for path, stem in list(wholes.items()):
        files = [name for name in inside.pop(stem, ()) if name in parts]
        if path in many and files:
            containers.append((path, stem, tuple(files)))
            del wholes[path]
            for name in files:
                del parts[name]
    return containers


# One pair ---------------------------------------------------------------------------------------


class _Comparison:
    """Settings that the comparison of all pairs shares."""

    def __init__(self, here: str, there: str, max_memory: int, reading: dict[str, Any]) -> None:
        self._here = here
        self._there = there
        self._rule = Rule(max_memory=max_memory)
        self._own: dict[str, Any] = {"max_memory": max_memory}
        self._own.update((name, reading[name]) for name in _OWN if name in reading)
        self._reading = {**reading, "max_memory": max_memory}
        self._ignore_meta = reading.get("meta") == "ignore"

    def native_of(self, pair: Pair) -> str:
        """The path of the side that a library of native code reads; else that of `here`."""
        here, there = os.path.join(self._here, pair.here), os.path.join(self._there, pair.there)
        return there if is_native(there) else here

    def findings(self, pair: Pair) -> list[Finding]:
        """Compare the two sides of a pair; return the findings."""
        compare = {"file": self._file, "stack": self._stack, "labels": self._labels,
                "parts": self._parts, "whole": self._whole}[pair.kind]  # fmt: skip
        try:
            return list(compare(pair))
        except (RaconvertError, OSError) as error:
            return [Finding(ERROR, pair.here or pair.there, _first_line(error))]

    def _file(self, pair: Pair) -> Iterator[Finding]:
        with (
            open_bundle(os.path.join(self._there, pair.there), **self._reading) as source,
            open_bundle(os.path.join(self._here, pair.here), **self._own) as bundle,
        ):
            findings = self._bundles(source, bundle)
        yield _together(pair.here, findings)

    def _bundles(self, source: Bundle, bundle: Bundle) -> list[Finding]:
        arrays, only_there, only_here = pair_arrays(source, bundle)
        changes = self._changes(source, bundle)
        return [
            *(_judge(x, y, self._rule, changes) for x, y in arrays),
            *(Finding(DIFFERENT, name, "array is missing") for name in only_there),
            *(Finding(DIFFERENT, name, "array is there in addition") for name in only_here),
        ]

    def _changes(self, source: Bundle, bundle: Bundle) -> Changes | None:
        return None if self._ignore_meta else Changes(source, bundle)

    def _stack(self, pair: Pair) -> Iterator[Finding]:
        names = [os.path.join(self._there, name) for name in pair.files]
        verdict = verify(
            os.path.join(self._here, pair.here), [],
            files_from=names, go_on=True, **self._reading
        )  # fmt: skip
        counts = verdict["against"]
        differences = [f"{counts[kind]} {kind}, such as {counts['examples'][kind]}"
                       for kind in ("changed", "missing", "extra") if counts[kind]]  # fmt: skip
        mark = SAME if verdict["same"] else DIFFERENT
        reason = "; ".join(differences) or f"stack of {counted(counts['ok'], 'file')}"
        yield Finding(mark, pair.here, reason)

    def _labels(self, pair: Pair) -> Iterator[Finding]:
        labels = Bundle([labels_array([os.path.join(self._there, name) for name in pair.files])])
        yield self._made_of(labels, os.path.join(self._here, pair.here), pair.here)

    def _parts(self, pair: Pair) -> Iterator[Finding]:
        """Compare the files of a folder here with the arrays of a container there."""
        ending = os.path.splitext(pair.files[0])[1]
        left = set(pair.files)
        with open_bundle(os.path.join(self._there, pair.there), **self._reading) as source:
            for array, name in zip(source.arrays, files_of(source.names, ending), strict=True):
                path = f"{pair.here}/{name}"
                if path not in left:
                    yield Finding(ONLY_THERE, f"{pair.there}#{array.name}")
                    continue
                left.remove(path)
                yield self._made_of(source.like([array]), os.path.join(self._here, path), path)
        yield from (Finding(ONLY_HERE, path) for path in sorted(left))

    def _whole(self, pair: Pair) -> Iterator[Finding]:
        """Compare the arrays of a container here with the files of a folder there."""
        ending = os.path.splitext(pair.files[0])[1]
        left = set(pair.files)
        with open_bundle(os.path.join(self._here, pair.here), **self._own) as bundle:
            labelled = {*STACK_NAMES} <= {*bundle.names} <= {*STACK_NAMES, CLASSES}
            paths = [f"{pair.there}/{name}" for name in files_of(bundle.names, ending)]
            if labelled and left.isdisjoint(paths):
                yield _together(pair.here, list(self._classes(pair, bundle)))
                return
            if len(bundle.arrays) == 1 and left.isdisjoint(paths):
                yield from self._stack(pair)
                return
            for array, name in zip(bundle.arrays, files_of(bundle.names, ending), strict=True):
                path, label = f"{pair.there}/{name}", f"{pair.here}#{array.name}"
                if path not in left:
                    yield Finding(ONLY_HERE, label)
                    continue
                left.remove(path)
                whole = bundle.like([array])
                yield self._made_from(os.path.join(self._there, path), whole, label)
        yield from (Finding(ONLY_THERE, path) for path in sorted(left))

    def _classes(self, pair: Pair, bundle: Bundle) -> Iterator[Finding]:
        """Compare the images, labels and classes of a container with the class folders there."""
        names = [os.path.join(self._there, name) for name in pair.files]
        stack, labels = STACK_NAMES
        with open_sources([], files_from=names, **self._reading) as source:
            named = source.like([source.arrays[0].replace(name=stack)])
            yield _judge(named.arrays[0], bundle[stack], self._rule, self._changes(named, bundle))
        expected = labels_array(names)
        # In a container, the classes are an array of their own, not an attribute of the labels.
        bare = Bundle([expected.replace(name=labels, meta=Metadata())])
        yield _judge(bare.arrays[0], bundle[labels], self._rule, self._changes(bare, bundle))
        words = expected.meta.attributes.get("labels")
        if CLASSES in bundle.names and words is not None:
            same = [str(word) for word in bundle[CLASSES][...].tolist()] == words
            yield Finding(SAME if same else DIFFERENT, CLASSES, "" if same else "other classes")

    def _made_of(self, source: Bundle, path: str, label: str) -> Finding:
        """Compare a file of the tree that is checked, which has one array, with its source."""
        return self._single(path, label, self._own, lambda bundle: (source, bundle))

    def _made_from(self, path: str, bundle: Bundle, label: str) -> Finding:
        """Compare an array of the tree that is checked with its source, a file of one array."""
        return self._single(path, label, self._reading, lambda source: (source, bundle))

    def _single(
        self,
        path: str,
        label: str,
        reading: dict[str, Any],
        pair: Callable[[Bundle], tuple[Bundle, Bundle]],
    ) -> Finding:
        """Compare the array of a file; `pair` turns its bundle into (source, made of it)."""
        try:
            with open_bundle(path, **reading) as other:
                if len(other.arrays) != 1:
                    count = counted(len(other.arrays), "array")
                    return Finding(DIFFERENT, label, f"{count} in place of one")
                source, bundle = pair(other)
                changes = self._changes(source, bundle)
                finding = _judge(source.arrays[0], bundle.arrays[0], self._rule, changes)
                return finding._replace(path=label)
        except (RaconvertError, OSError) as error:
            return Finding(ERROR, label, _first_line(error))


def _together(path: str, findings: list[Finding]) -> Finding:
    """Combine the findings of a file's arrays into one of the file: the worst mark counts."""
    several = len(findings) > 1
    for mark in (ERROR, DIFFERENT, SAME):
        marked = [row for row in findings if row.mark == mark and (mark != SAME or row.reason)]
        if marked:
            reasons = [f"{row.path}: {row.reason}" if several else row.reason for row in marked]
            return Finding(mark, path, "; ".join(reasons))
    return Finding(SAME, path)


def _judge(x: Array, y: Array, rule: Rule, changes: Changes | None) -> Finding:
    """Compare `y` with the array that it was made from, `x`; metadata too if `changes`."""
    for problem in (x.problem, y.problem):
        if problem is not None:
            return Finding(ERROR, x.name, f"cannot be read: {why(problem)}")
    same_type, same_shape = described(x.element) == described(y.element), x.shape == y.shape
    form = []
    if not same_type:
        form.append(f"type {type_text(x)}, now {type_text(y)}")
    if not same_shape:
        form.append(f"shape {x.shape}, now {y.shape}")
    text = "; ".join(form)
    if not (_same_axes(x.shape, y.shape) and (same_type or are_alike(x, y))):
        return Finding(DIFFERENT, x.name, text)
    bitwise = Rule(bitwise=same_type, max_memory=rule.max_memory)
    try:
        data = compare_data(x, y, bitwise)
    except (RaconvertError, OSError) as error:
        return Finding(ERROR, x.name, _first_line(error))
    if data["differ"]:
        count = prod(y.shape)
        text += f"{'; ' if text else ''}{data['differ']} of {count} elements differ, "
        return Finding(DIFFERENT, x.name, f"{text}first at {data['first']}")
    if changes is not None and (change := changes.unexpected(x, y)):
        return Finding(DIFFERENT, x.name, f"{text}; {change}" if text else change)
    if not text and _listed(x) != _listed(y):
        text = f"axes listed as {_listed(x)}, now {_listed(y)}"
    return Finding(SAME, x.name, f"equivalent: {text}" if text else "")


def _listed(array: Array) -> tuple[int, ...]:
    """The dims that an .ra file of an array would list."""
    return array.shape[::-1] if array.row_major else array.dims


def _same_axes(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if two shapes differ in nothing but axes of length 1."""
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# The files of two folders compared as ``raconvert diff`` compares two files ----------------------


def diff_trees(
    a: str,
    b: str,
    *,
    how: dict[str, Any],
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    **reading: Any,
) -> Iterator[Finding]:
    """Compare the files of two folders as `raconvert.inspect.diff.diff` does, by `how`.

    Files of the same name are a pair, else files whose names are the same without the suffix.
    Raises `ReadFailed` if a path is not a folder that can be read.
    """
    left, right = (
        _top(walk(root, from_=reading.get("from_"), include=include, exclude=exclude), recursive)
        for root in (a, b)
    )
    pairs, findings = paired(left, right, files_only=True)
    yield from findings
    yield from unreadable(left)
    yield from unreadable(right)

    def difference_of(index: int) -> str:
        here, there = os.path.join(a, pairs[index].here), os.path.join(b, pairs[index].there)
        return difference(diff(here, there, **how, **reading))

    paths = [os.path.join(a, pair.here) for pair in pairs]
    for pair, text in zip(pairs, outcomes(paths, Jobs(difference_of), fewest=1), strict=True):
        if isinstance(text, Exception):
            yield Finding(ERROR, pair.here, _first_line(text))
        else:
            yield Finding(DIFFERENT if text else SAME, pair.here, text)


def _top(tree: Tree, recursive: bool) -> Tree:
    """The tree; unless `recursive`, only the files that lie directly in its root."""
    if recursive:
        return tree
    files = [file for file in tree.files if "/" not in file.path]
    return tree._replace(files=files, left_out=[row for row in tree.left_out if "/" not in row[0]])
