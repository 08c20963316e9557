"""Tables that reader and writer of WebDataset share: kinds of members, names, and the sample."""

from __future__ import annotations

import re

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


def kind_of(extension: str) -> str:
    """The kind of the members with an extension. Raises nothing."""
    return KINDS.get(extension.rpartition(".")[2].lower(), OTHER)


def split_name(name: str) -> tuple[str, str] | None:
    """The key and the extension of a member, or None if it is not of a sample.

    >>> split_name("train/0001.seg.png")
    ('train/0001', 'seg.png')
    """
    above, slash, last = name.rpartition("/")
    stem, _, extension = last.partition(".")
    if not stem or not extension or (not slash and _is_about_all(name)):
        return None
    return above + slash + stem, extension


def _is_about_all(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


# Names of arrays and extensions -------------------------------------------------------------------


_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f/\\%]")
_ESCAPED = re.compile(r"(?:%[0-9A-F]{2})+")


def array_name(extension: str) -> str:
    """The name of the array of an extension: without what the writer adds, and its escapes."""
    name, dot, last = extension.rpartition(".")
    text = name if dot and name and last.lower() in WRITTEN.values() else extension
    name = _ESCAPED.sub(_unescaped, text)
    return name if escaped(name) == text else text


def _unescaped(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("%", "")).decode("utf-8", "replace")


def escaped(name: str) -> str:
    """A name as a part of an extension: without what a member or a path cannot have."""
    return _ODD.sub(lambda match: "".join(f"%{b:02X}" for b in match.group().encode()), name)


def extension_of(name: str, kind: str) -> str:
    """The extension of the members of an array, from which `array_name` finds its name.

    >>> extension_of("image", "array"), extension_of("index", "number"), extension_of("x", "text")
    ('image.npy', 'index', 'x.txt')
    """
    own, added = escaped(name), WRITTEN[kind]
    is_such = kind_of(own) == kind and (kind != ARRAY or own.lower().endswith("npy"))
    return own if is_such and array_name(own) == name else f"{own}.{added}"


def counted_keys(count: int) -> list[str]:
    """The keys of samples without names: their numbers."""
    digits = max(DIGITS, len(str(count - 1)))
    return [f"{number:0{digits}d}" for number in range(count)]


def text_element(nbytes: int) -> Element:
    """The type of texts of at most `nbytes` bytes."""
    width = max(1, nbytes)
    return Element("user", width, "|", f"|S{width}")
