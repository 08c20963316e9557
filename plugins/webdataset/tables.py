"""Tables that reader and writer of WebDataset share: kinds of members, names, and the sample."""

from __future__ import annotations

from raconvert.plugin import Element, element

NAME = "webdataset"
TITLE = "WebDataset"
SUFFIX = ".tar"
SUFFIXES = (".wds.tar",)
DIGITS = 6  # of the counted keys and shards, as the library's own writer has them
MOST_SHARDS = 100_000
NUMBER_BYTES = 64  # of a class; the longest int64 has 20
INT64 = element("int", 8)
BYTE = element("uint", 1)

# What a member is, by the last part of its extension, as the library's own decoders have it.
NUMBER, TEXT, ARRAY, OTHER = "number", "text", "array", "other"
NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")
TEXTS = ("txt", "text", "transcript", "json", "jsn")
FORMATS = {  # of arrays: the format that reads it
    "npy": "npy", "png": "png", "jpg": "jpeg", "jpeg": "jpeg", "tif": "tiff", "tiff": "tiff",
    "webp": "webp", "gif": "gif", "bmp": "bmp", "ppm": "netpbm", "pgm": "netpbm", "pbm": "netpbm",
    "pnm": "netpbm", "pam": "netpbm",
}  # fmt: skip
KINDS = {
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(TEXTS, TEXT),
    **dict.fromkeys(FORMATS, ARRAY),
}
WRITTEN = {NUMBER: "cls", TEXT: "txt", ARRAY: "npy"}  # by kind, the extension that we add


def split_name(name: str) -> tuple[str, str] | None:
    """Return the key and the extension of a member; None if it is not of a sample.

    >>> split_name("train/0001.seg.png")
    ('train/0001', 'seg.png')
    """
    above, slash, last = name.rpartition("/")
    stem, _, extension = last.partition(".")
    about_all = not slash and name.startswith("__") and name.endswith("__")
    if not stem or not extension or about_all:
        return None
    return above + slash + stem, extension


def counted_keys(count: int) -> list[str]:
    """Return the keys of samples without names: their numbers, of at least six digits."""
    digits = max(DIGITS, len(str(count - 1)))
    return [f"{number:0{digits}d}" for number in range(count)]


def text_element(nbytes: int) -> Element:
    """Return the element type of texts of at most `nbytes` bytes."""
    width = max(1, nbytes)
    return Element("user", width, "|", f"|S{width}")
