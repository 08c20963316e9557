"""Formats that are recognised and not supported: what is said of them."""

from __future__ import annotations

import os
import re

from raconvert.catalogue import FOREIGN, ROWS, WRAPPERS
from raconvert.errors import NotSupportedYet, UnknownFormat, did_you_mean, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.files.source import Source


def unknown_target(path: str, broken: Sequence[str]) -> UnknownFormat:
    """The error for a destination that no format has the suffix of.

    `broken` are the formats of installed plugins that cannot be loaded: it may be one of theirs.
    """
    plugins = f"{len(broken)} installed plugin{'s' if len(broken) > 1 else ''}"
    what = f"{plugins} cannot be loaded: {listed(broken)} (see `raconvert formats`)"
    others = [what] * bool(broken)
    known = ", ".join(row.suffixes[0] for row in ROWS if row.writes and row.suffixes)
    name = path.lower()
    for foreign in FOREIGN:
        if name.endswith(foreign.suffixes or ("\0",)):
            return NotSupportedYet(
                f"{foreign.title} is not supported yet as a destination",
                path=path,
                remedy="\n".join(
                    filter(None, [foreign.note, f"destinations that are: {known}", *others])
                ),
            )
    for title, _, suffixes in WRAPPERS:
        if name.endswith(suffixes):
            return NotSupportedYet(
                f"a destination inside {title} is not supported yet",
                path=path,
                remedy="\n".join(["write the file itself and compress it afterwards", *others]),
            )
    if name.endswith(_VIDEOS):
        return UnknownFormat(
            "videos are not written",
            path=path,
            expected=f"one of {known}",
            remedy="\n".join(["one file for each frame: `-o 'frame{:05d}.png'`", *others]),
        )
    written = [suffix for row in ROWS if row.writes for suffix in row.suffixes]
    ending = os.path.splitext(name)[1]
    swapped = [suffix for suffix in written if sorted(suffix) == sorted(ending)]
    what = (
        f"no format has the suffix '{ending}'" if ending else "has no suffix that says the format"
    )
    return UnknownFormat(
        what + (did_you_mean(ending, swapped or written) if ending else ""),
        path=path,
        expected=f"one of {known}",
        remedy="\n".join(["or name the format with `--to`", *others]),
    )


def refuse_foreign(source: Source, *, named: bool) -> None:
    """Name a recognised format that has no plugin (`NotSupportedYet`, exit code 3).

    `named`: its suffix is that of a format which somebody has installed.
    """
    head = source.head
    supported = ", ".join(row.name for row in ROWS)
    for foreign in FOREIGN:
        by_name = not foreign.magic and head and source.path.lower().endswith(foreign.suffixes)
        by_name = by_name and not named
        by_content = any(head.startswith(text, at) for at, text in foreign.magic)
        if foreign.read_as is None and (by_content or by_name):
            raise NotSupportedYet(
                f"is {foreign.title}, not supported yet",
                path=source.path,
                remedy=" ".join(filter(None, [foreign.note, f"Supported: {supported}."])),
            )
    for title, magic, suffixes in WRAPPERS:
        if head.startswith(magic):
            name = source.path.lower()
            inner = next((name[: -len(s)] for s in suffixes if name.endswith(s)), name)
            known = [(f.title, f.suffixes) for f in ROWS] + [(f.title, f.suffixes) for f in FOREIGN]
            inside = next((title for title, ends in known if inner.endswith(ends or ("\0",))), None)
            what = f"by its name {inside} inside" if inside else "with unknown content"
            raise NotSupportedYet(
                f"is {title}-compressed ({what}), not supported yet",
                path=source.path,
                remedy="decompress it first",
            )


# What is in no format of ours, by its first bytes: what it is, where, the bytes, what to do, where
# the path stands for FILE in a program and for WORD in a command.
_NPY = "{}, then numpy.save('x.npy', values)"
_FRAMES = "take its frames out first, for instance with: ffmpeg -i WORD frame%05d.png"
_VIDEOS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
_PICKLE = (
    "a pickle runs code when it is read, and is never opened here; where it comes from, save its "
    "arrays with numpy.savez"
)
_KNOWN: tuple[tuple[str, int, bytes, str], ...] = (
    ("FITS", 0, b"SIMPLE  =", _NPY.format("in Python: values = astropy.io.fits.getdata(FILE)")),
    ("DICOM", 128, b"DICM", _NPY.format("in Python: values = pydicom.dcmread(FILE).pixel_array")),
    (
        "Parquet",
        0,
        b"PAR1",
        _NPY.format("in Python: values = pandas.read_parquet(FILE).to_numpy()"),
    ),
    ("Arrow (Feather)", 0, b"ARROW1", _NPY.format("in Python: values = pandas.read_feather(FILE)")),
    ("Feather 1", 0, b"FEA1", _NPY.format("in Python: values = pandas.read_feather(FILE)")),
    ("Avro", 0, b"Obj\x01", "export its columns as .npy or .csv where it comes from"),
    ("ORC", 0, b"ORC", _NPY.format("in Python: values = pandas.read_orc(FILE).to_numpy()")),
    *(("a Python pickle", 0, bytes((0x80, version)), _PICKLE) for version in (2, 3, 4, 5)),
    ("SQLite", 0, b"SQLite format 3\0", "read its table, and save the values with numpy.save"),
    (
        "GRIB",
        0,
        b"GRIB",
        _NPY.format("in Python: values = xarray.open_dataset(FILE, engine='cfgrib')"),
    ),
    ("a ROOT file", 0, b"root", _NPY.format("in Python: values = uproot.open(FILE)[NAME].array()")),
    ("R data", 0, b"RDX", "in R: save the arrays as HDF5"),
    ("R data", 0, b"X\n\0\0", "in R: save the arrays as HDF5"),
    ("a GGUF model", 0, b"GGUF", "its arrays are quantized blocks; export them as safetensors"),
    ("JPEG 2000", 0, b"\0\0\0\x0cjP  ", "convert it to TIFF or PNG first"),
    ("JPEG XL", 0, b"\0\0\0\x0cJXL ", "convert it to TIFF or PNG first"),
    ("OpenEXR", 0, b"v/1\x01", "convert it to TIFF first"),
    *(
        ("AVIF or HEIF", 4, b"ftyp" + brand, "convert it to PNG first")
        for brand in (b"avi", b"hei", b"hev", b"hei", b"mif", b"msf")
    ),
    ("a video (MP4 or QuickTime)", 4, b"ftyp", _FRAMES),
    ("a video (Matroska or WebM)", 0, b"\x1aE\xdf\xa3", _FRAMES),
    ("PDF", 0, b"%PDF", "its images are had with pdfimages"),
    ("a 7-Zip archive", 0, b"7z\xbc\xaf\x27\x1c", "unpack it first"),
    ("an LZ4 frame", 0, b"\x04\x22\x4d\x18", "decompress it first"),
    (
        "Microsoft Office, old",
        0,
        b"\xd0\xcf\x11\xe0",
        "save the sheet as .csv and read that with numpy",
    ),
    ("a program", 0, b"\x7fELF", "it holds no arrays"),
    ("a program", 0, b"MZ", "it holds no arrays"),
)
_TEXTS: tuple[tuple[str, tuple[bytes, ...], str], ...] = (
    ("HTML", (b"<!doctype html", b"<html"), "maybe a page of a server in place of the file"),
    ("XML", (b"<?xml", b"<"), "its arrays have to be exported by what wrote it"),
    ("a pointer of Git LFS", (b"version https://git-lfs",), "git lfs pull gets the file itself"),
    (
        "references (kerchunk)",
        (b'{"version":1,"raconvert":', b'{"version":1,"refs":', b'{"version": 1, "refs":'),
        "raconvert verify WORD says what they name; convert those files, or open it in Python: "
        "xarray.open_dataset('reference://', engine='zarr', backend_kwargs="
        "{'storage_options': {'fo': FILE}})",
    ),
    ("JSON", (b"{", b"["), _NPY.format("in Python: values = numpy.array(json.load(open(FILE)))")),
)


def unknown_source(source: Source, silent: Sequence[str]) -> UnknownFormat:
    """The error for a file that no format claims: what it is, and what can be done.

    `silent` tells which formats could not be asked, and why.
    """
    from raconvert.files.quoting import operand, python

    known = known_content(source) if source.size else None
    what = "no format claims this file" if source.size else "file is empty: no format claims it"
    if known is not None:
        what += f"; its first bytes are those of {known[0]}"
    words = {"FILE": python(source.path), "WORD": operand(source.path)}
    lines = [re.sub("FILE|WORD", lambda word: words[word[0]], known[1])] if known else []
    if silent:
        lines.append(f"not asked: {listed(silent)}")
    lines.append(
        f"name the format with `--from`; raconvert formats --why {words['WORD']} has every answer"
    )
    return UnknownFormat(what, path=source.path, remedy="\n".join(lines))


def known_content(source: Source) -> tuple[str, str] | None:
    """What a file is by its first bytes, though no format claims it, and what to do with it."""
    head = source.head
    binary = any(byte < 9 or 13 < byte < 32 for byte in head)
    for title, at, magic, remedy in _KNOWN:
        if head.startswith(magic, at) and (binary or len(magic) > 3):
            return title, remedy
    if head.startswith(b"PK\3\4"):
        return _archive(head)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if binary or not text or not _is_text(head):
        return None
    for title, beginnings, remedy in _TEXTS:
        if text.startswith(beginnings):
            return title, remedy
    return _table(head) or ("plain text", "numpy.loadtxt reads numbers, numpy.save keeps them")


def _is_text(head: bytes) -> bool:
    """True for UTF-8, which may be cut off in the middle of a character."""
    from codecs import getincrementaldecoder

    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _archive(head: bytes) -> tuple[str, str]:
    for title, mark, remedy in (
        ("a spreadsheet (.xlsx)", b"xl/", "save the sheet as .csv and read that with numpy"),
        (
            "a spreadsheet (.xlsx)",
            b"[Content_Types].xml",
            "save it as .csv and read that with numpy",
        ),
        (
            "a PyTorch file",
            b"/data.pkl",
            "it is a pickle, which is never opened here; where it comes "
            "from, save its tensors with numpy.savez or as safetensors",
        ),
    ):
        if mark in head:
            return title, remedy
    return "a ZIP archive without arrays of ours", "unpack it first"


def _table(head: bytes) -> tuple[str, str] | None:
    """The answer for lines of values between the same delimiters."""
    lines = [line for line in head.splitlines()[:6] if line.strip()]
    for title, mark, word in (("CSV", b",", "','"), ("TSV", b"\t", r"'\t'"), ("CSV", b";", "';'")):
        counts = {line.count(mark) for line in lines[: 5 if len(lines) > 5 else None]}
        if lines and counts != {0} and len(counts) == 1:
            return title, _NPY.format(
                f"in Python: values = numpy.genfromtxt(FILE, delimiter={word}, skip_header=1)"
            )
    return None
