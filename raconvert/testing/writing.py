"""Checks of writing: fits, round trips, refusals, metadata and names."""

from __future__ import annotations

import os

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.conversion.options import Settings
from raconvert.conversion.write import adapted
from raconvert.errors import TargetExists, UsageError, WouldLose
from raconvert.plugin import EQUIVALENT, PROPERTIES, REFUSED, Fit, Plugin
from raconvert.testing.cases import CASES, SHAPES, Case, same, same_values
from raconvert.testing.kit import (
    contents_of,
    held_files,
    in_new_interpreter,
    joined,
    read,
    remove,
    require,
    require_none,
    row_of,
    sample_files,
    scratch,
    suffix_of,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    import numpy as np

    Values = np.ndarray[Any, Any]


def _over_cases(
    plugin: ModuleType,
    judge: Callable[[Case, Path], str | None],
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
) -> None:
    """Call `judge` with every case of these shapes and an empty folder; require no problem of it.

    `judge` returns a description of the problem, or None.
    """
    if not plugin.FORMAT.writes:
        return
    problems = []
    chosen = {name: case for name, case in CASES.items() if case.shape in shapes}
    with scratch() as folder:
        for name, case in chosen.items():
            try:
                problem = judge(case, folder)
            except Exception as error:
                error.add_note(f"with the array {name} of raconvert.testing.CASES")
                raise
            if problem:
                problems.append(f"{name}: {problem}")
            for left in folder.iterdir():
                remove(left)
    require_none(problems, f"of {len(chosen)} arrays are mishandled")


FEW_SHAPES = ((), (4, 6), (3, 4, 1))  # for checks of which types and orders matter more


def _fits(plugin: ModuleType, array: Array) -> list[Fit]:
    """Return the fits of the plugin for an array, in an index order that it can store."""
    return Plugin(plugin).plan(Bundle([adapted(array, row_of(plugin), Settings())])).fits


def _go_together(plugin: ModuleType, options: dict[str, Any]) -> bool:
    """True unless a plan of a plain array refuses options beside the defaults of the others."""
    array = Case("float64", (4, 6), "C").array().replace(data=_no_data)
    try:
        Plugin(plugin).plan(Bundle([array]), **options)
    except UsageError:
        return False
    return True


def check_fits_is_pure(plugin: ModuleType) -> None:
    """Check that `fits` reads no data, changes nothing, never raises, and repeats its answer.

    Raises `AssertionError` that lists what is wrong.
    """
    choices = [
        {option.name: choice}
        for option in plugin.FORMAT.write_options
        for choice in (option.choices if isinstance(option.choices, tuple) else ())
    ]
    usable = [options for options in choices if _go_together(plugin, options)]

    def judge(case: Case, _: Path) -> str | None:
        array = case.array().replace(data=_no_data)
        before = _facts(array)
        for options in [{}, *usable]:
            try:
                first, second = (
                    Plugin(plugin).plan(Bundle([array]), **options).fits for _ in range(2)
                )
            except Exception as error:  # noqa: BLE001 - any error is what is looked for
                return f"raises {error!r}"
            if not all(map(_is_fit, first)):
                return f"answers {first!r}"
            if array.element.kind == "user" and any("--dtype" in (f.flag or "") for f in first):
                return f"names --dtype, which helps numbers and bools only: {first}"
            if first != second or _facts(array) != before:
                return "says something else the second time, or changes the array"
        return None

    _over_cases(plugin, judge)


def _no_data() -> Any:
    raise AssertionError("fits looked at the data")


def _facts(array: Array) -> tuple[object, ...]:
    return array.element, array.dims, array.name, array.index_order, repr(array.meta), array.source


def _is_fit(fit: object) -> bool:
    return (
        isinstance(fit, Fit)
        and fit.outcome in (EQUIVALENT, REFUSED)
        and fit.property in PROPERTIES
        and bool(fit.reason)
        and (fit.flag is None or (fit.outcome == REFUSED and fit.flag.startswith("--")))
    )


def check_round_trips(plugin: ModuleType) -> None:
    """Check that every array that `fits` accepts comes back: bit for bit if exact, else in value.

    Arrays of the kinds in `Format.refuses` may hold values that the format lacks, such as a NUL in
    a text: they are refused with their place, and the array without such values comes back. Raises
    `AssertionError` that lists what is wrong.
    """
    kinds = set()

    def judge(case: Case, folder: Path) -> str | None:
        kind = case.values.dtype.kind
        try:
            return _round_trip(plugin, case, folder)
        except WouldLose as error:
            refused = f"refused, though fits has nothing against it: {error}"
            if kind not in plugin.FORMAT.refuses or os.listdir(folder) or not error.where:
                return refused
        kinds.add(kind)
        try:
            return _round_trip(plugin, case._replace(tame=True), folder)
        except WouldLose as error:
            return f"refused, though fits has nothing against it: {error}"

    _over_cases(plugin, judge)
    idle = "".join(kind for kind in plugin.FORMAT.refuses if kind not in kinds)
    require(not idle, f"no value of the kinds {idle!r} is refused, though Format.refuses has them")


def _round_trip(plugin: ModuleType, case: Case, folder: Path) -> str | None:
    """Return the problem of a round trip, or None; `WouldLose` for an array that fits accepts."""
    array = case.array()
    refused = [fit for fit in _fits(plugin, array) if fit.outcome == REFUSED]
    path = folder / f"x{suffix_of(plugin)}"
    try:
        report = write(plugin, [array], path)
    except WouldLose:
        if not refused:
            raise
        return None
    if refused:
        return f"written, though fits refuses: {refused[0]}"
    with read(plugin, path) as bundle:
        values_read = joined(bundle.arrays[0], 1 << 20)
    # Column-major formats take arrays without an index order with the axes as listed.
    listed = case.order == "none" and plugin.FORMAT.index_orders == "F"
    values = case.values.T if listed else case.values
    reported = [str(fit) for fit in report.equivalent if fit.property != "metadata"]
    if reported:
        whole = same_values(values, values_read)
        return None if whole else f"values changed, though only this was reported: {reported}"
    if same(values, values_read):
        return None
    text = f"{values_read.dtype} {values_read.shape} {values_read.ravel()[:4]}"
    return f"came back as {text}, and fits says exact"


def check_refusals_write_nothing(plugin: ModuleType) -> None:
    """Check that an array that `fits` refuses raises `WouldLose`, is named, and leaves no file."""

    def judge(case: Case, folder: Path) -> str | None:
        array = case.array("the_array")
        refused = [fit for fit in _fits(plugin, array) if fit.outcome == REFUSED]
        if not refused:
            return None
        path = folder / f"x{suffix_of(plugin)}"
        try:
            write(plugin, [array], path)
        except WouldLose as error:
            left = os.listdir(folder)
            if left:
                return f"left behind: {left}"
            return None if "the_array" in str(error) else f"the array is not named: {error}"
        except Exception as error:  # noqa: BLE001 - any other error is what is looked for
            return f"raises {error!r}"
        return "written"

    _over_cases(plugin, judge)


def check_input_is_left_alone(plugin: ModuleType) -> None:
    """Check that writing changes nothing in the arrays that are written.

    Raises `AssertionError` that lists what is wrong.
    """

    def judge(case: Case, folder: Path) -> str | None:
        array = case.array()
        data, before, facts = array.data, array.data.tobytes(), _facts(array)
        try:
            write(plugin, [array], folder / f"x{suffix_of(plugin)}")
        except WouldLose:
            return None
        alike = data.tobytes() == before and _facts(array) == facts
        return None if alike else "the array was changed"

    _over_cases(plugin, judge, FEW_SHAPES)


def check_output_is_deterministic(plugin: ModuleType) -> None:
    """Two writes of one array give the same bytes.

    Raises `AssertionError` that lists what is wrong.
    """

    def judge(case: Case, folder: Path) -> str | None:
        written = []
        for name in ("first", "second"):
            path = folder / f"{name}{suffix_of(plugin)}"
            try:
                write(plugin, [case.array()], path)
            except WouldLose:
                return None
            written.append(contents_of(path))
        return None if written[0] == written[1] else "the files differ"

    _over_cases(plugin, judge, FEW_SHAPES)


def check_failed_write_leaves_nothing(plugin: ModuleType) -> None:
    """Check that data that fails halfway leaves the destination as it was, and nothing beside it.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        for path, values in held_files(plugin, folder).values():
            before = contents_of(path)
            files = sorted(os.listdir(folder))
            array = Array(element_of(values.dtype), values.shape[::-1], name="x", index_order="C",
                          data=_Failing(values))  # fmt: skip
            try:
                write(plugin, [array], path, overwrite=True)
            except _FailedHalfwayError:
                require(contents_of(path) == before, "the destination was changed")
                require(sorted(os.listdir(folder)) == files, f"left behind: {os.listdir(folder)}")
            else:
                raise AssertionError(f"data of shape {values.shape} failed, and write went on")


class _FailedHalfwayError(Exception):
    """Raised by `_Failing`."""


class _Failing:
    """Array source that gives one element and then fails."""

    def __init__(self, values: Values) -> None:
        self.shape = values.shape
        self.dtype = values.dtype
        self._values = values

    def stream(self, _: int) -> Iterator[Values]:
        yield self._values.reshape(-1)[:1]
        raise _FailedHalfwayError

    def __getitem__(self, key: object) -> Values:
        raise _FailedHalfwayError


def check_metadata_is_kept_or_named(plugin: ModuleType) -> None:
    """Metadata comes back, from the file or its sidecar, or `fits` says that it will not.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        for rank, (path, values) in held_files(plugin, folder).items():
            for field, meta in _some_metadata(rank).items():
                array = Array(element_of(values.dtype), values.shape[::-1], name="x", meta=meta,
                              index_order="C", data=values)  # fmt: skip
                report = write(plugin, [array], path, overwrite=True)
                if any(fit.property == "metadata" for fit in report.equivalent):
                    continue
                with read(plugin, path) as bundle:
                    fields_read = bundle.arrays[0].meta.to_dict()
                expected = meta.to_dict()
                fields = {name: fields_read.get(name) for name in expected}
                require(fields == expected, f"{field} became {fields}, and fits says nothing")


def _some_metadata(rank: int) -> dict[str, Metadata]:
    axes = [Axis(name=f"axis{n}", units="mm", spacing=0.5 + n) for n in range(rank)]
    fields = {
        "description": Metadata(description="a 'quoted' text: é\n# second line"),
        "units": Metadata(units="m/s²"),
        "attributes": Metadata(attributes={"number": 1.5, "list": [1, "no", None], "yes": True}),
        "another namespace": Metadata(formats={"elsewhere": {"key": ["value", 2]}}),
    }
    return fields | ({"axes": Metadata(axes=axes)} if rank else {})


def check_names_are_kept(plugin: ModuleType) -> None:
    """A format of many arrays keeps their names and order, or `fits` refuses the names.

    One array alone may get the name of the file if the format declares that (`Format.alone`).

    Raises `AssertionError` that lists what is wrong.
    """
    if not (plugin.FORMAT.many and plugin.FORMAT.writes):
        return
    case = CASES["float64-4x6-C"]
    for names in _NAMES:
        with scratch() as folder:
            path = folder / f"x{suffix_of(plugin)}"
            try:
                write(plugin, [case.array(name) for name in names], path)
            except WouldLose:
                require(not os.listdir(folder), f"left behind: {os.listdir(folder)}")
                continue
            alone = plugin.FORMAT.alone and len(names) == 1
            expected = [path.stem] if alone else names
            with read(plugin, path) as bundle:
                require(bundle.names == expected, f"{names} became {bundle.names}")


_NAMES = [
    ["b", "a", "c"],
    ["a", "A"],
    ["x y", "é", "日本"],
    ["a/b", "../c"],
    ["a", "a"],
    [""],
    ["a.b", "a"],
    ["\n"],
    ["\ud800"],
    ["x" * 70_000],
    [" a", "a "],
    ["con", "nul."],
]


def check_additions_keep_the_others(plugin: ModuleType) -> None:
    """An array is added to a container, or refused, and all others stay as they are.

    An existing array is refused without `overwrite`, and with it replaced alone. The others keep
    their order. For plugins with `add`; raises `AssertionError` that lists what is wrong.
    """
    module = Plugin(plugin)
    if not (plugin.FORMAT.many and plugin.FORMAT.writes) or module.add is None:
        return
    with scratch() as folder:
        files = held_files(plugin, folder)
        if not files:
            return
        _, values_held = next(iter(files.values()))
        case = next(case for case in CASES.values() if same_values(case.values, values_held))
        for left in folder.iterdir():
            remove(left)
        path = folder / f"x{suffix_of(plugin)}"
        names = ["aaa", "bbb", "ccc"]
        write(plugin, [case.array(name) for name in names], path)
        with read(plugin, path) as bundle:
            names, before = bundle.names, [joined(array, 1 << 20) for array in bundle.arrays]
        for name in names:
            content = contents_of(path)
            try:
                write(plugin, [case.array(name)], path, name)
            except TargetExists:
                require(contents_of(path) == content, f"'{name}' was refused and yet written")
            else:
                require(False, f"'{name}' was replaced without being asked to")
        problems: list[str] = []
        touched: set[str] = set()
        for name, overwrite in (("ddd", False), (names[1], True), ("eee", False), ("ddd", True)):
            report = write(plugin, [case.array(name)], path, name, overwrite=overwrite)
            touched |= {array[0] for array in report.arrays}
            with read(plugin, path) as bundle:
                untouched = [n for n in bundle.names if n in names and n not in touched]
                expected = [n for n in names if n not in touched]
                problems += [f"after '{name}': {untouched}"] * (untouched != expected)
                for other, values in zip(names, before, strict=True):
                    array = bundle.get(other)
                    if array is None or not same_values(joined(array, 1 << 20), values):
                        problems.append(f"after '{name}': '{other}' is not what it was")
            beside = [entry.name for entry in folder.iterdir() if entry != path]
            problems += [f"after '{name}': {beside} lies beside the file"] * bool(beside)
        require_none(problems, "arrays changed while others were added")


def check_is_silent(plugin: ModuleType) -> None:
    """Reading, failing to read and writing print nothing and leave no open file behind.

    Raises `AssertionError` that lists what is wrong.
    """
    with sample_files(plugin) as paths, scratch() as folder:
        if not paths and not plugin.FORMAT.writes:
            return
        held = [path for path, _ in held_files(plugin, folder).values()]
        broken = folder / f"broken{suffix_of(plugin)}"
        broken.write_bytes(paths[0].read_bytes()[:-1])
        in_new_interpreter(plugin, _USE, plugin.__name__, folder, *paths, *held, broken)


_USE = """
import importlib
from pathlib import Path
from raconvert import testing
from raconvert.errors import RaconvertError
plugin = importlib.import_module(sys.argv[1])
target = Path(sys.argv[2]) / ("again" + testing.suffix_of(plugin))
for path in map(Path, sys.argv[3:]):
    try:
        with testing.read(plugin, path) as bundle:
            if plugin.FORMAT.writes:
                testing.write(plugin, bundle.arrays[:1], target, overwrite=True)
        testing.decode(testing.read(plugin, path))
    except RaconvertError as error:
        str(error)
answer = ""
"""
