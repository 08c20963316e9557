"""Files of formats that are not supported: the table of them, and the messages about them.

The first row of `FOREIGN` that fits a file names it. Rows of the kinds ``format`` and ``wrapper``
are refused before the suffix of a file decides, all others only when no format claims the file.
"""

from __future__ import annotations

import os
import re

from raconvert.catalogue import ROWS
from raconvert.declared import Record
from raconvert.errors import NotSupportedYet, UnknownFormat, did_you_mean, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.files.source import Source


class Foreign(Record):
    """A format that is recognised only to name it in a refusal.

    `kind` is how it is recognised and refused: ``format`` and ``wrapper`` (compression around a
    file) by content or, without `magic`, by suffix; ``wrapped`` by its suffix or its `pattern`, if
    its content is compressed; ``binary`` by content and, if it has suffixes, by one of them or by
    its `pattern` too; ``text`` by how a text begins; ``archive`` by bytes near the beginning of a
    ZIP archive. `pattern` is what a few bytes of a magic are too few for: how a file begins, as a
    regular expression. In `remedy`, FILE stands for the path as Python quotes it, WORD for the path
    as a shell does. `read_as` is the format whose plugin reads it: such a name is refused as a
    destination only.
    """

    kind: str
    title: str
    magic: tuple[tuple[int, bytes], ...] = ()
    suffixes: tuple[str, ...] = ()
    remedy: str = ""
    read_as: str | None = None
    pattern: bytes = b""


_FRAMES = "take its frames out first, for instance with: ffmpeg -i WORD frame%05d.png"
_VIDEOS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
_PICKLE = (
    "a pickle runs code when it is read, and is never opened here; where it comes from, save its "
    "arrays with numpy.savez"
)


def _by_python(module: str, code: str) -> str:
    """Return the remedy for a file from which a line of Python makes an array."""
    return f"in Python: import numpy, {module}; numpy.save('x.npy', {code})"


def _all_by_python(module: str, code: str) -> str:
    """Return the remedy for a file from which a line of Python makes arrays by name."""
    return f"in Python: import numpy, {module}; numpy.savez('x.npz', **{code})"


_BY_IMAGECODECS = _by_python("imagecodecs", "imagecodecs.imread(FILE)")
# Version 1, four lengths, one of its types, degrees of freedom, a flag.
_MGH = (
    rb"\x00\x00\x00\x01(?:\x00[\x00-\xff]{3}){4}\x00\x00\x00[\x00\x01\x03\x04\n]"
    rb"[\x00-\xff]{4}\x00[\x00\x01]"
)
# Version 3 or 4, a length of 32 or 64 bits, the byte order, and two flags.
_DM = rb"\x00\x00\x00(?:\x03[\x00-\xff]{4}|\x04[\x00-\xff]{8})\x00\x00\x00[\x00\x01]{3}"
# Version, then texts about who made it, then the graph or what it needs.
_ONNX = rb"\x08[\x01-\x1f](?:[\x12\x1a\x22\x32][\x00-\x40][ -~]*|\x28[\x00-\x7f])*[:B]"
_FREESURFER = "in Python: import nibabel; nibabel.save(nibabel.load(FILE), 'x.nii.gz')"


FOREIGN: tuple[Foreign, ...] = (
    Foreign(
        "format",
        "RawArray with a byte-swapped magic",
        ((0, b"arawrrya"),),
        (),
        "A well-known registry lists the magic of RA in this wrong form since 2017 (it is what "
        "`od -x` prints for 'rawarray'); a real RA file begins with 'rawarray'.",
    ),
    Foreign(
        "format",
        "RawArray with its magic spelled backwards",
        ((0, b"yarrawar"),),
        (),
        "The 64-bit magic was written big-endian; a real RA file begins with 'rawarray'.",
    ),
    Foreign(
        "format",
        "RealAudio",
        ((0, b".ra\xfd"), (0, b".RMF")),
        (),
        "It only shares the suffix with RA.",
    ),
    Foreign(
        "format",
        "JLD2",
        (),
        (".jld2",),
        "Only Julia writes it; Julia reads .h5, too.",
        "hdf5",
    ),
    Foreign(
        "format",
        "NASA's CDF",
        ((0, b"\xcd\xf3\x00\x01"), (0, b"\xcd\xf2\x60\x02")),
        (),
        "It shares the suffix .cdf with netCDF classic, and nothing else; in Python: import "
        "cdflib.xarray; cdflib.xarray.cdf_to_xarray(FILE).to_netcdf('x.nc')",
    ),
    Foreign(
        "format",
        "HDF4",
        ((0, b"\x0e\x03\x13\x01"),),
        (".h4", ".hdf4"),
        "It is not HDF5 and shares nothing with it but the name; "
        + _all_by_python(
            "pyhdf.SD",
            "{n: f.select(n).get() for f in [pyhdf.SD.SD(FILE)] for n in f.datasets()}",
        ),
    ),
    Foreign(
        "wrapped",
        "a FreeSurfer volume (MGZ)",
        (),
        (".mgz", ".mgh.gz"),
        _FREESURFER,
        pattern=_MGH,
    ),
    Foreign(
        "format",
        "Feather 1",
        ((0, b"FEA1"),),
        (),
        "in Python: import pandas; pandas.read_feather(FILE).to_feather('x.arrow')",
    ),
    Foreign("wrapper", "gzip", ((0, b"\x1f\x8b"),), (".gz",)),
    Foreign("wrapper", "bzip2", ((0, b"BZh"),), (".bz2",)),
    Foreign("wrapper", "xz", ((0, b"\xfd7zXZ\x00"),), (".xz",)),
    Foreign("wrapper", "zstandard", ((0, b"(\xb5/\xfd"),), (".zst",)),
    Foreign(
        "binary",
        "Avro",
        ((0, b"Obj\x01"),),
        (),
        "export its columns as .npy or .csv where it comes from",
    ),
    Foreign(
        "binary",
        "ORC",
        ((0, b"ORC"),),
        (),
        "in Python: import pandas; pandas.read_orc(FILE).to_parquet('x.parquet')",
    ),
    Foreign(
        "binary",
        "a Python pickle",
        ((0, b"\x80\x02"), (0, b"\x80\x03"), (0, b"\x80\x04"), (0, b"\x80\x05")),
        (),
        _PICKLE,
    ),
    Foreign(
        "binary",
        "SQLite",
        ((0, b"SQLite format 3\x00"),),
        (),
        "read its table, and save the values with numpy.save",
    ),
    Foreign(
        "binary",
        "GRIB",
        ((0, b"GRIB"),),
        (),
        "in Python: import xarray; xarray.open_dataset(FILE, engine='cfgrib').to_netcdf('x.nc')",
    ),
    Foreign(
        "binary",
        "a ROOT file",
        ((0, b"root"),),
        (),
        _all_by_python(
            "uproot",
            "{f'{t}.{b}': v for f in [uproot.open(FILE)] for t in f.keys(cycle=False) "
            "if hasattr(f[t], 'arrays') for b, v in f[t].arrays(library='np').items()}",
        ),
    ),
    Foreign(
        "binary",
        "Zeiss CZI",
        ((0, b"ZISRAWFILE"),),
        (),
        _by_python("czifile", "czifile.imread(FILE)"),
    ),
    Foreign(
        "binary",
        "Nikon ND2",
        ((0, b"\xda\xce\xbe\x0a"),),
        (),
        _by_python("nd2", "nd2.imread(FILE)"),
    ),
    Foreign(
        "binary",
        "Gatan DM3 or DM4",
        ((0, b"\x00\x00\x00\x03"), (0, b"\x00\x00\x00\x04")),
        (".dm3", ".dm4"),
        _by_python("ncempy.io", "ncempy.io.read(FILE)['data']"),
        pattern=_DM,
    ),
    Foreign(
        "binary",
        "TDMS (LabVIEW)",
        ((0, b"TDSm"),),
        (),
        _all_by_python(
            "nptdms",
            "{c.path: c[:] for g in nptdms.TdmsFile.read(FILE).groups() for c in g.channels()}",
        ),
    ),
    Foreign(
        "binary",
        "WAV sound",
        ((8, b"WAVE"),),
        (),
        _by_python("scipy.io", "scipy.io.wavfile.read(FILE)[1]"),
    ),
    Foreign(
        "binary",
        "a FreeSurfer volume (MGH)",
        ((0, b"\x00\x00\x00\x01"),),
        (".mgh",),
        _FREESURFER,
        pattern=_MGH,
    ),
    Foreign(
        "binary",
        "an ONNX model",
        ((0, b"\x08"),),
        (".onnx",),
        _all_by_python(
            "onnx",
            "{t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(FILE).graph.initializer}",
        ),
        pattern=_ONNX,
    ),
    Foreign(
        "binary",
        "JPEG 2000",
        ((0, b"\x00\x00\x00\x0cjP  "), (0, b"\xffO\xffQ")),
        (),
        _BY_IMAGECODECS,
    ),
    Foreign(
        "binary",
        "JPEG XL",
        ((0, b"\x00\x00\x00\x0cJXL "), (0, b"\xff\x0a")),
        (),
        _BY_IMAGECODECS,
    ),
    Foreign(
        "binary",
        "OpenEXR",
        ((0, b"v/1\x01"),),
        (),
        _all_by_python(
            "OpenEXR", "{n: c.pixels for n, c in OpenEXR.File(FILE).channels().items()}"
        ),
    ),
    Foreign(
        "binary",
        "AVIF or HEIF",
        ((4, b"ftypavi"), (4, b"ftyphei"), (4, b"ftyphev"), (4, b"ftypmif"), (4, b"ftypmsf")),
        (),
        _BY_IMAGECODECS,
    ),
    Foreign("binary", "a video (MP4 or QuickTime)", ((4, b"ftyp"),), (), _FRAMES),
    Foreign("binary", "a video (Matroska or WebM)", ((0, b"\x1aE\xdf\xa3"),), (), _FRAMES),
    Foreign("binary", "PDF", ((0, b"%PDF"),), (), "its images are had with pdfimages"),
    Foreign("binary", "a 7-Zip archive", ((0, b"7z\xbc\xaf'\x1c"),), (), "unpack it first"),
    Foreign("binary", "an LZ4 frame", ((0, b'\x04"M\x18'),), (), "decompress it first"),
    Foreign(
        "binary",
        "Microsoft Office, old",
        ((0, b"\xd0\xcf\x11\xe0"),),
        (),
        "save the sheet as .xlsx or .csv",
    ),
    Foreign("binary", "a program", ((0, b"\x7fELF"), (0, b"MZ")), (), "it holds no arrays"),
    Foreign(
        "text",
        "HTML",
        ((0, b"<!doctype html"), (0, b"<html")),
        (),
        "maybe a page of a server in place of the file",
    ),
    Foreign(
        "text",
        "XML",
        ((0, b"<?xml"), (0, b"<")),
        (),
        "its arrays have to be exported by what wrote it",
    ),
    Foreign(
        "text",
        "a pointer of Git LFS",
        ((0, b"version https://git-lfs"),),
        (),
        "git lfs pull gets the file itself",
    ),
    Foreign(
        "text",
        "references (kerchunk)",
        (
            (0, b'{"version":1,"raconvert":'),
            (0, b'{"version":1,"refs":'),
            (0, b'{"version": 1, "refs":'),
        ),
        (),
        "raconvert verify WORD says what they name; convert those files, or in Python: import "
        "xarray; xarray.open_dataset('reference://', engine='zarr', "
        "backend_kwargs={'storage_options': {'fo': FILE}})",
    ),
    Foreign(
        "text",
        "JSON",
        ((0, b"{"), (0, b"[")),
        (),
        _by_python("json", "numpy.array(json.load(open(FILE)))"),
    ),
    Foreign(
        "archive",
        "a document of Office",
        ((0, b"[Content_Types].xml"),),
        (),
        "save its tables as .xlsx or .csv",
    ),
)


def of_kind(kind: str) -> tuple[Foreign, ...]:
    """Return the rows of one kind, in their order."""
    return tuple(row for row in FOREIGN if row.kind == kind)


def unknown_target(path: str, broken: Sequence[str]) -> UnknownFormat:
    """Return the error for a destination with a suffix that no format has.

    `broken` are the formats of installed plugins that cannot be loaded: one may have the suffix.
    """
    others = []
    if broken:
        plugins = f"{len(broken)} installed plugin{'s' if len(broken) > 1 else ''}"
        others = [f"{plugins} cannot be loaded: {listed(broken)} (see `raconvert formats`)"]
    suffixes = ", ".join(row.suffixes[0] for row in ROWS if row.writes and row.suffixes)
    name = path.lower()
    for foreign in of_kind("format"):
        if name.endswith(foreign.suffixes):
            return NotSupportedYet(
                f"{foreign.title} is not supported yet as a destination",
                path=path,
                remedy="\n".join(
                    filter(None, [foreign.remedy, f"destinations that are: {suffixes}", *others])
                ),
            )
    for wrapper in of_kind("wrapper"):
        if name.endswith(wrapper.suffixes):
            return NotSupportedYet(
                f"a destination inside {wrapper.title} is not supported yet",
                path=path,
                remedy="\n".join(["write the file itself and compress it afterwards", *others]),
            )
    if name.endswith(_VIDEOS):
        return UnknownFormat(
            "videos are not written",
            path=path,
            expected=f"one of {suffixes}",
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
        expected=f"one of {suffixes}",
        remedy="\n".join(["or name the format with `--to`", *others]),
    )


def refuse_foreign(source: Source, *, named: bool) -> None:
    """Raise `NotSupportedYet` for a file of a recognised format that has no plugin.

    `named`: the suffix of the file is that of an installed plugin, so that it names no other.
    """
    head = source.head
    for foreign in of_kind("format"):
        suffix_counts = bool(head) and not foreign.magic and not named
        by_name = suffix_counts and source.path.lower().endswith(foreign.suffixes)
        by_content = any(head.startswith(text, at) for at, text in foreign.magic)
        if foreign.read_as is None and (by_content or by_name):
            raise NotSupportedYet(
                f"is {foreign.title}, not supported yet",
                path=source.path,
                remedy=f"{_for(source, foreign.remedy)}\nraconvert formats lists those that are",
            )
    for wrapper in of_kind("wrapper"):
        if head.startswith(wrapper.magic[0][1]):
            name = source.path.lower()
            for foreign in of_kind("wrapped"):
                named_so = name.endswith(foreign.suffixes)
                if named_so or re.match(foreign.pattern, _inflated(head)):
                    by = "by its name" if named_so else "inside"
                    raise NotSupportedYet(
                        f"is {wrapper.title}-compressed, {by} {foreign.title}, not supported yet",
                        path=source.path,
                        remedy=_for(source, foreign.remedy),
                    )
            suffix = next((end for end in wrapper.suffixes if name.endswith(end)), "")
            inner = name.removesuffix(suffix)
            formats = [(row.title, row.suffixes) for row in ROWS]
            formats += [(row.title, row.suffixes) for row in of_kind("format")]
            inside = next((title for title, ends in formats if inner.endswith(ends)), None)
            what = f"by its name {inside} inside" if inside else "with unknown content"
            raise NotSupportedYet(
                f"is {wrapper.title}-compressed ({what}), not supported yet",
                path=source.path,
                remedy="decompress it first",
            )


def unknown_source(source: Source, silent: Sequence[str]) -> UnknownFormat:
    """Return the error for a file that no format claims, with its kind and a remedy.

    `silent` are the formats that could not be asked, with the reasons.
    """
    from raconvert.files.quoting import operand

    content = known_content(source) if source.size else None
    what = "no format claims this file" if source.size else "file is empty: no format claims it"
    lines = []
    if content is not None:
        title, remedy = content
        what += f"; its first bytes are those of {title}"
        lines.append(_for(source, remedy))
    if silent:
        lines.append(f"not asked: {listed(silent)}")
    lines.append(
        f"name the format with `--from`; raconvert formats --why {operand(source.path)} has every "
        "answer"
    )
    return UnknownFormat(what, path=source.path, remedy="\n".join(lines))


def _inflated(head: bytes) -> bytes:
    """The first bytes inside gzip; none of other content."""
    import zlib

    try:
        return zlib.decompressobj(wbits=31).decompress(head, 64)
    except zlib.error:
        return b""


def _for(source: Source, remedy: str) -> str:
    """Return a remedy with the path of the file for FILE and WORD."""
    from raconvert.files.quoting import operand, python

    words = {"FILE": python(source.path), "WORD": operand(source.path)}
    return re.sub(r"\b(?:FILE|WORD)\b", lambda word: words[word[0]], remedy)


def known_content(source: Source) -> tuple[str, str] | None:
    """Return a name for the content of a file by its first bytes, and a remedy; None if unknown."""
    head = source.head
    binary = any(byte < 9 or 13 < byte < 32 for byte in head)
    name = source.path.lower()
    for row in of_kind("binary"):
        by_name = not row.suffixes or name.endswith(row.suffixes)
        if not by_name and not (row.pattern and re.match(row.pattern, head)):
            continue
        matching = (text for at, text in row.magic if head.startswith(text, at))
        if any(binary or len(text) > 3 for text in matching):
            return row.title, row.remedy
    if head.startswith(b"PK\3\4"):
        inside = (row for row in of_kind("archive") if row.magic[0][1] in head)
        return next(
            ((row.title, row.remedy) for row in inside),
            ("a ZIP archive without arrays of ours", "unpack it first"),
        )
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if binary or not text or not _is_text(head):
        return None
    for row in of_kind("text"):
        if text.startswith(tuple(beginning for _, beginning in row.magic)):
            return row.title, row.remedy
    return _table(head) or ("plain text", "numpy.loadtxt reads numbers, numpy.save keeps them")


def _is_text(head: bytes) -> bool:
    """True for UTF-8, which may be cut off in the middle of a character."""
    from codecs import getincrementaldecoder

    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _table(head: bytes) -> tuple[str, str] | None:
    """Return title and remedy for lines with equally many delimiters; None for other text."""
    lines = [line for line in head.splitlines()[:6] if line.strip()]
    for title, mark in (("CSV", b","), ("TSV", b"\t"), ("CSV", b";")):
        counts = {line.count(mark) for line in lines[:5]}
        if lines and counts != {0} and len(counts) == 1:
            return title, "if it is a table, read it as one with `--from csv`"
    return None
