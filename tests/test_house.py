"""The order of the house: packages, arrows between modules, and sizes.

The modules are read, not imported. Exceptions stand in tables, each with its reason; one that is gone fails.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BASES = (("raconvert", ROOT / "raconvert"), ("raconvert.plugins", ROOT / "plugins"))
COMPILED = {  # modules of C, which import nothing of ours
    ".".join([name, *path.relative_to(folder).with_suffix("").parts])
    for name, folder in BASES
    for path in folder.rglob("*.c")
}
MOST_ENTRIES = 12  # in raconvert/, beside packages


@cache
def modules() -> dict[str, Path]:
    """Every module of the project by its dotted name."""
    found = {}
    for name, folder in BASES:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join([name, *parts])] = path
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def is_core(name: str) -> bool:
    return not name.startswith("raconvert.plugins")


# Imports -----------------------------------------------------------------------------------------


def source_of(name: str, node: ast.ImportFrom) -> str:
    """The dotted name of what a module imports from."""
    if not node.level:
        return node.module or ""
    package = name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]
    parts = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def imports_of(name: str) -> Iterator[tuple[str, bool]]:
    """The modules of ours that a module imports, each with True where a function does it."""

    def targets(node: ast.ImportFrom | ast.Import) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            return
        base = source_of(name, node)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in modules() or inner in COMPILED else base

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in targets(child):
                    if target in modules() and target not in (name, "raconvert"):
                        yield target, inside
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from visit(child, inside or function)

    yield from visit(tree(name), False)


@cache
def arrows() -> dict[str, set[str]]:
    """All imports: at run time, in functions, and for type checkers."""
    return {name: {target for target, _ in imports_of(name)} for name in modules()}


def circle_through(start: str) -> list[str]:
    """The shortest way along imports from a module back to itself; empty if there is none."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for target in sorted(arrows()[way[-1]]):
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


CIRCLES: dict[str, str] = {  # module -> reason
}


def test_no_import_circles() -> None:
    found = {name: circle_through(name) for name in modules()}
    circles = {name: " -> ".join(way) for name, way in found.items() if way}

    assert set(circles) == set(CIRCLES), circles


# From the bottom to the top; a package imports what stands before it.
FLOORS = (
    ("errors", "declared"),
    ("files", "workers"),
    ("arrays",),
    ("metadata",),
    ("plugin", "catalogue"),
    ("ra", "bundle"),
    ("foreign",),
    ("registry",),
    ("conversion",),
    ("references",),
    ("inspect",),
    ("views",),
    ("migration",),
    ("viewer",),
    ("api", "dask", "imageio", "testing", "xarray"),
    ("cli",),
    ("__main__",),
)
UPWARDS: dict[tuple[str, str], str] = {  # (module, what it imports) -> reason
}


def floor_of(name: str) -> int:
    room = name.split(".")[1]
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def test_imports_of_the_core_lead_down() -> None:
    found = {
        (name, target)
        for name in modules()
        if is_core(name) and name != "raconvert"
        for target in arrows()[name]
        if is_core(target) and floor_of(target) > floor_of(name)
    }

    assert found == set(UPWARDS)


def heavy() -> set[str]:
    """The modules of which the import also imports numpy, a backend, or many others."""
    found = {
        name
        for name in modules()
        for node in tree(name).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (node.names[0].name if isinstance(node, ast.Import) else node.module or "").split(".")[
            0
        ]
        in HEAVY
    }
    direct = defaultdict(set)
    for name in modules():
        for target, inside in imports_of(name):
            if not inside:
                direct[name].add(target)
    grown = True
    while grown:
        more = {name for name in modules() if direct[name] & found} - found
        found |= more
        grown = bool(more)
    return found


HEAVY = ("numpy", "yaml", "argparse", "ctypes", "subprocess", "concurrent", "tempfile", "json")

# Names ------------------------------------------------------------------------------------------

# Names with an underscore that others offer for use.
OFFERED = {
    "_exit": "os",
    "_getframe": "sys has no other way to the frame at hand",
    "_fields": "namedtuple",
    "_replace": "namedtuple",
    "_asdict": "namedtuple",
    "_make": "namedtuple",
    "_actions": "argparse has no other list of the options of a parser",
    "_uri_type": "imageio tells a plugin so what it was given",
    "_close_open_objects": "h5py has no other way to close what is open in a file",
    "_": "argparse calls its translations so",
    "_call_s3": "the call of s3fs that can be given up, when its user interrupts",
}
REACHES: dict[tuple[str, str], str] = {  # (module, name) -> reason
    ("raconvert.plugins.png.engine", "_fast"): "the compiled half of itself",
}


def own_names(name: str) -> set[str]:
    """The private names that a module defines itself, on any level."""
    found: set[str] = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # __slots__
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OFFERED


def reaches_of(name: str) -> Iterator[tuple[str, str]]:
    """The private names of others that a module uses or imports."""
    own = own_names(name)
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield name, node.attr
        elif isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or (node.module or "").startswith("raconvert")
            for alias in node.names:
                if ours and is_private(alias.name):
                    yield name, alias.name


def test_no_module_reaches_into_another() -> None:
    found = {reach for name in modules() for reach in reaches_of(name)}

    assert found == set(REACHES)


def test_names_that_others_offer_are_used() -> None:
    used = {
        name
        for module in modules()
        for node in ast.walk(tree(module))
        for name in (
            [node.attr] if isinstance(node, ast.Attribute)
            else [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom)
            else []
        )
    }  # fmt: skip

    assert set(OFFERED) - used == set()


# Modules that offer what others define: the contract, and packages that import on first use.
COLLECTIONS = {
    "raconvert.plugin": "the types of the contract",
}


@cache
def defined_in(name: str) -> set[str]:
    """The names that a module makes itself, wherever in it, and imports that have a fallback."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Try):
            imports = [
                one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom)
            ]
            found |= {alias.asname or alias.name for one in imports for alias in one.names}
    return found


def test_names_are_imported_from_where_they_are_defined() -> None:
    found = defaultdict(list)
    for name in modules():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ImportFrom):
                source = source_of(name, node)
                if source in modules() and source != "raconvert":
                    own = defined_in(source)
                    for alias in node.names:
                        inner = f"{source}.{alias.name}"
                        if alias.name not in own and not {inner} & {*modules(), *COMPILED}:
                            found[source].append(f"{name}: {alias.name}")

    assert set(found) == set(COLLECTIONS), dict(found)


# Sizes ------------------------------------------------------------------------------------------


def test_few_modules_lie_beside_the_packages() -> None:
    entries = [path.name for path in (ROOT / "raconvert").iterdir() if path.is_file()]

    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_the_circle_finder_finds_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    monkeypatch.setitem(globals(), "arrows", lambda: ring)

    assert circle_through("a") == ["a", "b", "c", "a"]
    assert circle_through("d") == []
    assert all(target in ring[name] for name, target in pairwise(circle_through("b")))


def test_every_test_file_has_a_name_of_its_own() -> None:
    """Pytest cannot collect two of one name in folders that are not packages."""
    found = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))

    assert [name for name, count in found.items() if count > 1] == []


TURNING = {
    "raconvert.arrays.array": "listed: the same dims in the other index order",
    "raconvert.arrays.transpose": "permuted: other axes first",
}


def test_one_place_turns_an_array_and_its_metadata() -> None:
    """Metadata is in the order of `shape`: whoever else turned it would turn it twice."""
    found = set()
    for name in modules():
        calls = [node for node in ast.walk(tree(name)) if isinstance(node, ast.Call)]
        found |= {name for call in calls if ast.unparse(call.func).endswith("meta.permuted")}
    assert found == set(TURNING)


# Bounds of parsers --------------------------------------------------------------------------------

# A constant that bounds something is a field of `Limits`, unless one of these reasons holds.
BOUND = re.compile("(?:^|_)(?:MAX|MOST|LARGEST|LONGEST|DEEPEST|LIMITS?)(?:_|$)")
PARSERS = ("plugins.", "arrays.", "bundle.", "files.", "metadata.", "ra.", "references.")
NO_LIMITS = {
    "the format, or the program that reads it, has no more": """
        files.inflate.MAX_RATIO files.remote.target.MOST_PARTS files.zips.MAX_NAME_BYTES
        files.zips._LARGEST files.zips._MOST files.zipsplice._LARGEST
        files.zipsplice._MOST_EXTRA metadata.plain.MAX_INDENT arrays.dtypes.MAX_SPAN
        arrays.dtypes.MAX_FIELD_AXES arrays.dtypes._MOST_AXES arrays.memory.MAX_RANK
        metadata.reals.LARGEST metadata.yaml.MAX_KEY plugins.cfl.MOST_AXES
        plugins.fits.tables.MAX_COLUMNS plugins.fits.tables.MAX_RANK
        plugins.har.header.MOST_BYTES plugins.har.records._MAX_BYTES
        plugins.har.tables.DELPHI_LIMIT plugins.har.tables.FULL_LIMIT
        plugins.har.tables.MATRIX_LIMIT plugins.har.tables.MAX_INT32 plugins.har.tables.MAX_RANK
        plugins.har.tables.SPARSE_LIMIT plugins.hdf5.dense.MAX_INDIRECT
        plugins.hdf5.files.MOST_BYTES plugins.hdf5.ondisk.btrees.MAX_EMPTY_NODE
        plugins.hdf5.ondisk.header.MAX_RANK plugins.hdf5.storage.MAX_BYTES
        plugins.hdf5.tables.MAX_LENGTH plugins.hdf5.tables.MAX_RANK plugins.idx.MAX_LENGTH
        plugins.idx.MAX_RANK plugins.idx.MOST_HEADER_BYTES plugins.image.bmp.MAX_SIDE
        plugins.image.gif.MAX_SIDE plugins.image.jpeg.MAX_SIDE plugins.image.netpbm.MAX_SIDE
        plugins.image.tiff.metadata.MAX_RANK plugins.image.webp.MAX_SIDE
        plugins.mat.tables.MAX_DIM plugins.mat.tables.MAX_NAME plugins.mat.tables.MAX_RANK
        plugins.mat.tables.MAX_V5_BYTES plugins.mat.tree.MAX_AXES
        plugins.mat.writer.MAX_CHARACTER plugins.metaimage.header.MAX_RANK
        plugins.mrc.MAX_LENGTH plugins.mrc.MAX_RANK plugins.netcdf3.tables.MOST_BEGIN
        plugins.netcdf3.tables.MOST_BYTES plugins.netcdf3.tables.MOST_LENGTH
        plugins.tables.sheets.MAX_COLUMNS plugins.tables.sheets.MAX_ROWS
        plugins.r.items.MOST_SEQUENCE plugins.r.tables.MOST_EXACT plugins.r.tree.MOST_AXES
        plugins.nifti.tables.MAX_LENGTH_1 plugins.nifti.tables.MAX_RANK
        plugins.nifti.tables.MOST_HEADER_BYTES plugins.npy.header.MAX_ITEM_BYTES
        plugins.npy.header.MAX_RANK plugins.npz.tables.LONGEST_NAME
        plugins.ome.axes.MOST_SAMPLES plugins.ome.tiff.plan.LONGEST
        plugins.ome.zarr.metadata.MOST_AXES plugins.nrrd.fields.MAX_NUMBER_CHARS
        plugins.nrrd.fields.MAX_SKIP plugins.nrrd.header.MAX_NUMBER_WIDTH
        plugins.nrrd.tables.MAX_ARRAY_BYTES plugins.nrrd.tables.MAX_BLOCK_BYTES
        plugins.nrrd.tables.MAX_RANK plugins.nrrd.tables.MAX_SPACE_RANK
        plugins.png.pixels.MAX_STORED_BYTES plugins.png.tables.MAX_SIDE plugins.raw.MAX_RANK
        plugins.safetensors.MAX_HEADER_BYTES plugins.safetensors.MAX_RANK
        plugins.scidb.schema.MAX_COORDINATE plugins.scidb.schema._MAX_DIGITS
        plugins.webdataset.tables.MOST_SHARDS
        plugins.scidb.columns.MAX_COUNT plugins.scidb.columns.MAX_SIZE
        plugins.zarr.tables.MAX_RANK ra.header.LARGEST ra.leb128.MAX_GROUP_BYTES
        ra.lz4.MAX_BLOCK_BYTES ra.lz4.MAX_RATIO references.headers.MOST_AXES
        references.headers.MOST_BANDS references.headers.MOST_BYTES_OF_INT""",
    "only writing asks": """
        bundle.members.MAX_PATH_BYTES plugins.fits.tables.MAX_TEXT files.names._LONGEST
        plugins.hdf5.descriptions.MAX_TYPE_BYTES plugins.hdf5.structure.MAX_CHUNK_BYTES
        arrays.interop.conventions.MOST_WRITTEN plugins.image.tiff.ome.MOST_SAMPLES
        plugins.image.tiff.writer.MAX_PLANES plugins.image.tiff.writer.MAX_SAMPLES
        plugins.image.webp_writer.MOST_BYTES
        plugins.mat.contents.MOST_GAPS
        plugins.metaimage.metadata.MAX_TEXT plugins.tables.arrow_plan.MAX_LIST
        plugins.tables.plan.LONGEST
        plugins.tables.xlsx_plan.MAX_RECORD plugins.tables.xlsx_plan.MAX_TEXT
        plugins.nrrd.metadata.MAX_TEXT_BYTES plugins.ome.options.MOST_LEVELS
        plugins.r.plan.MAX_INTEGER plugins.r.plan.MOST_ELEMENTS plugins.r.plan.MOST_LENGTH
        plugins.r.writer.LONGEST_SHORT plugins.png.plan.MAX_CHANNELS
        plugins.scidb.metadata.MAX_NAME_BYTES plugins.webdataset.plan.LONGEST_NAME plugins.zarr.metadata.MOST
        plugins.zarr.form.MAX_CHUNK_BYTES plugins.zarr.plan.MAX_PATH_BYTES
        references.pieces.MOST_PIECES""",
    "people are shown, or metadata keeps, so many": """
        arrays.summary.MOST_AXES arrays.summary.MOST_LABELS arrays.summary.MOST_LINES
        arrays.summary.MOST_NUMBERS arrays.summary.MOST_TEXT files.paths.MOST_NAMES
        plugins.har.data.MAX_DEVIATIONS plugins.hdf5.reader.MAX_NOTES
        plugins.hdf5.anndata.MOST_NAMED plugins.mat.contents.MOST_NAMED
        plugins.mat.tree.MAX_NAMED plugins.mat.tree.MAX_NOTES plugins.nrrd.header.MAX_NOTES
        plugins.png.stack.MAX_NOTES plugins.png.tables.MAX_NOTES plugins.r.tree.LONGEST_EXPRESSION
        plugins.r.tree.MOST_NOTES plugins.scidb.header.LARGEST_SHOWN plugins.webdataset.samples.LONGEST_SHOWN references.check.MOST_NAMED""",
    "beyond it another way is taken, or a cache is emptied": """
        arrays.blocks.LARGEST_BLOCK arrays.regions.MOST_REGIONS arrays.transpose.LARGEST_SLAB
        files.remote.source.LARGEST_RANGE files.small.MOST files.source.HELD_AT_MOST
        plugins.hdf5.chunks.LARGEST_UNCHECKED plugins.hdf5.chunks.LARGEST_UNFILTERED
        plugins.lmdb.values.MOST_FIELDS plugins.hdf5.walk._MOST_FORMS plugins.hdf5.walk._MOST_KINDS
        plugins.mat.parts.MAX_STOPPED plugins.r.streams.MOST_KEPT plugins.npy.header._MOST_CACHED
        plugins.png.alike.MOST_BYTES""",
    "values of a program; those of a source are counted where they are parsed": """
        arrays.metadata._MAX_DEPTH""",
    "not a number: where the system says how much memory there is": "arrays.memory.CGROUP_LIMIT",
    "the default of `Limits.memory`, which has no import": "files.source.DEFAULT_MAX_MEMORY",
}


def test_bounds_of_parsers_are_fields_of_limits() -> None:
    """A test and a user find them all in one place; each other bound has a reason in the table."""
    found = set()
    for name in modules():
        short = name.removeprefix("raconvert.")
        if not f"{short}.".startswith(PARSERS):
            continue
        for node in tree(name).body:
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            names = [one.id for to in targets if to for one in ast.walk(to) if hasattr(one, "id")]
            found |= {f"{short}.{one}" for one in names if BOUND.search(one)}
    listed = [one for names in NO_LIMITS.values() for one in names.split()]
    assert len(listed) == len(set(listed))
    assert sorted(found - set(listed)) == [], "a bound of a parser is a field of `Limits`"
    assert sorted(set(listed) - found) == [], "is not there any more"


# Who asks for the defaults has no source whose limits they could be.
ASKS_FOR_DEFAULTS = {
    "what is written must be readable again, by whoever asks for no other limits": """
        bundle.manifest conversion.outputs metadata.json metadata.roundtrip metadata.sidecar
        metadata.yaml plugins.cfl plugins.hdf5.attributes plugins.hdf5.descriptions
        plugins.hdf5.elements plugins.hdf5.scales plugins.hdf5.structure plugins.hdf5.writer
        plugins.image.plan plugins.mat.contents plugins.metaimage.plan plugins.npy.plan
        plugins.netcdf3.metadata plugins.netcdf3.structure plugins.ome.tiff.metadata plugins.ome.zarr.documents
        plugins.nrrd.metadata plugins.r.plan plugins.scidb.metadata plugins.scidb.plan
        plugins.webdataset.plan plugins.zarr.metadata plugins.zarr.writer""",
    "an argument that may be left out, where a folder or a server is looked at": """
        files.paths files.remote.listing files.remote.target files.unfinished plugins.png""",
    "a number, which nothing is nested in": "plugins.hdf5.datatypes",
    "a source that is made without limits": "files.source",
}


def test_parsers_ask_their_source_for_its_limits() -> None:
    """Not for the defaults: what a program hands in would have no effect."""
    found = {
        name.removeprefix("raconvert.")
        for name, path in modules().items()
        if re.search(r"limits import .*DEFAULT|limits\.DEFAULT", path.read_text(encoding="utf-8"))
    }
    assert sorted(found) == sorted(" ".join(ASKS_FOR_DEFAULTS.values()).split())
