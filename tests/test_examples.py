"""The examples in the docstrings of public names: they run, and the most used names have one.

Each runs in a folder with ``grid.ra``, int32 of shape (3, 4) that counts from 0, and ``two.npz``
with zeros `a` of shape (2, 3) and ones `b` of shape (2,).
"""

from __future__ import annotations

import doctest
import hashlib
import importlib
import inspect
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import raconvert
import raconvert.ra
from raconvert import errors, plugin
from raconvert.api import array_of
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.raw import write_raw

# What users and plugin authors call most: each has an example.
SHOWN = [
    *("convert", "read", "open", "write", "info", "formats", "digest", "verify", "query"),
    *("ra.read", "ra.write"),
    *("Array", "Array.replace", "Array.__getitem__", "Array.__array__"),
    *("Bundle", "Bundle.get", "Bundle.only"),
    *("Metadata.copy", "Metadata.to_dict", "Metadata.from_dict"),
    *("plugin.Axis.to_dict", "plugin.Source", "plugin.Source.extent", "plugin.Source.read_at"),
    *("plugin.Source.read_exact", "plugin.Target", "plugin.Plan", "plugin.equivalent"),
    *("plugin.refused", "plugin.file_fits", "plugin.first_of", "plugin.element"),
    *("plugin.element_of", "plugin.dtype_of", "plugin.little", "plugin.type_name"),
    *("arrays.blocks.blocks", "arrays.blocks.as_ndarray", "arrays.raw.write_raw"),
]
# Of these nothing but the arguments can be wrong.
CANNOT_FAIL = {"formats", "refresh"}
ERRORS = {name for name, value in vars(errors).items() if inspect.isclass(value)}
NAMES = {
    "Axis": plugin.Axis,
    "Array": raconvert.Array,
    "Bundle": raconvert.Bundle,
    "Metadata": raconvert.Metadata,
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
    return tmp_path


def test_thirty_names_at_least_have_an_example() -> None:
    assert len(SHOWN) == len(set(SHOWN))
    assert len(SHOWN) >= 30


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


@pytest.mark.parametrize("path", sorted({*raconvert.__all__, "ra.read", "ra.write", "ra.query"}))
def test_public_functions_name_their_errors(path: str) -> None:
    thing = found(path)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing) and path not in CANNOT_FAIL:
        assert any(f"`{name}`" in inspect.getdoc(thing) or "raconvert.errors" in inspect.getdoc(thing)
                   for name in ERRORS)  # fmt: skip


@pytest.mark.parametrize("name", plugin.__all__)
def test_names_of_the_contract_are_documented(name: str) -> None:
    thing = getattr(plugin, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert inspect.getdoc(thing), name
        own = vars(thing).items() if inspect.isclass(thing) else ()
        for key, value in own:
            if inspect.isfunction(value) and not key.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{key}"
