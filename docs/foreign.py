"""The page of the formats that are not read, from the table of `raconvert.foreign`.

Each has a heading of its own, so that the search of the site answers its name with its remedy.
"""

from __future__ import annotations

from raconvert.foreign import FOREIGN, Foreign

PAGE = "docs/reference/not-read.md"
HEAD = """\
<!-- Written by `python -m docs.generate` from raconvert/foreign.py. Edit that instead. -->
# Formats that are not read

raconvert knows these files, and refuses them by name with what can be done. None of them is guessed
at. In the remedies `FILE` stands for the name of your file. What is read is in
[the list of formats](../formats.md).
"""
# Words that people search for -> the title in the table.
ALSO_CALLED = {
    "GRIB": "GRIB2, `.grib`, `.grb`, `.grib2`, `.grb2`",
    "NASA's CDF": "Common Data Format, `.cdf`",
    "HDF4": "HDF-EOS2, `.hdf`",
    "Feather 1": "`.feather`",
    "zstandard": "zstd",
    "Avro": "`.avro`",
    "ORC": "`.orc`",
    "a Python pickle": "`.pkl`, `.pickle`, joblib",
    "SQLite": "`.sqlite`, `.db`",
    "a ROOT file": "CERN ROOT, `.root`",
    "Zeiss CZI": "`.czi`",
    "Nikon ND2": "`.nd2`",
    "Gatan DM3 or DM4": "Digital Micrograph",
    "TDMS (LabVIEW)": "National Instruments, `.tdms`",
    "WAV sound": "`.wav`, audio",
    "JPEG 2000": "`.jp2`, `.j2k`, `.jpx`",
    "JPEG XL": "`.jxl`",
    "OpenEXR": "EXR, `.exr`",
    "AVIF or HEIF": "`.avif`, `.heic`, `.heif`",
    "a video (MP4 or QuickTime)": "`.mp4`, `.mov`, `.m4v`",
    "a video (Matroska or WebM)": "`.mkv`, `.webm`",
    "PDF": "`.pdf`",
    "a 7-Zip archive": "`.7z`",
    "an LZ4 frame": "`.lz4`",
    "Microsoft Office, old": "`.xls`, `.doc`, `.ppt`",
    "a document of Office": "`.docx`, `.pptx`, `.ods`",
    "an ONNX model": "neural network",
}
HOW = {
    "format": "Known by its content or its suffix, and refused whatever it is called.",
    "wrapper": "Compression around a whole file.",
    "wrapped": "Known by its suffix and its compressed content.",
    "binary": "Known by its content.",
    "text": "Known by how the text begins.",
    "archive": "Known by the names in the archive.",
}
UNPACK = "decompress it first, and convert what is in it"


def page() -> str:
    """The whole page."""
    rows = [row for row in FOREIGN if row.read_as is None]
    return "\n".join([HEAD, *map(section, sorted(rows, key=lambda row: named(row).casefold()))])


def named(row: Foreign) -> str:
    """The title without its article."""
    for article in ("a ", "an "):
        if row.title.startswith(article):
            rest = row.title.removeprefix(article)
            return rest[0].upper() + rest[1:]
    return row.title


def section(row: Foreign) -> str:
    """The name of a format, how it is known, and what to do."""
    suffixes = ", ".join(f"`{suffix}`" for suffix in row.suffixes)
    known = ", ".join(part for part in (ALSO_CALLED.get(row.title, ""), suffixes) if part)
    lines = [f"## {named(row)}", "", f"Also called: {known}.\n" if known else "", HOW[row.kind], ""]
    remedy = row.remedy or UNPACK
    words, python, code = remedy.partition("in Python: ")
    if not python:
        said = words.replace("WORD", "FILE").rstrip(".")
        return "\n".join([*lines, f"{said[0].upper()}{said[1:]}.", ""])
    words = words.strip().rstrip(";:,")
    if words:
        lines += [f"{words[0].upper()}{words[1:]}.".replace("WORD", "FILE"), ""]
    return "\n".join([*lines, "In Python:", "", "```py", *code.split("; "), "```", ""])
