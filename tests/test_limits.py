"""Every field of `Limits` that a program hands in with a source takes effect, in every format.

A case is a file that is read with the defaults, and something else with one bound made small: an
error that says so, or less than before. There is one for each field.
"""

from __future__ import annotations

import gzip
import json
import lzma
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock, patch

import dicom_files
import h5py
import numcodecs
import numpy as np
import pytest
import scipy.io
import shapes
import tifffile
import zarr
from raconvert.plugins import mat
from raconvert.plugins.dicom.header import read_header
from raconvert.plugins.hdf5.files import File
from raconvert.plugins.hdf5.ondisk.header import messages
from raconvert.plugins.png import read_stack
from raconvert.plugins.zarr.reader import _nodes
from raconvert.plugins.zarr.stores import Store
from raconvert.plugins.zarr.values import Listed

from raconvert import registry
from raconvert.arrays.blocks import blocks
from raconvert.conversion import read as reading
from raconvert.conversion.options import Settings
from raconvert.errors import RaconvertError, Unsupported
from raconvert.files import unfinished
from raconvert.files.limits import DEFAULT, Found, Limits
from raconvert.files.paths import entries_below
from raconvert.files.remote import listing
from raconvert.files.source import Source

ROOT = Path(__file__).resolve().parents[1]
Make = Callable[[Path], Path]


class Case(NamedTuple):
    """A file, what one field is lowered to, and words of what is then said and was not before.

    Words that begin with ``-`` are said with the defaults only. `others` are lowered in both runs,
    where one bound alone is not reached.
    """

    make: Make
    small: int
    words: str
    others: dict[str, int] = {}  # noqa: RUF012 - read only


def said(path: Path, limits: Limits) -> str:
    """All that reading a file gives, as text: metadata, notes, problems, or the refusal."""
    try:
        source = Source(str(path), limits=limits)
        kind = reading._detect(source, None, folder=path.is_dir())
        bundle = reading.open_found(reading.Found(source, None, *kind), Settings()).bundle
    except RaconvertError as error:
        return f"refused: {error}"
    with bundle:
        found = [repr(bundle.notes), repr(bundle.names), repr(bundle.aliases)]
        for array in bundle.arrays:
            try:
                array.meta.items and list(array.meta.items())
                size = 0 if array.problem else sum(len(b) for b in blocks(array, 1 << 12))
                found.append(f"{array.dims} {size} bytes")
            except RaconvertError as error:
                found.append(f"{array.name}: {error}")
            found.append(f"{array.problem} {array.meta.to_dict()}")
    return "\n".join(found)


# Files --------------------------------------------------------------------------------------------


def fixture(name: str) -> Make:
    """A file of the fixtures."""
    return lambda folder: ROOT / "fixtures" / name


def shape(name: str, size: int = 1500) -> Make:
    """A small one of the worst known shapes."""

    def make(folder: Path) -> Path:
        kind = shapes.SHAPES[name]
        path = folder / f"x{kind.suffix}"
        files = kind.make(size)
        for end, data in (files if isinstance(files, dict) else {"": files}).items():
            beside = end.startswith("/")  # in the folder itself
            (folder / (end[1:] if beside else path.name + end)).write_bytes(data)
        return path

    return make


def hdf5(fill: Callable[[h5py.File], object], **options: Any) -> Make:
    """An HDF5 file with an array and what `fill` puts into it."""

    def make(folder: Path) -> Path:
        with h5py.File(folder / "x.h5", "w", **options) as file:
            file["a"] = [1, 2, 3]
            fill(file)
        return folder / "x.h5"

    return make


def chunked(file: h5py.File) -> None:
    file.create_dataset("c", data=np.arange(9), chunks=(1,))


def many_attributes(file: h5py.File) -> None:
    for number in range(20):
        file["a"].attrs[f"k{number}"] = "text"


def other_file(file: h5py.File) -> None:
    with h5py.File(Path(file.filename).with_name("y.h5"), "w") as other:
        other["b"] = [4]
    file["out"] = h5py.ExternalLink("y.h5", "/b")


def scaled(values: list[float]) -> Callable[[h5py.File], None]:
    """An array with a scale of these values."""

    def fill(file: h5py.File) -> None:
        file["x"], file["d"] = values, np.arange(len(values))
        file["x"].make_scale("x")
        file["d"].dims[0].attach_scale(file["x"])

    return fill


def texts_in_structures(file: h5py.File) -> None:
    text = h5py.string_dtype()
    file["s"] = np.array([("a", ["b", "c"])], [("p", text), ("q", text, (2,))])


def nested(levels: int) -> Any:
    """A structure inside others."""
    kind: Any = np.dtype("<i4")
    for _ in range(levels):
        kind = np.dtype([("inner", kind)])
    return h5py.h5t.py_create(kind)


def nested_attribute(file: h5py.File) -> None:
    h5py.h5a.create(file["a"].id, b"deep", nested(3), h5py.h5s.create_simple((2,)))


def nested_nothing(file: h5py.File) -> None:
    kind = h5py.h5t.STD_I32LE
    for _ in range(6):
        kind = h5py.h5t.array_create(kind, (1,))
    h5py.h5d.create(file.id, b"nothing", kind, h5py.h5s.create(h5py.h5s.NULL))


def sparse_chunks(file: h5py.File) -> None:
    file.create_dataset("s", (1 << 16,), "u1", chunks=(2,), compression="lzf")


def of_matlab(folder: Path) -> Path:
    """A MAT file 7.3 in which two cells hold the same third one."""
    path = folder / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as file:

        def cell(name: str, values: list[Any]) -> Any:
            made = file.create_dataset(name, (1, len(values)), h5py.ref_dtype)
            made[0] = values
            made.attrs["MATLAB_class"] = np.bytes_(b"cell")
            return made

        number = file.create_dataset("#refs#/n", data=np.ones((1, 1)))
        number.attrs["MATLAB_class"] = np.bytes_(b"double")
        inner = cell("#refs#/c", [number.ref])
        cell("twice", [inner.ref, inner.ref])
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM")
    return path


def large_variable(folder: Path) -> Path:
    """A MAT file of level 5 whose first variable is a cell of many empty values."""
    cell = np.empty((1, 3000), object)
    cell[:] = [[np.zeros((0, 0))]]
    scipy.io.savemat(folder / "x.mat", {"big": cell, "last": [1, 2]}, do_compression=True)
    return folder / "x.mat"


def matrix_and_more(folder: Path) -> Path:
    """A matrix of level 4 of MAT, and then something else."""
    with open(folder / "x.mat", "wb") as file:
        scipy.io.savemat(file, {"a": np.ones((2, 2))}, format="4")
        file.write(b"\xff" * 64)
    return folder / "x.mat"


def zipped_tail(folder: Path) -> Path:
    np.savez(folder / "y.npz", a=np.arange(3))
    with zipfile.ZipFile(folder / "y.npz") as old, zipfile.ZipFile(folder / "x.npz", "w") as new:
        new.writestr("a.npy", old.read("a.npy") + b"12345")
    return folder / "x.npz"


def long_gzip(folder: Path) -> Path:
    text = shapes.nrrd(sizes="3", encoding="gzip") + gzip.compress(b"\1\2\3" + bytes(1 << 20))
    (folder / "x.nrrd").write_bytes(text)
    return folder / "x.nrrd"


def pages(folder: Path) -> Path:
    """Pages whose shape only the description tells."""
    tifffile.imwrite(folder / "x.tif", np.zeros((2, 3, 4, 5), "u1"), photometric="minisblack")
    return folder / "x.tif"


def store(folder: Path, **options: Any) -> Path:
    """A Zarr array of which the first chunk is there."""
    shape, chunks = options.pop("shape", (1 << 16,)), options.pop("chunks", (1 << 10,))
    values = zarr.create_array(
        folder / "x.zarr", shape=shape, chunks=chunks, dtype="u1", fill_value=0, **options
    )
    values[: chunks[0]] = 1
    return folder / "x.zarr"


def filled_store(folder: Path, **options: Any) -> Path:
    path = store(folder, **options)
    zarr.open_array(path)[:] = 1
    return path


def scaled_store(values: list[int]) -> Make:
    """A Zarr array and the coordinate of its axis."""

    def make(folder: Path) -> Path:
        group = zarr.create_group(folder / "x.zarr")
        for name in ("d", "x"):
            group.create_array(name, data=np.array(values), dimension_names=["x"])
        return folder / "x.zarr"

    return make


def structured_store(folder: Path) -> Path:
    fields = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": [["a", "|i1"], ["b", "|i1"]],
              "compressor": None, "fill_value": None, "order": "C", "filters": None}  # fmt: skip
    (folder / "x.zarr").mkdir()
    (folder / "x.zarr" / ".zarray").write_text(json.dumps(fields))
    (folder / "x.zarr" / "0").write_bytes(bytes(8))
    return folder / "x.zarr"


def bundle_folder(folder: Path) -> Path:
    for name, data in shapes.bundled(2).items():
        (folder / name).write_bytes(data)
    return folder


def packed(**settings: Any) -> Make:
    """A Zarr array of version 2 that LZMA has packed."""
    return lambda folder: filled_store(
        folder, zarr_format=2, shape=(4096,), compressors=numcodecs.LZMA(**settings), filters=None
    )


def overlapping_shard(folder: Path) -> Path:
    """A shard all of whose chunks are the same bytes."""
    count, inner = 5000, 64
    path = folder / "x.zarr"
    path.mkdir()
    body = gzip.compress(bytes(inner))
    index = np.zeros((count, 2), "<u8")
    index[:] = 16 * count, len(body)
    codecs = {"chunk_shape": [inner], "index_location": "start",
              "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}],
              "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}  # fmt: skip
    fields = {"zarr_format": 3, "node_type": "array", "shape": [count * inner],
              "data_type": "uint8", "fill_value": 0, "attributes": {},
              "chunk_grid": {"name": "regular",
                             "configuration": {"chunk_shape": [count * inner]}},
              "chunk_key_encoding": {"name": "default"},
              "codecs": [{"name": "sharding_indexed", "configuration": codecs}]}  # fmt: skip
    (path / "zarr.json").write_text(json.dumps(fields))
    (path / "c").mkdir()
    (path / "c" / "0").write_bytes(index.tobytes() + body)
    return path


def sharded(folder: Path) -> Path:
    return store(folder, shape=(64,), chunks=(4,), shards=(16,))


def table(text: str) -> Callable[[Path], Path]:
    """A CSV file of this text."""

    def make(folder: Path) -> Path:
        path = folder / "x.csv"
        path.write_text(text)
        return path

    return make


RAW_LZMA = {"format": lzma.FORMAT_RAW, "filters": [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]}

CASES: dict[str, Case] = {
    "table_columns": Case(table("a,b,c\n1,2.5,x\n2,3.5,y\n"), 2, "too many columns"),
    "table_labels": Case(table("a,b\nx,1\ny,2\n"), 1, "['x']"),
    "memory": Case(fixture("png/pypng_rgb16.png"), 9, "max_memory"),
    "document_bytes": Case(fixture("nrrd/zrl.nrrd"), 0, "header is too long to be read safely"),
    "hierarchy_bytes": Case(shape("zip_of_groups"), 9, "bundle.yaml is too large"),
    "record_bytes": Case(shape("tar_of_a_long_header"), 9, "header that is too long"),
    "searched_bytes": Case(shape("nrrd_of_skipped_lines"), -1, "leads too far into the file"),
    "text_bytes": Case(fixture("har/good/housekeeping.har"), 9, "'XXCR' is too long to be kept"),
    "raw_record_bytes": Case(fixture("har/good/housekeeping.har"), 1, "'XXNB' is too long"),
    "header_bytes": Case(fixture("npy/good/void.npy"), 9, "too long to be parsed safely"),
    "short_header_bytes": Case(fixture("volumes/itk_turned.mha"), 9, "header has no end"),
    "header_line_bytes": Case(fixture("nrrd/zrl.nrrd"), 3, "lines of at most 3 bytes"),
    "header_lines": Case(fixture("nrrd/zrl.nrrd"), 2, "at most 2 lines"),
    "header_digits": Case(shape("tar_of_a_long_header"), 1, "header field that is not a number"),
    "literal_levels": Case(fixture("npy/good/subarray.npy"), 0, "brackets inside each other"),
    "literal_digits": Case(fixture("npy/good/subarray.npy"), 0, "a number of 1 digits"),
    "name_bytes": Case(shape("mat_of_cells"), 0, "the name is too long"),
    "number_bytes": Case(shape("nrrd_of_text"), 0, "text is not a number"),
    "shape_bytes": Case(fixture("mat/scipy_v6.mat"), 4, "the dims is too long"),
    "type_name_characters": Case(lambda f: store(f, zarr_format=2), 1, "dtype"),
    "empty_headers": Case(fixture("har/good/harpy.har"), -1, "headers hold nothing"),
    "damaged_names": Case(fixture("har/good/harpy.har"), 0, "cannot be told apart"),
    "directory_bytes": Case(fixture("npy/good/stored.npz"), 9, "directory of the archive"),
    "archive_members": Case(shape("tar_of_many"), 1, "too many members"),
    "trailing_bytes": Case(zipped_tail, 4, "far longer than the array"),
    "surplus_bytes": Case(long_gzip, 100, "decompression bomb"),
    "expansion_ratio": Case(filled_store, 1, "bytes stored", {"memory": 1 << 15}),
    "lzma_dictionary_bytes": Case(packed(**RAW_LZMA), 1 << 16, "very large dictionary"),
    "lzma_decoder_bytes": Case(packed(), 0, "emory usage limit"),
    "image_chunks": Case(fixture("png/pypng_rgb16.png"), 1, "more than 1 chunks"),
    "image_frames": Case(fixture("image/img2webp_animation.webp"), 1, "very many frames"),
    "image_scans": Case(fixture("image/cjpeg_grey_progressive.jpg"), 1, "more than 1 scans"),
    "metadata_chunk_bytes": Case(fixture("png/pillow_rgb_text.png"), 20, "longer than 20 bytes"),
    "metadata_bytes": Case(fixture("png/pillow_rgb_text.png"), 20, "more than 20 bytes"),
    "page_characters": Case(pages, 0, "-(5, 4, 3, 2)", {"record_bytes": 0}),
    "directory_passes": Case(pages, 0, "directories overlap", {"record_bytes": 0}),
    "nesting_levels": Case(shape("ra_trailer"), 0, "nested too deep"),
    "document_values": Case(shape("ra_trailer"), 3, "more than 3 values"),
    "pickle_operations": Case(fixture("models/alone.pt"), 20, "too many operations"),
    "attribute_bytes": Case(shape("hdf5_of_attributes"), 9, "attributes of the file need more"),
    "attribute_passes": Case(hdf5(many_attributes, libver="latest"), 0, "dense storage"),
    "nodes": Case(fixture("hdf5/octave.h5"), 2, "more than 2 objects"),
    "group_levels": Case(fixture("mat/scipy_v6.mat"), 0, "lie in too many groups"),
    "group_bytes": Case(fixture("mat/scipy_v6.mat"), 3, "lie in too many groups"),
    "path_characters": Case(fixture("hdf5/octave.h5"), 9, "more than 9 characters"),
    "entries": Case(shape("lmdb_of_entries"), 3, "too many entries"),
    "links": Case(shape("hdf5_of_soft_links"), 3, "more than 3 links"),
    "link_steps": Case(shape("hdf5_of_soft_links"), 0, "more than 0 names"),
    "path_links": Case(shape("hdf5_of_soft_links"), 0, "more than 0 others"),
    "external_files": Case(hdf5(other_file), 0, "more than 0 files"),
    "virtual_levels": Case(shape("hdf5_of_virtual_maps"), -1, "more than -1 deep"),
    "virtual_sources": Case(shape("hdf5_of_virtual_maps"), 0, "at most 0"),
    "structure_fields": Case(fixture("scidb/good/texts.scidb"), 1, "more than 1 attributes"),
    "type_levels": Case(shape("hdf5_of_fields"), 0, "nested more than 0 deep"),
    "tree_levels": Case(shape("hdf5_of_attributes"), -1, "B-tree has an impossible size"),
    "expression_levels": Case(fixture("scidb/good/fixed_4x5.scidb"), 0, "nested too deep"),
    "scale_values": Case(hdf5(scaled([1, 2, 3, 4])), 3, "-'spacing': 1.0"),
    "axis_labels": Case(hdf5(scaled([1, 2, 5, 9])), 3, "-'labels': [1, 2, 5, 9]"),
    "repeated_uses": Case(of_matlab, 0, "used too often"),
    "skipped_variables": Case(large_variable, -1, "refused", {"memory": 1 << 18}),
    "chained_codecs": Case(shape("zarr_word"), 0, "1 to 0 codecs"),
    "index_passes": Case(hdf5(chunked), 0, "objects share indexes"),
    "shard_levels": Case(shape("zarr_parts"), 0, "shards inside shards"),
    "shard_index_bytes": Case(sharded, 0, "-15 of 16 chunks absent"),
    "shard_passes": Case(overlapping_shard, -1, "again and again"),
    "unstored_chunks": Case(hdf5(sparse_chunks), 0, "more than the file has bytes"),
    "absent_ratio": Case(store, 1, "little more than a fill value", {"memory": 1 << 14}),
    "absent_piece_bytes": Case(store, 1, "little more than a fill value", {"memory": 1 << 14}),
    "counted_files": Case(store, 0, "-63 of 64 chunks absent"),
}  # fmt: skip

# Other formats that ask for the same bounds in places of their own.
MORE: dict[str, Case] = {
    "structure_fields of texts": Case(hdf5(texts_in_structures), 2, "hold more than 2 texts"),
    "type_levels of an attribute": Case(hdf5(nested_attribute), 1, "nested more than 1 deep"),
    "type_levels of nothing": Case(hdf5(nested_nothing), 1, "nested more than 4 deep"),
    "scale_values of zarr": Case(scaled_store([1, 2, 3, 4]), 3, "-'spacing': 1.0"),
    "axis_labels of zarr": Case(scaled_store([1, 2, 5, 9]), 3, "-'labels': [1, 2, 5, 9]"),
    "structure_fields of zarr": Case(structured_store, 1, "expected a type of NumPy"),
    "number_bytes of metaimage": Case(fixture("volumes/text_list.mhd"), 0, "not a number"),
    "hierarchy_bytes of a folder": Case(bundle_folder, 9, "bundle.yaml is too large"),
    "document_bytes of a sidecar": Case(shape("sidecar_of_keys"), 9, "too large"),
    "group_levels of npz": Case(shape("npz_of_deep_names", 5000), 9, "in too many groups"),
}


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_a_bound_that_is_handed_in_takes_effect(name: str, tmp_path: Path) -> None:
    field, (make, small, words, others) = name.partition(" ")[0], {**CASES, **MORE}[name]
    path, usual = make(tmp_path), Limits(**others)

    before, after = said(path, usual), said(path, usual._replace(**{field: small}))

    with_it, without = (before, after) if words.startswith("-") else (after, before)
    assert words.removeprefix("-") in with_it, with_it
    assert words.removeprefix("-") not in without, without
    if not words.startswith("-"):
        assert not before.startswith("refused")


# Functions that take limits, and of which no single file shows all -----------------------------


def verdict(limits: Limits, folder: Path) -> object:
    """Whether a file is one of MATLAB, by as many headers as are followed."""
    return mat.sniff(Source(str(matrix_and_more(folder)), limits=limits))


def blocks_of_a_header(limits: Limits, folder: Path) -> object:
    """The messages of an object whose header is in several blocks."""
    path = hdf5(lambda file: [file["a"].attrs.update({f"k{n}": "x" * 200}) for n in range(7)])(
        folder
    )
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["a"].id).addr
    return len(list(messages(File(Source(str(path), limits=limits)), address)))


def elements_of_a_header(limits: Limits, folder: Path) -> object:
    """The tags of all elements before the pixels."""
    path = folder / "x.dcm"
    path.write_bytes(dicom_files.raw())
    return sorted(read_header(Source(str(path), limits=limits)).tags)


def chunks_of_a_folder(limits: Limits, folder: Path) -> object:
    """True if the names of all chunks are kept."""
    path = str(filled_store(folder))
    found = Store(Source(path, limits=limits), path)
    node = next(node for _, _, node in _nodes(found) if node is not None)
    return Listed(found, "", node).complete


def requests_of_absent_chunks(limits: Limits, folder: Path) -> object:
    found = Found(limits._replace(absent_ratio=0), 1, "array", "x", asked=True)
    for _ in range(3):
        found.add(None)
    return found.absent


def uploads(limits: Limits, folder: Path) -> object:
    """Pages of a list that a server makes longer and longer."""
    server = Mock()
    server.call_s3.side_effect = lambda *_, **said: {
        "IsTruncated": len(server.call_s3.mock_calls) < 9,
        "NextKeyMarker": str(len(server.call_s3.mock_calls)), "NextUploadIdMarker": "x",
    }  # fmt: skip
    with patch.object(listing, "filesystem", lambda url: server):
        listing.uploads_below("s3://b/p/", limits)
    return len(server.call_s3.mock_calls)


def links_to_folders(limits: Limits, folder: Path) -> object:
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    (folder / "out" / "x.ra").touch()
    (folder / "in" / "link").symlink_to(folder / "out")
    return [entry.name for entry in entries_below(str(folder / "in"), limits=limits)]


def note(limits: Limits, folder: Path) -> object:
    """A note that two files are not whole yet."""
    files = [str(folder / name) for name in ("a.ra", "b.ra")]
    with unfinished.Unfinished(files) as writing:
        writing.begin()
        (path,) = unfinished._notes(str(folder))
        return unfinished._read(path, files, limits) is not None


def columns_of_a_table(limits: Limits, folder: Path) -> object:
    """The columns of a table that is larger than memory, one by one."""
    path = table("a,b\n" + "1.5,2.5\n" * 3000)(folder)
    source = Source(str(path), limits=limits._replace(memory=60_000))
    bundle = registry.load(registry.by_name("csv")).read(source, layout="columns")
    return [np.asarray(array).sum() for array in bundle.arrays]


CALLS: dict[str, tuple[Callable[[Limits, Path], object], int]] = {
    "probed_headers": (verdict, 1),
    "header_blocks": (blocks_of_a_header, 0),
    "header_elements": (elements_of_a_header, 5),
    "listed_files": (chunks_of_a_folder, 10),
    "absent_requests": (requests_of_absent_chunks, 1),
    "listed_pages": (uploads, 2),
    "linked_folders": (links_to_folders, 0),
    "note_bytes": (note, 1),
    "note_line_bytes": (note, 5),
    "table_passes": (columns_of_a_table, 1),
}


@pytest.mark.parametrize("field", CALLS)
def test_a_bound_of_a_function_takes_effect(field: str, tmp_path: Path) -> None:
    call, small = CALLS[field]

    def outcome(limits: Limits, folder: Path) -> object:
        folder.mkdir()
        try:
            return call(limits, folder)
        except RaconvertError as error:
            return error.what

    assert outcome(DEFAULT, tmp_path / "usual") != outcome(
        DEFAULT._replace(**{field: small}), tmp_path / "small"
    )


def test_the_files_of_a_stack_have_the_limits(tmp_path: Path) -> None:
    image = (ROOT / "fixtures" / "png" / "pypng_rgb16.png").read_bytes()
    paths = [str(tmp_path / f"{n}.png") for n in range(2)]
    for path in paths:
        Path(path).write_bytes(image)
    assert read_stack(paths, max_memory=1 << 20).shape[0] == 2
    with pytest.raises(Unsupported, match="more than 1 chunks"):
        read_stack(paths, max_memory=1 << 20, limits=Limits(image_chunks=1))


def test_there_is_a_case_for_every_field() -> None:
    assert sorted([*CASES, *CALLS]) == sorted(Limits._fields)
    assert min(Limits()) > 0
