"""The conformance kit: what a plugin promises, as functions that raise `AssertionError`.

Built-in formats and formats of third parties are held to the same rules. The tests of a plugin::

    import pytest
    import raconvert_toy
    from raconvert.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    def test_conformance(check):
        check(raconvert_toy)

Every check takes the plugin's module and nothing else. It works in a temporary folder of its own,
needs no test runner, and does not need the plugin to be registered; the module must be importable
by its name, since some checks look at it from a fresh interpreter. A check that goes through many
arrays or many damaged files reports all that went wrong.

`CASES` are the arrays of the round trips: every element type of the core in both byte orders, and
every kind of shape and memory order.
"""

from __future__ import annotations

import gc
import inspect
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import Element, dtype_of, element_of, little
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.catalogue import FOREIGN, ROWS, Row
from raconvert.conversion.options import Settings
from raconvert.conversion.read import apply_sidecar
from raconvert.conversion.report import Report
from raconvert.conversion.run import Conversion
from raconvert.conversion.write import adapted, write_bundle
from raconvert.errors import RaconvertError, WouldLose
from raconvert.files.source import Source
from raconvert.plugin import API, EQUIVALENT, MAYBE, NO, REFUSED, SURE, Fit, Format, Option, Plugin
from raconvert.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

    Values = np.ndarray[Any, Any]

__all__ = ["CASES", "CHECKS", "Case", "same"]

SEED = 1  # of everything random here
FLIPS = 400  # damaged copies of each sample
MAX_MEMORY = 64 << 20  # a damaged file that asks for more is refused by the core
SHOWN = 12  # how many of the things that went wrong a message lists


def require(condition: object, what: str) -> None:
    """Raise `AssertionError` unless the condition holds; asserts would go with ``python -O``."""
    if not condition:
        raise AssertionError(what)


def require_none(problems: Iterable[str], of: str) -> None:
    """Raise one `AssertionError` that lists the problems, if there are any."""
    found = list(problems)
    more = [f"... and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    require(not found, "\n  ".join([f"{len(found)} {of}:", *found[:SHOWN], *more]))


# Arrays to write -------------------------------------------------------------------------------


class Case(Record):
    """One array of the round trips.

    `type` is a dtype or what numpy makes one of, `shape` the logical shape; `order` is the index
    order ``C`` or ``F``, ``none`` where the source has none, or ``strided`` for a view in C order
    whose memory is not contiguous.
    """

    type: Any
    shape: tuple[int, ...]
    order: str

    @property
    def values(self) -> Values:
        """The elements in logical order, read-only; the same at every call."""
        values = filled(np.dtype(self.type), self.shape)
        values.flags.writeable = False
        return values

    def array(self, name: str = "x") -> Array:
        """Return the array as an importer would hand it out."""
        values = self.values
        index_order: str | None = "C"
        if self.order == "F":
            index_order, values = "F", np.ascontiguousarray(values.T).reshape(values.shape[::-1])
        elif self.order == "none":
            index_order = None
        elif self.order == "strided":
            wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            wide[..., ::2] = values
            values = wide[..., ::2]
        values.flags.writeable = False
        element, dims = element_of(values.dtype), values.shape[::-1]
        return Array(element, dims, name=name, index_order=index_order, data=values)


def filled(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values:
    """Return an array of all kinds of bits: NaN payloads, -0.0, extremes, padded texts."""
    count = prod(shape)
    rng = np.random.default_rng(SEED)
    if dtype.names:
        values = np.zeros(count, dtype)
        for name in dtype.names:
            values[name] = filled(dtype[name].base, (count, *dtype[name].shape))
    elif dtype.kind == "b":
        values = np.arange(count) % 3 == 0
    elif dtype.kind in "SU":
        values = np.resize(np.array(["", "a", "b\0c", "yz"], dtype), count).astype(dtype)
        if dtype.kind == "U":
            values[1::4] = "日本é"
    else:
        values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
        little = dtype.newbyteorder("<")
        for place, special in zip((1, 2, 3, 4), _SPECIAL.get(little.str, ()), strict=False):
            if place < count:
                values[place] = (
                    np.array(bytes.fromhex(special)).view(f"V{dtype.itemsize}").view(little)[()]
                )
    return values.reshape(shape)


# Bits worth keeping, little-endian: -0.0, a quiet NaN with a payload, infinity, the smallest number
_SPECIAL = {
    "<f2": ("0080", "017e", "007c", "0100"),
    "<f4": ("00000080", "0100c07f", "0000807f", "01000000"),
    "<f8": ("0000000000000080", "010000000000f87f", "000000000000f07f", "0100000000000000"),
    "<c8": ("0000008000000080", "0100c07f0000c0ff"),
    "<M8[ns]": ("0000000000000080",),  # NaT
    "<m8[25s]": ("0000000000000080",),
}

_NUMBERS = ("i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
TYPES: dict[str, Any] = {
    "bool": np.dtype("?"),
    **{np.dtype(code).name: np.dtype(f"<{code}") for code in _NUMBERS},
    **{f"{np.dtype(code).name}-big": np.dtype(f">{code}") for code in _NUMBERS[2:]},
    "bytes": np.dtype("S5"),
    "text": np.dtype("<U4"),
    "text-big": np.dtype(">U4"),
    "datetime": np.dtype("<M8[ns]"),
    "datetime-big": np.dtype(">M8[D]"),
    "timedelta": np.dtype("<m8[25s]"),
    "void": np.dtype("V5"),
    "structured": np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "S2"), ("e", "?")])]),
    "aligned": np.dtype([("a", "u1"), ("b", "<f8"), ("ß", "<U2")], align=True),
}
try:
    import ml_dtypes
except ImportError:  # an extra
    pass
else:
    TYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
    TYPES["bfloat16-big"] = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")

SHAPES = (
    (),
    (1,),
    (5,),
    (0,),
    (4, 6),
    (1, 6),
    (4, 0),
    (5, 6, 3),
    (3, 4, 1),
    (2, 0, 3),
    (2, 3, 4, 5),
)
_ORDERS = {
    "C": SHAPES,
    "F": SHAPES[4:],
    "none": ((5,), (4, 6), (5, 6, 3)),
    "strided": ((5,), (4, 6)),
}

CASES: dict[str, Case] = {
    f"{name}-{'x'.join(map(str, shape)) or '0d'}-{order}": Case(dtype, shape, order)
    for name, dtype in TYPES.items()
    for order, shapes in _ORDERS.items()
    for shape in shapes
}


def same(expected: Values, got: Values) -> bool:
    """True if two arrays agree in shape, type and every bit; numbers in either byte order."""
    if expected.shape != got.shape or _settled(expected.dtype) != _settled(got.dtype):
        return False
    if expected.dtype.names:
        return all(same(expected[name], got[name]) for name in expected.dtype.names)
    return _settled_bytes(expected) == _settled_bytes(got)


def _settled(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype_of(little(element_of(dtype)))


def _settled_bytes(values: Values) -> bytes:
    return values.astype(_settled(values.dtype), copy=False).tobytes()


def same_values(expected: Values, got: Values) -> bool:
    """True if all values are there, in another form than the exact one.

    Axes of length 1 may come and go, numbers may have become another type that holds them, bools
    two numbers, complex numbers pairs on a new last axis, bytes the characters of their numbers,
    and elements their bare bytes.
    """
    if same(expected, got):
        return True
    expected, got = np.squeeze(expected), np.squeeze(got)
    if (expected.dtype.kind, got.dtype.kind) == ("S", "U"):
        expected = np.char.decode(expected, "latin-1")
    if expected.dtype.kind == "c" and got.shape == (*expected.shape, 2):
        expected = np.stack([expected.real, expected.imag], axis=-1)
    if expected.dtype.kind == "b" and got.dtype.kind in "iuf":
        return bool(np.array_equal(expected, got != 0)) and np.unique(got[expected]).size <= 1
    if "V" in (got.dtype.kind, expected.dtype.kind) and got.dtype.itemsize == expected.itemsize:
        return expected.shape == got.shape and expected.tobytes() == got.tobytes()
    if expected.dtype.name == "bfloat16":
        expected = expected.astype(np.float32)
    with np.errstate(all="ignore"):
        missing = expected.dtype.kind in "fcmM" and got.dtype.kind in "fcmM"
        return bool(np.array_equal(expected, got, equal_nan=missing))


# Using a plugin as the core does ---------------------------------------------------------------


def row_of(plugin: ModuleType) -> Row:
    """Return the catalogue row that the plugin's FORMAT amounts to."""
    shared = {field: getattr(plugin.FORMAT, field) for field in Row._fields if field != "module"}
    return Row(module=plugin.__name__, **shared)


def write(plugin: ModuleType, arrays: Iterable[Array], path: Path, **settings: Any) -> Report:
    """Write arrays to a file through the plugin, with every check of the core."""
    chosen = Settings(sync=False, max_memory=MAX_MEMORY, **settings)
    run = Conversion(str(path), row_of(plugin), chosen, Report([]))
    return write_bundle(run, Bundle(list(arrays)))


def read(plugin: ModuleType, path: Path) -> Bundle:
    """Read a file through the plugin, its sidecar included."""
    source = Source(str(path), max_memory=MAX_MEMORY)
    bundle: Bundle = plugin.read(source)
    bundle.path = str(path)
    apply_sidecar(bundle, source, row_of(plugin))
    return bundle


def decode(bundle: Bundle) -> list[Values]:
    """Return the arrays of a bundle in logical order, decoded to the last element, and close it."""
    with bundle:
        return [np.array(_joined(array, 1 << 20)) for array in bundle.arrays]


def _joined(array: Array, max_bytes: int) -> Values:
    """Return the blocks of an array as one, in logical order."""
    flat = np.empty(array.count, dtype_of(little(array.element)))
    done = 0
    for block in blocks(array, max_bytes):
        flat[done : done + block.size] = block.reshape(-1)
        done += block.size
    require(done == array.count, f"blocks hold {done} of {array.count} elements")
    values = flat.reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def suffix_of(plugin: ModuleType) -> str:
    """Return the usual suffix of the plugin's files; folders have none."""
    return next(iter(plugin.FORMAT.suffixes), "")


def contents_of(path: Path) -> dict[str, bytes]:
    """The content of a file, or of every file in a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="raconvert-") as folder:
        yield Path(folder)


@contextmanager
def sample_files(plugin: ModuleType) -> Iterator[list[Path]]:
    """Write the plugin's samples to files."""
    with scratch() as folder:
        paths = []
        for name, contents in plugin.FORMAT.samples.items():
            paths.append(folder / name)
            paths[-1].write_bytes(contents)
        names = tuple(f"{name}." for name in plugin.FORMAT.samples)
        yield [path for path in paths if not path.name.startswith(names)]  # those lie beside one


def _held(plugin: ModuleType, folder: Path) -> dict[int, tuple[Path, Values]]:
    """Write, for each rank, the first array that the plugin takes without a word."""
    found: dict[int, tuple[Path, Values]] = {}
    for case in CASES.values() if plugin.FORMAT.writes else ():
        rank = len(case.shape)
        if rank in found or prod(case.shape) < 2:
            continue
        path = folder / f"rank{rank}{suffix_of(plugin)}"
        try:
            report = write(plugin, [case.array()], path, overwrite=True)
        except WouldLose:
            continue
        if not report.equivalent:
            found[rank] = path, case.values
    return found


def _in_new_interpreter(plugin: ModuleType, code: str, *arguments: object) -> str:
    """Run code that imports the plugin by its name; fail unless it ends well, without a word.

    The code sets `answer`, which is returned as text.
    """
    whole = f"import sys\n{code}\nsys.stdout.flush()\nsys.__stderr__.write(f'\\0{{answer}}')"
    paths = [path for path in sys.path if path]
    done = subprocess.run(  # noqa: S603 - this interpreter, and code of this module
        [sys.executable, "-W", "always::ResourceWarning", "-c", whole, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed, _, answer = done.stderr.rpartition("\0")
    require(done.returncode == 0, f"{plugin.__name__} failed in a new interpreter: {done.stderr}")
    require(not done.stdout, f"{plugin.__name__} wrote to the standard output: {done.stdout!r}")
    require(not printed, f"{plugin.__name__} wrote to the standard error: {printed!r}")
    return answer


# FORMAT ----------------------------------------------------------------------------------------

# field -> test, in words
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (
        lambda v: isinstance(v, str) and v.isidentifier() and v == v.lower(),
        "a lower-case word",
    ),
    "title": (lambda v: isinstance(v, str) and bool(v), "a text"),
    "suffixes": (
        lambda v: _tuple_of(str, v) and all(s[0] == "." and s == s.lower() for s in v),
        "a tuple of lower-case suffixes with their dot, or () for folders",
    ),
    "magic": (
        lambda v: (
            isinstance(v, tuple)
            and all(type(at) is int and at >= 0 and isinstance(m, bytes) and m for at, m in v)
        ),
        "a tuple of (offset, bytes)",
    ),
    **{
        field: (lambda v: isinstance(v, bool), "True or False")
        for field in ("proof", "reads", "writes", "many", "lazy", "stream")
    },
    "meta": (lambda v: v in ("all", "some", "none"), "all, some or none"),
    "index_orders": (lambda v: v in ("", "C", "F", "CF"), "'', 'C', 'F' or 'CF'"),
    "needs": (
        lambda v: isinstance(v, tuple) and all(_tuple_of(str, need, 2) for need in v),
        "a tuple of (import name, requirement)",
    ),
    "read_options": (lambda v: _tuple_of(Option, v), "a tuple of Option"),
    "write_options": (lambda v: _tuple_of(Option, v), "a tuple of Option"),
    "samples": (
        lambda v: (
            isinstance(v, dict)
            and all(isinstance(n, str) and isinstance(c, bytes) and c for n, c in v.items())
        ),
        "a mapping from file name to bytes",
    ),
    "spec": (lambda v: isinstance(v, str), "a text"),
    "losses": (lambda v: isinstance(v, str), "a text"),
}


def _tuple_of(kind: type, value: Any, length: int | None = None) -> bool:
    whole = isinstance(value, tuple) and all(isinstance(item, kind) for item in value)
    return whole and length in (None, len(value))


def check_format_is_frozen(plugin: ModuleType) -> None:
    """FORMAT is a `Format` of this version of the contract, and cannot be changed."""
    form = plugin.FORMAT
    require(isinstance(form, Format), f"FORMAT is a {type(form).__name__}, not a Format")
    require(form.api == API, f"FORMAT.api is {form.api}, expected {API}")
    try:
        form.name = form.name
    except AttributeError:
        return
    raise AssertionError("FORMAT can be changed")


def check_format_fields(plugin: ModuleType) -> None:
    """Every field of FORMAT has the right type."""
    wrong = [
        f"{field} = {getattr(plugin.FORMAT, field)!r}, expected {words}"
        for field, (is_right, words) in _FIELDS.items()
        if not is_right(getattr(plugin.FORMAT, field))
    ]
    require_none(wrong, "fields of FORMAT are wrong")


def check_catalogue(plugin: ModuleType) -> None:
    """The catalogue row of a built-in format equals its FORMAT; no other has a built-in's name."""
    row = next((row for row in ROWS if row.module == plugin.__name__), None)
    if row is None:
        names = [other.name for other in ROWS]
        require(plugin.FORMAT.name not in names, f"'{plugin.FORMAT.name}' is a built-in format")
        return
    odd = [
        f"{field}: catalogue {getattr(row, field)!r}, FORMAT {getattr(plugin.FORMAT, field)!r}"
        for field in Row._fields
        if field != "module" and getattr(row, field) != getattr(plugin.FORMAT, field)
    ]
    require_none(odd, "fields differ")


def check_import_is_light(plugin: ModuleType) -> None:
    """Importing the plugin imports neither numpy nor the packages that it needs."""
    heavy = ["numpy", *(module for module, _ in plugin.FORMAT.needs)]
    code = "import importlib\nimportlib.import_module(sys.argv[1])\n"
    code += "answer = ' '.join(set(sys.argv[2:]) & set(sys.modules))"
    loaded = _in_new_interpreter(plugin, code, plugin.__name__, *heavy)
    require(not loaded, f"importing {plugin.__name__} imports {loaded}")


def check_options(plugin: ModuleType) -> None:
    """Options are keyword-only parameters with the names and defaults of their `Option` rows."""
    form = plugin.FORMAT
    none: tuple[Any, ...] = ()
    signatures = [("sniff", ["source"], none)]
    if form.reads:
        signatures.append(("read", ["source"], form.read_options))
    if form.writes:
        if callable(getattr(plugin, "plan", None)):
            signatures.append(("plan", ["bundle"], form.write_options))
        else:
            signatures.append(("fits", ["bundle", "options"], none))
            signatures.append(("write", ["bundle", "target"], form.write_options))
    wrong = []
    for function, positional, options in signatures:
        parameters = inspect.signature(getattr(plugin, function)).parameters
        kinds = {kind: [n for n, p in parameters.items() if p.kind == kind] for kind in _KINDS}
        plain = kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
        named = {n: parameters[n].default for n in kinds[inspect.Parameter.KEYWORD_ONLY]}
        declared = {option.name: option.default for option in options}
        if plain != positional or sum(map(len, kinds.values())) != len(parameters):
            wrong.append(f"{function}{tuple(parameters)}, expected {tuple(positional)}, then only "
                         "keyword-only options")  # fmt: skip
        if named != declared:
            wrong.append(f"{function} has the options {named}, FORMAT declares {declared}")
        wrong += [
            f"option {option.name} of {function} has the default {option.default!r}, not one of "
            f"{option.choices}"
            for option in options
            if not _is_choice(option)
        ]
    require_none(wrong, "options are wrong")


_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _is_choice(option: Any) -> bool:
    if isinstance(option.choices, tuple):
        return option.default in option.choices
    return option.choices in (int, float, bool, str) and type(option.default) is option.choices


# Sniffing --------------------------------------------------------------------------------------


def check_samples_are_sure(plugin: ModuleType) -> None:
    """There is a sample; each has a suffix of the format and one of its magics, and is sure."""
    form = plugin.FORMAT
    require(form.samples, "magic bytes may be declared only together with a sample")
    with sample_files(plugin) as paths:
        for path in paths:
            contents = path.read_bytes()
            fitting = any(contents[at : at + len(text)] == text for at, text in form.magic)
            require(fitting or not form.magic, f"sample {path.name} has none of the magics")
            fitting = path.name.endswith(form.suffixes) or not form.suffixes
            require(fitting, f"sample {path.name} has another suffix")
            verdict = plugin.sniff(Source(str(path)))
            require(verdict == SURE, f"sniff says {verdict} to sample {path.name}")


def check_sniff_rejects_others(plugin: ModuleType) -> None:
    """`sniff` says no to the samples of all other formats, to nothing, and to random bytes."""
    others = {"empty": b"", "text": b"0.5 1.5\n" * 20, "zeros": bytes(5000)}
    rng = random.Random(SEED)  # noqa: S311 - reproducible on purpose
    others |= {f"random {n}": rng.randbytes(n) for n in (1, 4, 16, 64, 500, 5000)}
    for row in ROWS:
        if row.module != plugin.__name__:
            form = __import__(row.module, fromlist=["FORMAT"]).FORMAT
            others |= {f"{row.name} {name}": data for name, data in form.samples.items()}
    for foreign in FOREIGN:
        for number, (at, text) in enumerate(foreign.magic):
            others[f"{foreign.title} {number}"] = bytes(at) + text + bytes(64)
    claimed = []
    with scratch() as folder:
        for number, (name, contents) in enumerate(others.items()):
            path = folder / f"{number}{suffix_of(plugin)}"
            path.write_bytes(contents)
            verdict = plugin.sniff(Source(str(path)))
            if verdict != NO:
                claimed.append(f"{name}: {verdict}")
    require_none(claimed, "foreign contents are claimed")


def check_sniff_never_raises(plugin: ModuleType) -> None:
    """`sniff` answers for every prefix of a sample."""
    failed = []
    for path, contents in _damaged(plugin, _prefixes(plugin)):
        try:
            verdict = plugin.sniff(Source(str(path)))
        except Exception as error:  # noqa: BLE001 - any error is what is looked for
            failed.append(f"{contents}: {error!r}")
        else:
            if verdict not in (NO, MAYBE, SURE):
                failed.append(f"{contents}: answer {verdict!r}")
    require_none(failed, "cut samples have no answer")


# Reading ---------------------------------------------------------------------------------------


def check_read_is_lazy(plugin: ModuleType) -> None:
    """`read` gives a bundle of arrays whose data is not there yet."""
    with sample_files(plugin) as paths:
        for path in paths:
            with plugin.read(Source(str(path))) as bundle:
                require(isinstance(bundle, Bundle), f"read gives a {type(bundle).__name__}")
                fitting = bundle.arrays or not plugin.FORMAT.suffixes  # of a folder only one file
                require(fitting, f"sample {path.name} has no array")
                require_none(_not_well_formed(bundle), "things are wrong in the bundle")
                decoded = [
                    array.name
                    for array in bundle.arrays
                    if isinstance(array.source, np.ndarray) and plugin.FORMAT.lazy
                ]
                require(not decoded, f"the data of {decoded} was decoded by read")


def _not_well_formed(bundle: Bundle) -> Iterator[str]:
    if len(set(bundle.names)) != len(bundle.names):
        yield f"repeated names: {bundle.names}"
    for array in bundle.arrays:
        if not isinstance(array, Array) or not isinstance(array.element, Element):
            yield f"{array!r} is not an Array of an Element"
        elif not isinstance(array.name, str) or not array.name:
            yield f"name {array.name!r}"
        elif not _tuple_of(int, array.dims) or min(array.dims, default=0) < 0:
            yield f"dims {array.dims!r} of '{array.name}'"
        elif array.index_order not in (None, "C", "F"):
            yield f"index order {array.index_order!r} of '{array.name}'"


def check_regions(plugin: ModuleType) -> None:
    """A region of an array is the slice of the whole."""
    with scratch() as folder:
        odd = []
        for path, values in _held(plugin, folder).values():
            for key in _KEYS[: 4 if values.ndim == 1 else None] if values.ndim else [()]:
                with read(plugin, path) as bundle:
                    if not same(values[key], bundle.arrays[0][key]):
                        odd.append(f"{values.dtype} {values.shape} [{key}]")
        require_none(odd, "regions differ from the slice of the whole")


_ALL = slice(None)
_KEYS: list[Any] = [
    ..., 0, slice(1, 3), slice(None, None, 2), (0, 0), (-1, slice(1, 2)), (_ALL, 1),
    (slice(1, None), slice(0, -1)), slice(0, 0),
]  # fmt: skip


def check_blocks(plugin: ModuleType) -> None:
    """Blocks of any size are contiguous, little-endian, bounded, and make up the whole."""
    with scratch() as folder:
        odd = []
        for path, values in _held(plugin, folder).values():
            for max_bytes in (1, 7, 64, 100, 1 << 20):
                with read(plugin, path) as bundle:
                    array = bundle.arrays[0]
                    place = f"{values.dtype} {values.shape} in blocks of {max_bytes} bytes"
                    for block in blocks(array, max_bytes):
                        if block.nbytes > max(max_bytes, block.itemsize):
                            odd.append(f"{place}: one of {block.nbytes}")
                        if not block.flags.c_contiguous or block.dtype.byteorder == ">":
                            odd.append(f"{place}: not contiguous, or big-endian")
                    if not same(values, _joined(array, max_bytes)):
                        odd.append(f"{place}: they do not make up the whole")
        require_none(odd, "things are wrong")


def check_close_frees_the_file(plugin: ModuleType) -> None:
    """After closing, also of what could not be read, no descriptor is left and none leaked."""
    with sample_files(plugin) as paths, warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
        before = _open_files()
        for path in paths:
            decode(plugin.read(Source(str(path))))
            bundle = plugin.read(Source(str(path)))
            bundle.close()
            del bundle
            contents = path.read_bytes()
            path.write_bytes(contents[: len(contents) // 2])
            _attempt(plugin, path)
            path.unlink()
        gc.collect()
        after = _open_files()
    leaked = [str(leak.message) for leak in leaks if leak.category is ResourceWarning]
    require(not leaked, f"left for the garbage collector to close: {leaked}")
    require(after <= before, f"files are still open: {sorted(after - before)}")


def _open_files() -> set[str]:
    """Return the open descriptors and what they are, where the system tells."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return set()
    found = set()
    for number in os.listdir(folder):
        try:
            found.add(f"{number}: {os.readlink(os.path.join(folder, number))}")
        except OSError:  # the descriptor of this listing itself
            continue
    return found


def check_unreadable_sources(plugin: ModuleType) -> None:
    """What is missing or is a folder is refused by an error of ours that names it."""
    with scratch() as folder:
        for path in (folder / f"missing{suffix_of(plugin)}", folder):
            problem = _attempt(plugin, path)
            require(problem is None, f"{path}: {problem}")
            try:
                plugin.read(Source(str(path)))
            except RaconvertError:
                continue
            raise AssertionError(f"{path} was read")


# Damage ----------------------------------------------------------------------------------------


def _prefixes(plugin: ModuleType) -> Iterator[tuple[str, bytes]]:
    for name, contents in plugin.FORMAT.samples.items():
        for length in range(len(contents)):
            yield f"{name} cut to {length} bytes", contents[:length]


def _flipped(plugin: ModuleType) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(SEED)  # noqa: S311 - reproducible on purpose
    for name, contents in plugin.FORMAT.samples.items():
        count = 8 * len(contents)
        for bit in sorted(rng.sample(range(count), min(FLIPS, count))):
            damaged = bytearray(contents)
            damaged[bit // 8] ^= 1 << bit % 8
            yield f"{name} with bit {bit % 8} of byte {bit // 8} flipped", bytes(damaged)


def _damaged(
    plugin: ModuleType, contents: Iterable[tuple[str, bytes]]
) -> Iterator[tuple[Path, str]]:
    """Write each of the contents to one file in turn; yield its path and what it is."""
    with scratch() as folder:
        path = folder / f"damaged{suffix_of(plugin)}"
        for what, data in contents:
            path.write_bytes(data)
            yield path, what


def _attempt(plugin: ModuleType, path: Path) -> str | None:
    """Read and decode a file; return what is wrong with the way in which that fails, if it does."""
    try:
        decode(plugin.read(Source(str(path), max_memory=MAX_MEMORY)))
    except RaconvertError as error:
        return None if str(path) in str(error) else f"the message does not name the file: {error}"
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        return f"raises {error!r}"
    return None


def _check_damage(plugin: ModuleType, contents: Iterable[tuple[str, bytes]]) -> None:
    """Damaged files decode, or raise an error of ours that names the file."""
    problems = ((what, _attempt(plugin, path)) for path, what in _damaged(plugin, contents))
    require_none([f"{what}: {p}" for what, p in problems if p], "damaged files are mishandled")


def check_cut_samples(plugin: ModuleType) -> None:
    """A sample cut at any byte decodes, or raises an error of ours that names the file."""
    _check_damage(plugin, _prefixes(plugin))


def check_flipped_samples(plugin: ModuleType) -> None:
    """A sample with any bit flipped decodes, or raises an error of ours that names the file."""
    _check_damage(plugin, _flipped(plugin))


def check_cut_files(plugin: ModuleType) -> None:
    """What the plugin wrote itself never gives other elements once it is cut."""
    with scratch() as folder:
        problems = []
        for path, values in _held(plugin, folder).values():
            for name, contents in contents_of(path).items():
                for length in range(0, len(contents), 1 + len(contents) // 100):
                    (path / name).write_bytes(contents[:length])
                    problem = _attempt(plugin, path)
                    if problem is None and not _is_whole_or_refused(plugin, path, values):
                        problem = "is taken for another array"
                    if problem:
                        problems.append(f"{values.shape} cut to {length} bytes: {problem}")
                (path / name).write_bytes(contents)
        require_none(problems, "cut files are mishandled")


def _is_whole_or_refused(plugin: ModuleType, path: Path, values: Values) -> bool:
    try:
        decoded = decode(plugin.read(Source(str(path))))
    except RaconvertError:
        return True
    return len(decoded) == 1 and same(values, decoded[0])


# Writing ---------------------------------------------------------------------------------------


def _over_cases(
    plugin: ModuleType,
    judge: Callable[[Case, Path], str | None],
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
) -> None:
    """Call `judge` with every case of these shapes and an empty folder; list what it says."""
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


FEW_SHAPES = ((), (4, 6), (3, 4, 1))  # where types and orders matter more than shapes


def _fits(plugin: ModuleType, array: Array) -> list[Fit]:
    """The fits of the plugin for an array, in an index order that it can store."""
    return Plugin(plugin).plan(Bundle([adapted(array, row_of(plugin), Settings())])).fits


def check_fits_is_pure(plugin: ModuleType) -> None:
    """`fits` looks at no data, changes nothing, never raises, and says the same again."""
    choices = [
        {option.name: choice}
        for option in plugin.FORMAT.write_options
        for choice in (option.choices if isinstance(option.choices, tuple) else ())
    ]

    def judge(case: Case, _: Path) -> str | None:
        array = case.array().replace(data=_no_data)
        before = _facts(array)
        for options in [{}, *choices]:
            try:
                first, again = (
                    Plugin(plugin).plan(Bundle([array]), **options).fits for _ in range(2)
                )
            except Exception as error:  # noqa: BLE001 - any error is what is looked for
                return f"raises {error!r}"
            if not all(map(_is_fit, first)):
                return f"answers {first!r}"
            if first != again or _facts(array) != before:
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
        and bool(fit.property and fit.reason)
        and (fit.flag is None or (fit.outcome == REFUSED and fit.flag.startswith("--")))
    )


def check_round_trips(plugin: ModuleType) -> None:
    """What `fits` lets pass comes back: bit for bit if exact, else with every value."""

    def judge(case: Case, folder: Path) -> str | None:
        array = case.array()
        refused = [fit for fit in _fits(plugin, array) if fit.outcome == REFUSED]
        path = folder / f"x{suffix_of(plugin)}"
        try:
            report = write(plugin, [array], path)
        except WouldLose as error:
            return None if refused else f"refused, though fits has nothing against it: {error}"
        if refused:
            return f"written, though fits refuses: {refused[0]}"
        with read(plugin, path) as bundle:
            got = _joined(bundle.arrays[0], 1 << 20)
        # What says nothing of indices is read by column-major formats as it is listed.
        listed = case.order == "none" and plugin.FORMAT.index_orders == "F"
        values = case.values.T if listed else case.values
        said = [str(fit) for fit in report.equivalent if fit.property != "metadata"]
        if said:
            whole = same_values(values, got)
            return None if whole else f"values changed, though only this was said: {said}"
        if same(values, got):
            return None
        return f"came back as {got.dtype} {got.shape} {got.ravel()[:4]}, and fits says exact"

    _over_cases(plugin, judge)


def check_refusals_write_nothing(plugin: ModuleType) -> None:
    """What `fits` refuses raises `WouldLose`, names the array, and leaves the folder as it was."""

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
    """Writing changes nothing in the arrays that are written."""

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
    """Two writes of one array give the same bytes."""

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
    """When the data fails halfway, the destination is as it was and nothing is beside it."""
    with scratch() as folder:
        for path, values in _held(plugin, folder).values():
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
    """Metadata comes back, from the file or its sidecar, or `fits` says that it will not."""
    with scratch() as folder:
        for rank, (path, values) in _held(plugin, folder).items():
            for field, meta in _some_metadata(rank).items():
                array = Array(element_of(values.dtype), values.shape[::-1], name="x", meta=meta,
                              index_order="C", data=values)  # fmt: skip
                report = write(plugin, [array], path, overwrite=True)
                if any(fit.property == "metadata" for fit in report.equivalent):
                    continue
                with read(plugin, path) as bundle:
                    got = bundle.arrays[0].meta.to_dict()
                expected = meta.to_dict()
                kept = {name: got.get(name) for name in expected}
                require(kept == expected, f"{field} became {kept}, and fits says nothing")


def _some_metadata(rank: int) -> dict[str, Metadata]:
    axes = [Axis(name=f"axis{n}", units="mm", spacing=0.5 + n) for n in range(rank)]
    found = {
        "description": Metadata(description="a 'quoted' text: é\n# second line"),
        "units": Metadata(units="m/s²"),
        "attributes": Metadata(attributes={"number": 1.5, "list": [1, "no", None], "yes": True}),
        "another namespace": Metadata(formats={"elsewhere": {"key": ["value", 2]}}),
    }
    return found | ({"axes": Metadata(axes=axes)} if rank else {})


def check_names_are_kept(plugin: ModuleType) -> None:
    """A format of many arrays keeps their names and order, or `fits` refuses the names."""
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
            with read(plugin, path) as bundle:
                require(bundle.names == names, f"{names} became {bundle.names}")


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


def check_is_silent(plugin: ModuleType) -> None:
    """Reading, failing to read and writing print nothing and leave no open file behind."""
    with sample_files(plugin) as paths, scratch() as folder:
        held = [path for path, _ in _held(plugin, folder).values()]
        broken = folder / f"broken{suffix_of(plugin)}"
        broken.write_bytes(paths[0].read_bytes()[:-1])
        _in_new_interpreter(plugin, _USE, plugin.__name__, folder, *paths, *held, broken)


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

CHECKS: tuple[Callable[[ModuleType], None], ...] = (
    check_format_is_frozen,
    check_format_fields,
    check_catalogue,
    check_import_is_light,
    check_options,
    check_samples_are_sure,
    check_sniff_rejects_others,
    check_sniff_never_raises,
    check_read_is_lazy,
    check_regions,
    check_blocks,
    check_close_frees_the_file,
    check_unreadable_sources,
    check_cut_samples,
    check_flipped_samples,
    check_cut_files,
    check_fits_is_pure,
    check_round_trips,
    check_refusals_write_nothing,
    check_input_is_left_alone,
    check_output_is_deterministic,
    check_failed_write_leaves_nothing,
    check_metadata_is_kept_or_named,
    check_names_are_kept,
    check_is_silent,
)
