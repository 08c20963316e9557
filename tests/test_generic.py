"""Generic code asks a format's row what it is, never for a format by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from cases import every

import raconvert
from raconvert import ra
from raconvert.catalogue import ROWS

CORE = Path(raconvert.__file__).parent
OWN = ("ra", "bundle")  # packages of formats themselves
NAMES = {row.name for row in ROWS}
# What a string that is a format's name means otherwise: (file or package, string) -> why.
OTHER = {
    ("__init__", "ra"): "the attribute raconvert.ra, a package",
    ("arrays", "ra"): "the namespace of the core itself, RA in memory",
    ("references", "hdf5"): "a kind of view, by external storage of HDF5",
    ("references", "nrrd"): "a kind of view, by a detached header",
    ("testing", "bundle"): "the parameter of `plan`",
}


def generic() -> list[Path]:
    """The modules of the core outside the formats' own packages, and the tables of formats."""
    found = [path.relative_to(CORE) for path in sorted(CORE.rglob("*.py"))]
    return [p for p in found if p.parts[0] not in (*OWN, "catalogue.py", "foreign.py", "plugins")]


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string constants of a module, with their lines; names of attributes are none."""
    nodes = [*ast.walk(ast.parse((CORE / path).read_text()))]
    slots = {
        inner
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in slots:
            yield node.lineno, node.value


@every("path", generic(), ids=str)
def test_generic_code_names_no_format(path: Path) -> None:
    found = [
        f"{path}:{line}: {text!r}"
        for line, text in strings(path)
        if text in NAMES and (path.with_suffix("").parts[0], text) not in OTHER
    ]
    assert not found


def test_the_table_of_other_meanings_is_short() -> None:
    used = {(p.with_suffix("").parts[0], text) for p in generic() for _, text in strings(p)}
    assert not set(OTHER) - used


@pytest.mark.parametrize("package", [raconvert, ra], ids=lambda package: package.__name__)
def test_no_public_function_has_the_name_of_a_module(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} | {p.name for p in folder.iterdir()}
    for name in package.__all__:
        if isinstance(getattr(package, name), FunctionType):
            assert name not in modules


def test_query_after_the_query_of_ra(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", [1, 2, 3])
    assert ra.query(tmp_path / "x.ra") == raconvert.query(tmp_path / "x.ra")
    assert callable(ra.query)
    assert callable(raconvert.query)


def test_the_rows_say_what_is_special() -> None:
    special = {row.name: (row.sidecar, row.trailer, row.folder) for row in ROWS}
    assert special.pop("ra") == ("auto", True, False)
    assert special.pop("bundle") == special.pop("zarr") == ("never", False, True)
    assert special.pop("omezarr") == ("never", False, True)
    assert special.pop("zip") == special.pop("tar") == ("never", False, False)
    assert set(special.values()) == {("asked", False, False)}
