"""DICOM files as a bundle: an array for each series."""

from __future__ import annotations

from raconvert.errors import Corrupt, TooLarge, counted, listed
from raconvert.plugin import Array, Bundle

from .codecs import check_decoder
from .frames import file_of
from .header import looks_like, read_header
from .metadata import left_out, metadata_of, tags_of
from .modality import APPLIES, applied
from .series import grid_of, names_of, parts_of
from .tables import (
    BIG,
    CHARSET,
    DOSE_UNITS,
    EXTENDED_OFFSETS,
    IMAGE_TYPE,
    MAGIC,
    MODALITY_LUT,
    PREAMBLE,
    RESCALE_TYPE,
    SERIES_NUMBER,
    UNITS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.source import Source

    from .frames import File
    from .header import Header
    from .modality import Lut
    from .series import Grid, Part

# Elements of a header that are needed after its frames were parsed.
LATER = frozenset(
    {CHARSET, DOSE_UNITS, EXTENDED_OFFSETS, IMAGE_TYPE, MODALITY_LUT, RESCALE_TYPE, UNITS}
)  # fmt: skip


def read_files(
    sources: list[Source], folder: str | None, *, keep_tags: str, grid: str, colours: str
) -> Bundle:
    """The arrays of the series in files; `folder` is the one that holds them, if it was named."""
    kept = tags_of(keep_tags)
    notes: list[str] = []
    files, numbers = _files(sources, folder, kept, colours, notes)
    if not files:
        raise Corrupt("folder holds no DICOM file with an image", path=folder or sources[0].path)
    parts = parts_of(files)
    names = names_of(parts.values(), [numbers[uid] for uid in parts])
    arrays: list[Array] = []
    for series in parts.values():
        if len(series) > 1:
            shown = listed(names[len(arrays) : len(arrays) + len(series)])
            what = "differ in size, type, orientation, spacing or table of the modality"
            notes.append(f"slices of one series {what}: arrays {shown}")
        for part in series:
            arrays.append(_array(names[len(arrays)], part, grid_of(part, grid),
                                 kept, notes, alone=len(names) == 1))  # fmt: skip
    if line := left_out(files, kept):
        notes.append(line)
    bundle = Bundle(arrays, notes=notes)
    luts = [part.files[part.frames[0].file].lut for series in parts.values() for part in series]
    if any(luts):
        by_name = dict(zip(names, luts, strict=True))
        bundle.decoded = lambda array: _by_table(array, by_name.get(array.name), bundle)
    return bundle


def _by_table(array: Array, lut: Lut | None, bundle: Bundle) -> Array | None:
    """The physical values of an array by its table, whose note is removed; None without a table."""
    if lut is None:
        return None
    bundle.notes[:] = [note for note in bundle.notes if not note.endswith(APPLIES)]
    return applied(array, lut)


def _files(
    sources: list[Source], folder: str | None, kept: dict[int, str], colours: str, notes: list[str]
) -> tuple[list[File], dict[str, int | None]]:
    """The files with images, and the number of each series; notes on the other files."""
    files: list[File] = []
    numbers: dict[str, int | None] = {}
    tags: dict[frozenset[int], set[int]] = {}
    luts: dict[Lut, tuple[Lut, int]] = {}
    others, imageless = [], []
    for source in sources:
        if folder is not None and not is_dicom(source):
            others.append(source.name)
            source.close()
            continue
        header = read_header(source, kept)
        source.close()
        if header.pixels is None and folder is not None:
            imageless.append(source.name)
            continue
        file = _with_shared_table(file_of(header, len(files), colours), luts)
        if file.form.encoded:
            check_decoder(header.syntax, source.path)
        numbers.setdefault(file.series, _number_of(header))
        files.append(file)
        if len(sources) > 1:  # of many headers, only the elements needed later stay in memory
            header.source = source.at(source.path)
            header.values = {t: v for t, v in header.values.items() if t in LATER or t in kept}
            header.tags = tags.setdefault(frozenset(header.tags), header.tags)
    for names, what in ((others, "no DICOM"), (imageless, "without an image")):
        if names:
            notes.append(f"left out {counted(len(names), 'file')}, {what}: {listed(names)}")
    return files, numbers


def _with_shared_table(file: File, luts: dict[Lut, tuple[Lut, int]]) -> File:
    """The file with its table shared by all files that have an equal one. Raises `TooLarge`.

    `luts` has each table, with the bytes of it and of the tables before it.
    """
    if file.lut is None:
        return file
    file.header.values.pop(MODALITY_LUT)
    if file.lut not in luts:
        before = next(reversed(luts.values()))[1] if luts else 0
        nbytes, most = before + len(file.lut.entries), file.header.source.limits.metadata_bytes
        luts[file.lut] = file.lut, nbytes
        if nbytes > most:
            raise TooLarge(
                "is one of many files, each with another table of the modality",
                path=file.header.path, got=nbytes, expected=f"at most {most} bytes of tables",
                remedy="read fewer files at once",
            )  # fmt: skip
    return file._replace(lut=luts[file.lut][0])


def _number_of(header: Header) -> int | None:
    """The number of the series of a file, or None."""
    number = header.optional_number(SERIES_NUMBER)
    return None if number is None else int(number)


def is_dicom(source: Source) -> bool:
    """True for a file that begins as DICOM, with a preamble or without."""
    head = source.head
    return head[PREAMBLE:].startswith(MAGIC) or looks_like(head, source.size)


def _array(
    name: str, part: Part, grid: Grid, kept: dict[int, str], notes: list[str], *, alone: bool
) -> Array:
    """The array of the frames on a grid; pixels are read later."""
    form = part.form
    dims = (*grid.lengths, *form.shape)[::-1]
    meta, own_notes = metadata_of(part, grid, kept)
    notes += own_notes if alone else [f"'{name}': {note}" for note in own_notes]
    fields: dict[str, Any] = {"name": name, "meta": meta}
    first = grid.frames[0]
    header = part.files[first.file].header
    numbers = [(frame.file, frame.number) for frame in grid.frames]
    whole = numbers == [(first.file, first.number + n) for n in range(len(numbers))]
    pixels = header.image()
    words = header.syntax == BIG and pixels.vr == b"OW" and form.allocated == 8
    if whole and form.is_raw and header.inflated is None and not words:
        width = form.allocated // 8
        at = pixels.offset + first.number * form.size * width
        swap = width if header.syntax == BIG else 1
        nbytes = form.size * width * len(numbers)
        fields["extent"] = header.source.extent(at, nbytes, swap)
    else:
        fields["data"] = lambda: _frames(name, part, grid)
    array = Array(form.element, dims, **fields)
    array.storage["syntax"] = header.syntax
    if grid.problem is not None:
        array.problem = grid.problem
    return array


def _frames(name: str, part: Part, grid: Grid) -> Any:
    from .values import Frames

    return Frames(name, part.form, grid, part.files)
