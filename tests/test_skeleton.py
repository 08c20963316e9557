"""The skeleton of a plugin folder: the same file name for the same role in every plugin.

Whatever else a plugin needs has a name from its field, and a line here that says what it is for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[1] / "plugins"
MOST_LINES_OF_INIT = 250
ROLES = {
    "__init__": "the specification, FORMAT, sniff, read, plan",
    "tables": "types, words, constants",
    "header": "bytes to header and back, from one layout",
    "metadata": "what of the metadata the format holds, both ways",
    "reader": "from a file to a bundle",
    "plan": "what a file will be: fits, names, write",
    "writer": "from a bundle to a file",
    "programs": "how other libraries read an array",
    "codecs": "how data is encoded, both ways",
    "dialects": "variants that the specification does not have",
}
# What was there for these roles before, under other words.
OLD_WORDS = {
    "codec", "encode", "fits", "fitting", "headers", "kinds", "layout", "meta", "reading", "types",
    "writing",
}  # fmt: skip
# folder -> module -> the part of the format that it is, and that no role covers
FIELD = {
    "dicom": {
        "modality": "tables of the modality: what stored values stand for",
        "form": "type, size, bits and colours of the pixels of a file",
        "frames": "the frames of a file: place, scale, and what tells one from another",
        "mosaic": "slices as tiles of one image",
        "series": "which frames make one array, and the grid that they lie on",
        "values": "array source over frames of many files",
    },
    "har": {
        "adding": "how a further array comes into a file that exists",
        "data": "checks the data records of every storage without reading elements",
        "index": "all headers of a file, parsed and checked, without data",
        "records": "Fortran records in three framings",
        "resume": "where reading goes on behind damaged records",
        "solution": "which variables a solution file has, and where their values are",
        "values": "array sources over records",
        "walk": "the way from header to header",
    },
    "hdf5": {
        "anndata": "what AnnData says of its arrays, in Zarr, too",
        "adding": "how a further array comes into a file that exists",
        "paddings": "where fixed strings end",
        "attributes": "attributes as plain values and back, with their types",
        "chunks": "chunks decoded past the library",
        "creating": "properties that make equal arrays equal files",
        "datatypes": "datatypes as element types",
        "dense": "attributes that lie in a heap beside their object",
        "descriptions": "datatypes as plain values",
        "direct": "whether chunks can be decoded past the library",
        "elements": "elements on their way into a file",
        "files": "open files, external ones included, their end, and what h5py raises of them",
        "objects": "objects of a file for MAT v7.3, which is HDF5",
        "scales": "dimension scales as axes",
        "storage": "layout and filters of a dataset",
        "strings": "strings of variable length",
        "values": "array sources over datasets",
        "structure": "options, chunks, names and types of the file to be, and what is lost",
        "virtual": "virtual datasets, put together under our own check",
        "walk": "the way over the links of a file",
    },
    "hdf5/ondisk": {
        "btrees": "B-trees of both versions, checked before the library sees them",
        "chunk_indexes": "indexes of chunks, checked before the library sees them",
    },
    "image": {
        "bmp": "a format of its own",
        "bmp_header": "the header of BMP, checked against the file",
        "bmp_pixels": "rows, runs and bit fields of BMP",
        "frames": "animations as arrays with a time axis",
        "gif": "a format of its own",
        "gif_frames": "blocks and frames of GIF, composed",
        "gif_writer": "animations of GIF, put together frame by frame",
        "jpeg": "a format of its own",
        "jpeg_markers": "frames and scans of JPEG, also in TIFF",
        "netpbm": "a format of its own",
        "netpbm_text": "samples of plain netpbm",
        "webp": "a format of its own",
        "webp_frames": "frames of WebP, composed by libwebp",
        "webp_writer": "animations of WebP, put together frame by frame",
    },
    "image/tiff": {
        "ome": "OME-XML: sizes, units and times along the axes",
        "fax": "codes of CCITT, all of which have to be sound",
        "checks": "pages and where their pixels are, before anything is decoded",
        "pages": "strips and tiles, decoded where they are asked for",
        "pictures": "strips and tiles that are pictures, by their libraries",
        "stack": "pages of one kind as one array",
    },
    "fits": {
        "adding": "how a further array comes into a file that exists",
        "characters": "tables of characters",
        "columns": "binary tables: columns as fields, both ways",
        "groups": "random groups: parameters and an array each",
        "heap": "columns of variable length",
        "images": "images, and integers of the other signedness",
        "packed": "a file inside gzip: its inflated bytes at any place",
        "sums": "CHECKSUM and DATASUM",
        "tiles": "images in compressed tiles",
    },
    "edf": {
        "annotations": "lists of annotations in the records",
        "values": "array sources over stretches in records",
    },
    "tfrecord": {
        "images": "encoded images, decoded by the plugins of their formats",
        "features": "where features lie in records, and what their values have in common",
        "messages": "protocol buffers of examples",
        "records": "records with their checksums, plain or inflated",
        "values": "array sources over features",
    },
    "gguf": {"blocks": "the values of quantised blocks"},
    "lmdb": {
        "stacks": "array source over values of one shape",
        "tree": "pages, and entries in the order of their keys",
        "values": "kinds of values: images, messages of Caffe, text",
    },
    "mat": {
        "adding": "how a further array comes into a file that exists",
        "classes": "objects of MATLAB's own classes as arrays and groups, a row for each",
        "contents": "variables, structs and cells of the file to be: class, dims, form, and losses",
        "elements5": "tags, short data and facts of matrices in v5 to v7, read at cursors",
        "level4": "reads v4",
        "level5": "reads v5, v6 and v7",
        "level73": "reads v7.3",
        "mcos": "where the properties of objects lie, and how references are followed",
        "parts": "runs of numbers, in the file, in a compressed variable or in memory",
        "sources": "array sources over parts",
        "sources_of_classes": "array sources over the properties of objects",
        "subsystem5": "the data of classes in v5, v6 and v7",
        "subsystem73": "the data of classes in v7.3",
        "tree": "arrays and groups while a file is walked",
        "values73": "the elements of v7.3",
        "write73": "writes v7.3",
    },
    "metaimage": {"datafiles": "where data lies, in one file or many"},
    "netcdf3": {
        "adding": "how a further array comes into a file that exists",
        "structure": "names, variables and dimensions of the file to be, and what is lost",
    },
    "nifti": {"space": "sform, qform and pixdim, from which the place of an image comes"},
    "npy": {},
    "npz": {},
    "nrrd": {
        "datafiles": "where data lies that is not behind its header",
        "fields": "the fields of a header, a row for each",
        "pair": "our own key/value pair for what NRRD has no field for",
        "sources": "the decoder of data, by its encoding",
        "space": "space, directions and origin, from which the place of an image comes",
    },
    "ome": {
        "axes": "axes of OME as axes of the core, both ways, with their units and channels",
        "levels": "the lower levels of a pyramid, made of the one above",
        "options": "the options of pyramids",
        "record": "our record of what OME has no word for",
        "sniffing": "what tells images of OME from other TIFF and Zarr",
    },
    "ome/tiff": {
        "planes": "in which pages of which files the planes of an image lie",
        "xml": "OME-XML, parsed within bounds",
    },
    "ome/zarr": {"documents": "the attributes of OME of each group of a hierarchy"},
    "png": {
        "alike": "small files that begin and end alike, one at a time",
        "engine": "compiled loops, and what stands in for them",
        "frames": "the frames of animated PNG",
        "pixels": "from compressed rows to samples",
        "stack": "tens of thousands of small files as one array",
    },
    "pytorch": {
        "opcodes": "the interpreter of pickles",
        "values": "tensors and plain values of a pickle, by name",
        "views": "array source over a view of a storage",
    },
    "tables": {
        "arrow": "a format of its own",
        "arrow_plan": "arrays as columns of Arrow",
        "arrow_table": "columns of Arrow as a table",
        "cells": "the cells of a text, found in blocks",
        "csv": "a format of its own",
        "csv_table": "a text as a table",
        "dialect": "what is between the cells of a text",
        "footer": "the footer of Parquet, checked before the library sees it",
        "model": "a table, whatever the format",
        "options": "options that all tables have",
        "parquet": "a format of its own",
        "record": "what a file says of arrays beside the cells",
        "sheets": "the parts of a workbook as XML",
        "words": "values as text that reads back with the same bits",
        "workbook": "sheets as tables",
        "xlsx": "a format of its own",
        "xlsx_plan": "arrays as sheets",
    },
    "r": {
        "adding": "how a further array comes into a file that exists",
        "items": "the objects of a serialization, one after the other",
        "rdata": "a format of its own",
        "rds": "a format of its own",
        "streams": "decompressed bytes, front to back",
        "tree": "arrays and groups of the objects",
        "values": "array sources over vectors",
    },
    "scidb": {
        "columns": "types, and the columns of a record with their layout",
        "record": "the bytes of records",
        "scan": "the offset pass over records of different widths",
        "schema": "array schemas",
        "together": "the columns that are decoded in one pass",
        "values": "array sources over columns",
    },
    "webdataset": {
        "rows": "array sources over members, one for each sample",
        "samples": "which members are a sample, and where they lie",
    },
    "zarr": {
        "adding": "how a further array comes into a file that exists",
        "datatypes": "data types of both versions as elements",
        "form": "the key, chunks, shards and codecs of an array, and the options for them",
        "stores": "where the files of a hierarchy are, and which of them may be read",
        "values": "array sources over chunks",
    },
}
NO_PLAN = {
    "dicom": "it is read only",
    "edf": "it is read only",
    "tfrecord": "it is read only",
    "gguf": "it is read only",
    "lmdb": "it is read only",
    "pytorch": "it is read only",
    "hdf5": "in its first file, which does without h5py; its parts are in structure.py",
    "hdf5/ondisk": "checks of bytes only, for hdf5",
    "image/tiff": "the plan of all images, image/plan.py",
    "ome": "what the two formats below it share",
}


def files_of(folder: str) -> set[str]:
    return {path.stem for path in (PLUGINS / folder).glob("*.py")}


def test_every_folder_is_in_the_table() -> None:
    found = {path.parent.relative_to(PLUGINS).as_posix() for path in PLUGINS.rglob("__init__.py")}

    assert found - {"."} == set(FIELD)


@pytest.mark.parametrize("folder", FIELD)
def test_files_of_a_plugin_are_roles_or_of_its_field(folder: str) -> None:
    files = files_of(folder)

    assert files - set(ROLES) == set(FIELD[folder]), "a file without a reason, or one that is gone"
    assert all(FIELD[folder].values())
    assert not set(FIELD[folder]) & OLD_WORDS, f"the words for the roles are {[*ROLES]}"
    assert "__init__" in files


def test_every_plugin_has_a_plan() -> None:
    assert {folder for folder in FIELD if "plan" not in files_of(folder)} == set(NO_PLAN)


@pytest.mark.parametrize("folder", FIELD)
def test_the_first_file_of_a_plugin_is_short(folder: str) -> None:
    text = (PLUGINS / folder / "__init__.py").read_text(encoding="utf-8")

    assert len(text.splitlines()) <= MOST_LINES_OF_INIT


def test_images_other_than_png_stay_small() -> None:
    """They are not the mission, beyond the files that people have (LZW, runs, animations, fax).

    Lines of other libraries, to be pasted, do not count (but the 10 that name them).
    """
    files = [path for path in (PLUGINS / "image").rglob("*.py") if path.stem != "programs"]

    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 4400


def test_architecture_names_the_roles() -> None:
    page = (PLUGINS.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    skeleton = page.split("The folders of plugins")[1].split("##")[0]

    assert [role for role in ROLES if f"`{role}.py`" not in skeleton] == []
