"""The conformance kit over every format, and every rule of the kit over a plugin that breaks it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import shortcut
from cases import meeting

import raconvert
from raconvert import registry, testing
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.catalogue import ROWS
from raconvert.errors import Corrupt, RaconvertError, WouldLose, WriteFailed
from raconvert.files.source import Extent
from raconvert.plugin import MAYBE, SURE, Option, Plan, Source, refused
from raconvert.testing import CHECKS

ROOT = Path(__file__).resolve().parents[1]
TOY = Path(__file__).resolve().parent / "third_party" / "raconvert-toy"
LANES = {"npy", "nrrd", "png", "ra"}
LANE_CASES = [name for name in testing.CASES if "-4x6-" in name or "-5x6x3-" in name]
MODULES = {row.name: row.module for row in ROWS} | {"toy": "raconvert_toy"}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the third-party plugin, importable here and in child processes."""
    monkeypatch.syspath_prepend(TOY)
    monkeypatch.delitem(sys.modules, "raconvert_toy", raising=False)
    return import_module("raconvert_toy")


# In these checks each type meets each shape and each order, and these each other; in the round
# trips, and for the formats that promise more of their headers, all three do.
SAMPLED = {
    testing.check_fits_is_pure,
    testing.check_headers_tell,
    testing.check_input_is_left_alone,
    testing.check_output_is_deterministic,
    testing.check_refusals_write_nothing,
}
BY_PARTS = {(str(case.type), case.shape, case.order): case for case in testing.CASES.values()}
NAMES = {case: name for name, case in testing.CASES.items()}
FEWER = {NAMES[BY_PARTS[parts]]: BY_PARTS[parts] for parts in meeting(BY_PARTS)}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.usefixtures("toy")
def test_conformance(
    name: str, check: Callable[[ModuleType], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if check in SAMPLED and name not in LANES:
        for part in ("headers", "writing"):
            monkeypatch.setattr(f"raconvert.testing.{part}.CASES", FEWER)
    check(import_module(MODULES[name]))


@pytest.mark.skipif(not shortcut.POSSIBLE, reason="files without a name are a thing of Linux")
@pytest.mark.parametrize("name", sorted(LANES))
def test_what_is_written_goes_both_ways(name: str, tmp_path: Path) -> None:
    """The shortcut makes of a file of the kit what the usual way makes, and reports the same."""
    plugin = import_module(MODULES[name])
    (lane := tmp_path / "lane").mkdir()
    counts = dict.fromkeys(("npy", "ra", name), 0)
    for number, case in enumerate(LANE_CASES):
        path = tmp_path / f"{number}{testing.suffix_of(plugin)}"
        try:
            testing.write(plugin, [testing.CASES[case].array()], path)
        except RaconvertError:
            continue
        for to in counts:
            folder = tmp_path / f"{number}-{to}"
            folder.mkdir()
            try:
                report = raconvert.convert(path, folder / f"{number}.{to}", to=to, sync=False)
            except RaconvertError:
                continue
            counts[to] += shortcut.taken(path, folder / f"{number}.{to}", report, lane)
    assert all(counts.values()), counts
    assert counts[name] > (3 if name == "png" else 30), counts


def test_the_lane_connects_the_formats_that_promise_it() -> None:
    assert shortcut.formats() == LANES


PARTS = ("declared", "reading", "writing", "empty", "headers")


def test_every_check_of_the_kit_is_listed() -> None:
    parts = [import_module(f"raconvert.testing.{part}") for part in PARTS]
    defined = {
        value for part in parts for name, value in vars(part).items() if name.startswith("check_")
    }

    assert len(CHECKS) == len(set(CHECKS))
    assert set(CHECKS) == defined
    assert defined == {value for name, value in vars(testing).items() if name.startswith("check_")}


def test_every_plugin_file_has_a_catalogue_row() -> None:
    files = {
        f"raconvert.plugins.{path.stem}"
        for path in (ROOT / "plugins").iterdir()
        if path.stem != "__init__" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }

    modules = {
        row.module
        for row in ROWS
        if not row.module.startswith(("raconvert.ra.", "raconvert.bundle."))
    }
    # A folder may hold several formats, each a module of its own.
    assert {".".join(module.split(".")[:3]) for module in modules} == files


# A suffix of two formats, known by content when they are read -> the one that it is written as.
SHARED = {".hdr": "cfl"}


def test_catalogue_names_and_suffixes_are_unique() -> None:
    names = [row.name for row in ROWS]
    suffixes = Counter(suffix for row in ROWS for suffix in row.suffixes)

    assert len(set(names)) == len(names)
    assert {suffix for suffix, count in suffixes.items() if count > 1} == {*SHARED}
    for suffix, name in SHARED.items():
        row = registry.by_suffix(f"x{suffix}")
        assert row is not None
        assert row.name == name


def test_the_kit_needs_no_pytest() -> None:
    files = (ROOT / "raconvert" / "testing").glob("*.py")
    source = "".join(path.read_text(encoding="utf-8").split(chr(34) * 3, 2)[2] for path in files)

    assert "import pytest" not in source


# The arrays of the kit ---------------------------------------------------------------------------


def test_cases_hold_the_bits_that_matter() -> None:
    floats = testing.CASES["float64-4x6-C"].values.view("u8").ravel().tolist()

    assert 0x8000000000000000 in floats  # -0.0
    assert 0x7FF8000000000001 in floats  # a NaN with a payload
    assert np.isnat(testing.CASES["datetime-4x6-C"].values).any()
    assert testing.CASES["int16-big-4x6-C"].values.dtype.str == ">i2"


@pytest.mark.parametrize("order", ["C", "F", "none", "strided"])
def test_cases_of_one_type_and_shape_hold_the_same_elements(order: str) -> None:
    case = testing.CASES[f"int32-4x6-{order}"]
    array = case.array()

    assert array.index_order == {"F": "F", "none": None}.get(order, "C")
    assert array.shape == (4, 6)
    assert np.array_equal(np.asarray(array), testing.CASES["int32-4x6-C"].values)


def _f8(bits: int) -> np.ndarray:
    return np.array([bits], "<u8").view("<f8")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (_f8(0), _f8(1 << 63)),
        (_f8(0x7FF8000000000001), _f8(0x7FF8000000000002)),
        (np.zeros(3, "i4"), np.zeros(3, "u4")),
        (np.zeros(3, "i4"), np.zeros((3, 1), "i4")),
        (np.array(["2000"], "M8[Y]"), np.array(["2000-01-01"], "M8[D]")),
        (np.zeros(2, [("a", "i4")]), np.zeros(2, [("b", "i4")])),
        (np.array(["a"], "<U2"), np.array(["a"], ">U2")),
    ],
    ids=["zero_sign", "nan_payload", "sign", "shape", "unit", "field_name", "text_byte_order"],
)
def test_same_sees_every_difference(a: np.ndarray, b: np.ndarray) -> None:
    assert testing.same(a, a.copy())
    assert not testing.same(a, b)


def test_same_takes_numbers_in_either_byte_order() -> None:
    assert testing.same(np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4"))


# Broken plugins ----------------------------------------------------------------------------------


def _form(**fields: Any) -> Callable[[ModuleType], dict[str, Any]]:
    return lambda toy: {"FORMAT": toy.FORMAT._replace(**fields)}


def _read(function: Callable[[ModuleType, Source], Bundle]) -> Callable[..., dict[str, Any]]:
    """Replace `read`."""
    return lambda toy: {"read": lambda source: function(toy, source)}


def _planned(
    toy: ModuleType,
    fits: Callable[[Bundle], list] | None = None,
    write: Callable[[Bundle, Any], None] | None = None,
) -> dict[str, Any]:
    """Replace what a plan says, or what it writes."""

    def plan(bundle: Bundle) -> Plan:
        made = None if fits and write else toy.plan(bundle)
        found = fits(bundle) if fits else made.fits
        fill = (lambda target: write(bundle, target)) if write else made.write
        return Plan(found, fill, names=bundle.names)

    return {"plan": plan}


def _raises(error: Exception) -> Callable[..., Any]:
    def function(*_: object) -> None:
        raise error

    return function


def _kwargs(toy: ModuleType) -> dict[str, Any]:
    return {"read": lambda source, **options: toy.read(source)}


def _undeclared(toy: ModuleType) -> dict[str, Any]:
    def plan(bundle: Bundle, *, level: int = 1) -> Plan:
        return toy.plan(bundle)

    return {"plan": plan}


def _of_contract_1(toy: ModuleType) -> dict[str, Any]:
    def fits(bundle: Bundle, options: dict[str, Any]) -> list[Any]:
        return toy.plan(bundle).fits

    def write(bundle: Bundle, target: Any) -> None:
        toy.plan(bundle).write(target)

    return {"plan": None, "fits": fits, "write": write}


def _default_is_no_choice(toy: ModuleType) -> dict[str, Any]:
    def plan(bundle: Bundle, *, way: str = "c") -> Plan:
        return toy.plan(bundle)

    options = (Option("way", "c", ("a", "b"), "x"),)
    return {"FORMAT": toy.FORMAT._replace(write_options=options), "plan": plan}


def _decoded_at_once(toy: ModuleType, source: Source) -> Bundle:
    array = toy.read(source).arrays[0]
    return Bundle([array.replace(extent=None, data=np.array(array.data))])


def _first_half_only(toy: ModuleType, source: Source) -> Bundle:
    array = toy.read(source).arrays[0]
    return Bundle([array.replace(extent=None, data=lambda: _Half(array))])


class _Half:
    def __init__(self, array: Array) -> None:
        self.shape, self.dtype, self._array = array.dims[::-1], array.dtype, array

    def __getitem__(self, key: Any) -> np.ndarray:
        values = np.array(self._array.data)
        values[len(values) // 2 :] = 0 if values.ndim else values
        return values[key]


_LEFT_OPEN: list[Any] = []


def _leaking(toy: ModuleType, source: Source) -> Bundle:
    _LEFT_OPEN.append(source.open())
    return toy.read(source)


def _foreign_error(toy: ModuleType, source: Source) -> Bundle:
    if toy.HEADER.match(source.head) is None:
        raise ValueError(source.path)
    return toy.read(source)


def _nameless_error(toy: ModuleType, source: Source) -> Bundle:
    if toy.HEADER.match(source.head) is None:
        raise Corrupt("has no TOY header")
    return toy.read(source)


def _lenient(toy: ModuleType, source: Source) -> Bundle:
    """Take as many elements as there are."""
    header = toy.HEADER.match(source.head)
    if header is None:
        return toy.read(source)
    count = (source.size - header.end()) // toy.TYPES[header[1].decode()].nbytes
    element = toy.TYPES[header[1].decode()]
    extent = Extent(source.path, header.end(), count * element.nbytes)
    return Bundle([Array(element, (count,), name=source.stem, index_order="C", extent=extent)])


def _fits_looks(toy: ModuleType) -> dict[str, Any]:
    def fits(bundle: Bundle) -> list:
        if bundle.arrays[0].data is None:
            return []
        return toy.plan(bundle).fits

    return _planned(toy, fits)


def _fits_is_careless(toy: ModuleType) -> dict[str, Any]:
    """Let uint32 pass as int32."""

    def is_uint32(array: Array) -> bool:
        return array.element[:2] == ("uint", 4) and array.count > 0

    def fits(bundle: Bundle) -> list:
        return [] if is_uint32(bundle.arrays[0]) else toy.plan(bundle).fits

    def write(bundle: Bundle, target: Any) -> None:
        array = bundle.arrays[0]
        if is_uint32(array):
            data = array.data
            array = array.replace(element=toy.TYPES["i4"], data=lambda: data)
        toy.plan(Bundle([array])).write(target)

    return _planned(toy, fits, write)


def _refuses_values(toy: ModuleType) -> dict[str, Any]:
    """Refuse what only the values tell, and declare it of texts, which are no numbers."""

    def write(bundle: Bundle, target: Any) -> None:
        values = np.asarray(bundle.arrays[0].data)
        if values.dtype.kind == "i" and values.size and values.min() < 0:
            raise WouldLose("has a value below 0", path=target.path, where="element 0")
        toy.plan(bundle).write(target)

    return {"FORMAT": toy.FORMAT._replace(refuses="S"), **_planned(toy, write=write)}


def _refuses_none_that_it_declares(toy: ModuleType) -> dict[str, Any]:
    return {"FORMAT": toy.FORMAT._replace(refuses="i")}


def _mutating(toy: ModuleType) -> dict[str, Any]:
    def write(bundle: Bundle, target: Any) -> None:
        toy.plan(bundle).write(target)
        if isinstance(bundle.arrays[0].data, np.ndarray):
            bundle.arrays[0].data.setflags(write=True)
            bundle.arrays[0].data[...] = 0

    return _planned(toy, write=write)


def _random_output(toy: ModuleType) -> dict[str, Any]:
    def write(bundle: Bundle, target: Any) -> None:
        toy.plan(bundle).write(target)
        with open(target.temp, "ab") as file:
            file.write(os.urandom(8))

    return {**_planned(toy, write=write), "read": lambda source: _lenient(toy, source)}


def _silent_about_metadata(toy: ModuleType) -> dict[str, Any]:
    def fits(bundle: Bundle) -> list:
        return [fit for fit in toy.plan(bundle).fits if fit.property != "metadata"]

    return _planned(toy, fits)


def _swallowing(toy: ModuleType) -> dict[str, Any]:
    """Fill up with zeros where the data fails."""

    def write(bundle: Bundle, target: Any) -> None:
        try:
            toy.plan(bundle).write(target)
        except Exception:  # noqa: BLE001 - that is what is wrong with it
            header = Path(target.temp).read_bytes().partition(b"\n")[0]
            Path(target.temp).write_bytes(header + b"\n" + bytes(bundle.arrays[0].nbytes))

    return _planned(toy, write=write)


def _silent_about_shapes(toy: ModuleType) -> dict[str, Any]:
    def fits(bundle: Bundle) -> list:
        return [fit for fit in toy.plan(bundle).fits if fit.property != "shape"]

    return _planned(toy, fits)


def _flag_without_use(toy: ModuleType) -> dict[str, Any]:
    def fits(bundle: Bundle) -> list:
        return [fit._replace(flag="--dtype float64") for fit in toy.plan(bundle).fits]

    return _planned(toy, fits)


def _never_refuses(toy: ModuleType) -> dict[str, Any]:
    return _planned(toy, lambda bundle: [refused("", "type", "never", "please")])


BROKEN: dict[str, tuple[Callable[[ModuleType], dict[str, Any]], Callable[[ModuleType], None]]] = {
    "another_version": (_form(api=3), testing.check_format_is_frozen),
    "mutable_format": (
        lambda toy: {"FORMAT": type("Form", (), toy.FORMAT._asdict())},
        testing.check_format_is_frozen,
    ),
    "suffix_without_dot": (_form(suffixes=("toy",)), testing.check_format_fields),
    "name_of_a_built_in": (_form(name="npy"), testing.check_catalogue),
    "any_options": (_kwargs, testing.check_options),
    "undeclared_option": (_undeclared, testing.check_options),
    "declared_option_only": (
        _form(write_options=(Option("level", 1, int, "x"),)),
        testing.check_options,
    ),
    "default_is_no_choice": (_default_is_no_choice, testing.check_options),
    "functions_of_contract_1": (_of_contract_1, testing.check_options),
    "no_sample": (_form(samples={}), testing.check_samples_are_sure),
    "swapped_magic": (_form(magic=((0, b"OT1Y"),)), testing.check_samples_are_sure),
    "unsure": (lambda toy: {"sniff": lambda source: MAYBE}, testing.check_samples_are_sure),
    "claims_all": (lambda toy: {"sniff": lambda source: SURE}, testing.check_sniff_rejects_others),
    "sniff_raises": (
        lambda toy: {"sniff": lambda source: source.head[4]},
        testing.check_sniff_never_raises,
    ),
    "decoded_at_once": (_read(_decoded_at_once), testing.check_read_is_lazy),
    "wrong_regions": (_read(_first_half_only), testing.check_regions),
    "wrong_blocks": (_read(_first_half_only), testing.check_blocks),
    "left_open": (_read(_leaking), testing.check_close_frees_the_file),
    "foreign_error_when_cut": (_read(_foreign_error), testing.check_cut_samples),
    "foreign_error_when_flipped": (_read(_foreign_error), testing.check_flipped_samples),
    "nameless_error": (_read(_nameless_error), testing.check_cut_samples),
    "cut_file_accepted": (_read(_lenient), testing.check_cut_files),
    "fits_looks_at_data": (_fits_looks, testing.check_fits_is_pure),
    "fits_raises": (lambda toy: {"plan": _raises(KeyError("x"))}, testing.check_fits_is_pure),
    "flag_is_no_flag": (_never_refuses, testing.check_fits_is_pure),
    "flag_without_use": (_flag_without_use, testing.check_fits_is_pure),
    "type_lost": (_fits_is_careless, testing.check_round_trips),
    "values_refused": (_refuses_values, testing.check_round_trips),
    "values_not_refused": (_refuses_none_that_it_declares, testing.check_round_trips),
    "empty_axes_written": (_silent_about_shapes, testing.check_empty_shapes),
    "input_overwritten": (_mutating, testing.check_input_is_left_alone),
    "random_bytes_behind": (_random_output, testing.check_output_is_deterministic),
    "error_swallowed": (_swallowing, testing.check_failed_write_leaves_nothing),
    "metadata_lost": (_silent_about_metadata, testing.check_metadata_is_kept_or_named),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_kit_finds_what_is_broken(
    broken: str, toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, check = BROKEN[broken]
    module = ModuleType("raconvert_broken")
    vars(module).update({k: v for k, v in vars(toy).items() if not k.startswith("__")})
    vars(module).update(change(toy))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    try:
        with pytest.raises(AssertionError):
            check(module)
    finally:
        while _LEFT_OPEN:
            _LEFT_OPEN.pop().close()


def _only_the_new(bundle: Bundle, source: Source, held: Bundle, **_: Any) -> Plan:
    return import_module(MODULES["npz"]).plan(bundle)  # type: ignore[no-any-return]


def _whatever_is_there(bundle: Bundle, source: Source, held: Bundle, **_: Any) -> Plan:
    npz = import_module(MODULES["npz"])
    return npz.add(bundle, source, held, overwrite=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("add", [_only_the_new, _whatever_is_there])
def test_kit_finds_a_container_that_loses_arrays(
    add: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    npz = import_module(MODULES["npz"])
    module = ModuleType("raconvert_broken")
    vars(module).update({k: v for k, v in vars(npz).items() if not k.startswith("__")}, add=add)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises((AssertionError, WriteFailed)):
        testing.check_additions_keep_the_others(module)


@pytest.mark.parametrize("check", CHECKS)
def test_kit_takes_read_only_formats(
    check: Callable[[ModuleType], None],
    toy: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "from raconvert_toy import FORMAT, read, sniff\nFORMAT = FORMAT._replace(writes=False)\n"
    (tmp_path / "raconvert_reader.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "raconvert_reader", raising=False)

    check(import_module("raconvert_reader"))


PRINTING = """
import raconvert_toy
from raconvert_toy import FORMAT, plan, sniff
{}
def read(source):
    print("reading", source.path)
    return raconvert_toy.read(source)
"""


@pytest.mark.parametrize(
    ("line", "check"),
    [("import numpy", testing.check_import_is_light), ("", testing.check_is_silent)],
    ids=["imports_numpy", "prints"],
)
@pytest.mark.usefixtures("toy")
def test_kit_finds_what_is_broken_in_a_new_interpreter(
    line: str,
    check: Callable[[ModuleType], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "raconvert_printing.py").write_text(PRINTING.format(line))
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("raconvert_printing")
    monkeypatch.delitem(sys.modules, "raconvert_printing")
    monkeypatch.setitem(sys.modules, "raconvert_printing", module)

    with pytest.raises(AssertionError, match=r"numpy|standard output"):
        check(module)
