"""The examples in the docstrings of public names: they run, and the most used names have one.

Each runs in a folder with ``grid.ra``, int32 of shape (3, 4) that counts from 0, ``two.npz``
with zeros `a` of shape (2, 3) and ones `b` of shape (2,), ``groups.npz``, and a folder ``lab`` with two .npy files.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import hashlib
import importlib
import inspect
import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cases import every

import raconvert
import raconvert.ra
from raconvert import errors, plugin, testing
from raconvert.api import array_of
from raconvert.arrays.blocks import as_ndarray, blocks, write_raw

# What users and plugin authors call most: each has an example.
SHOWN = [
    *(
        "convert",
        "migrate",
        "read",
        "open",
        "open_array",
        "open_bundle",
        "write",
        "info",
        "formats",
        "digest",
        "verify",
        "query",
    ),
    *("ra.read", "ra.write", "ra.query", "ra.Header"),
    *(
        "diff",
        "probe",
        "refs",
        "refresh",
        "Axis",
        "Metadata",
        "Space",
        "Probe",
        "Progress",
        "Report",
    ),
    *("RaconvertError", "UsageError", "UnknownFormat", "NotSupportedYet", "MissingDependency"),
    *(
        "Corrupt",
        "Changed",
        "Unsupported",
        "ReadFailed",
        "NotFound",
        "WriteFailed",
        "WouldLose",
        "Unsafe",
    ),
    *("TooLarge", "TargetExists"),
    *("Array", "Array.replace", "Array.__getitem__", "Array.__array__"),
    *("Array.astype", "Array.tolist", "Array.tobytes", "Bundle.group"),
    *("Bundle", "Bundle.get", "Bundle.only"),
    *("Metadata.replace", "Metadata.to_dict", "Metadata.from_dict"),
    *("plugin.Axis.to_dict", "plugin.Source", "plugin.Source.extent", "plugin.Source.read_at"),
    *("plugin.Source.read_exact", "plugin.Target", "plugin.Plan", "plugin.equivalent"),
    *("plugin.refused", "plugin.file_fits", "plugin.first_of", "plugin.element"),
    *("plugin.element_of", "plugin.dtype_of", "plugin.little", "plugin.type_name"),
    *("arrays.blocks.blocks", "arrays.blocks.as_ndarray", "arrays.blocks.write_raw"),
]
ERRORS = {name for name, value in vars(errors).items() if inspect.isclass(value)}
NAMES = {
    "Axis": plugin.Axis,
    "Array": raconvert.Array,
    "Bundle": raconvert.Bundle,
    "Metadata": raconvert.Metadata,
    "Space": raconvert.Space,
    "Path": Path,
    "Source": plugin.Source,
    "Target": plugin.Target,
    "array_of": array_of,
    "as_ndarray": as_ndarray,
    "blocks": blocks,
    "element": plugin.element,
    "hashlib": hashlib,
    "np": np,
    "os": os,
    "raconvert": raconvert,
    "write_raw": write_raw,
}


def found(path: str) -> Any:
    """The object of a dotted name below raconvert."""
    value: Any = raconvert
    for part in path.split("."):
        if isinstance(value, ModuleType) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    raconvert.ra.write("grid.ra", np.arange(12, dtype="<i4").reshape(3, 4))
    np.savez("two.npz", a=np.zeros((2, 3)), b=np.ones(2))
    np.savez("groups.npz", **{"subj/x": np.zeros((2, 3)), "subj/y": np.ones(2), "z": np.ones(3)})
    (tmp_path / "lab").mkdir()
    for name in ("x", "y"):
        np.save(tmp_path / "lab" / f"{name}.npy", np.arange(3))
    return tmp_path


def test_every_public_name_has_an_example() -> None:
    assert len(SHOWN) == len(set(SHOWN))
    public = {*raconvert.__all__, *(f"ra.{name}" for name in raconvert.ra.__all__)}
    assert public <= {*SHOWN}


@pytest.mark.parametrize("path", SHOWN)
def test_examples_of_docstrings_run(path: str, examples: Path) -> None:
    thing = found(path)
    module = inspect.getmodule(thing)
    names = {**vars(module), **NAMES}
    tests = doctest.DocTestFinder(recurse=False).find(thing, path, module=False, globs=names)
    flags = doctest.ELLIPSIS
    printed: list[str] = []

    assert [test for test in tests if test.examples], f"{path} has no example"
    for test in tests:
        doctest.DocTestRunner(optionflags=flags).run(test, out=printed.append)
    assert printed == [], "".join(printed)


def test_the_programs_of_the_package_run(examples: Path) -> None:
    """The three at the head of the package, with which the page of the API begins."""
    text = inspect.getdoc(raconvert) or ""
    found = re.findall(r"::\n\n((?: {4}.*\n|\n(?= ))+)", text)
    read, convert, look = map(textwrap.dedent, found)
    ramp = np.arange(24, dtype="u1").reshape(4, 6)
    for folder in ("in/deep", "mnist"):
        Path(folder).mkdir(parents=True)
    for name in ("scan.ra", "scan.npy", "in/deep/x.ra", "b.ra", "scan.h5", "scan.mat"):
        raconvert.write(name, {"group/x" if name == "scan.h5" else "x": ramp})
    for number in range(4):
        raconvert.write(f"mnist/{number}.png", ramp + number)
    np.save("a.npy", ramp + np.float32(1e-7))
    shutil.copy("scan.ra", "scan.bin")
    names: dict[str, Any] = {}

    exec(read, names)
    Path("scan.ra").unlink()  # which the second makes
    exec(convert, names)
    exec(look, names)

    assert np.array_equal(names["x"], ramp)
    assert np.array_equal(names["plane"], ramp[3])
    assert np.array_equal(raconvert.read("copy.nrrd"), ramp)
    assert raconvert.read("mnist.ra").shape == (4, 4, 6)
    assert np.array_equal(np.load("out/deep/x.npy"), ramp)
    assert (raconvert.read("lab-ra/x.ra") == np.arange(3)).all()
    assert Path("scan.json").exists()


RAISES = re.compile(r"\b[Rr]aises? (nothing|what|the errors|`\w+`)|\b[Nn]ever raises\b")


def public_functions() -> Iterator[tuple[str, Any]]:
    """Yield the functions of the public modules, and the methods of their classes, with a path."""
    for module in (raconvert, raconvert.ra, plugin, testing):
        for name in module.__all__:
            thing, path = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isfunction(thing):
                yield path, thing
            elif inspect.isclass(thing) and not issubclass(thing, Exception):
                for key, value in vars(thing).items():
                    own = getattr(value, "__func__", value)  # of class methods
                    if inspect.isfunction(own) and (key == "__getitem__" or key[0] != "_"):
                        yield f"{path}.{key}", own


PUBLIC = dict(public_functions())


def protocols() -> dict[str, str]:
    """The docstrings of the functions of a plugin, as the contract has them."""
    tree = ast.parse(inspect.getsource(plugin))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and [ast.unparse(b) for b in node.bases] == ["Protocol"]
    }


def says_errors(text: str) -> bool:
    """True if a docstring says what is raised; names of errors among it are names of errors."""
    text = " ".join(text.split())
    named = re.findall(r"\b[Rr]aises? `(\w+)`", text)
    return RAISES.search(text) is not None and {*named} <= ERRORS | {*vars(builtins)}


def test_there_are_public_functions_in_every_module() -> None:
    for module in ("raconvert", "raconvert.ra", "raconvert.plugin", "raconvert.testing"):
        assert [path for path in PUBLIC if path.rpartition(".")[0] == module], module
    assert len(PUBLIC) > 100


@every("path", PUBLIC)
def test_public_functions_name_their_errors(path: str) -> None:
    assert says_errors(inspect.getdoc(PUBLIC[path]) or "")


@pytest.mark.parametrize(("name", "text"), protocols().items(), ids=protocols())
def test_functions_of_a_plugin_name_their_errors(name: str, text: str) -> None:
    assert says_errors(text)


def test_every_function_of_a_plugin_has_a_protocol() -> None:
    slots = {*plugin.Plugin.__slots__} - {"FORMAT"}

    assert len(protocols()) == len(slots)


def test_the_judge_of_docstrings() -> None:
    assert says_errors("The size. Raises\n`Corrupt` if there is none.")
    assert says_errors("Never raises on foreign bytes.")
    assert not says_errors("The size; `Corrupt` if there is none.")
    assert not says_errors("The size. Raises `Corupt`.")


@every("path", raconvert.__all__)
def test_public_names_are_documented(path: str) -> None:
    assert inspect.getdoc(found(path))


@every("name", plugin.__all__)
def test_names_of_the_contract_are_documented(name: str) -> None:
    thing = getattr(plugin, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert inspect.getdoc(thing), name
        own = vars(thing).items() if inspect.isclass(thing) else ()
        for key, value in own:
            if inspect.isfunction(value) and not key.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{key}"


# What a docstring has to say where a function takes bytes, or arrays of elements.
SIZES = {"max_memory", "nbytes", "offset"}
ORDERS = re.compile(r"\b(shape|dims|axis|axes|order|slowest|fastest)\b")


@every("path", PUBLIC)
def test_public_functions_say_units_and_order_of_axes(path: str) -> None:
    signature = inspect.signature(PUBLIC[path])
    types = [one.annotation for one in signature.parameters.values()]
    text = inspect.getdoc(PUBLIC[path]) or ""

    if SIZES & {*signature.parameters}:
        assert re.search(r"\bbytes?\b", text)
    if re.search(r"ndarray|\bValues\b", f"{types} {signature.return_annotation}"):
        assert ORDERS.search(text)
