"""WebDataset: samples in tar archives, as models are trained on them, read and write.

Specification: "WebDataset Format Specification" of the library `webdataset`; POSIX.1-2017 for pax.
Compared with: that library, and Python's tarfile, in both directions.

Layout: an uncompressed tar of files ``KEY.EXTENSION``, those of one key in a row. The key ends at
the first dot behind the last ``/``; what follows is the extension, which counts in lower case, as
it does for the library. All members of one key are a sample; several archives are shards.

Reads: an array for each extension, with the samples along its first axis, in the order of the
archive, member by member when they are asked for; nothing is unpacked. By the last part of the
extension::

    npy                               the array
    png jpg jpeg tif tiff webp gif    the image, as the format of that name reads it
    bmp ppm pgm pbm pnm pam
    cls cls2 class count index inx id int64, decimal digits
    txt text transcript json jsn      texts in UTF-8, as they stand; of JSON, too

Members of other kinds are left out, which is noted: ``raw=msgpack`` reads the bytes of an
extension, ``only=jpg,cls`` leaves out all but those. Nothing is unpickled (``pyd``, ``pth``).
The shapes and types of all samples have to be alike, and no sample may lack a member: the array is
refused by name otherwise, and others can be read. ``apart=jpg`` makes every member an array of its
own, ``jpg/KEY`` (numbers and texts: their bytes). The keys are the labels of the first axis, unless
they are its numbers (000000, 000001, ...).

Several shards are one source: ``raconvert 'x-{000000..000009}.tar' --from webdataset``, with a
pattern or a list as well, or the first one with ``shards=10``. An archive is known by its first two
members, of one key or of one extension, which are not both texts; any other needs
``--from webdataset``.

Writes: a member ``KEY.NAME.npy`` for each array and index along the first axis, which all arrays
share; for int64 of one axis ``KEY.NAME.cls``, for texts in UTF-8 ``KEY.NAME.txt`` (``text=npy``: as
NPY). Names that say it already (``cls``, ``json``) get nothing added. Keys are the labels of the
first axis where these can be keys, else numbers of six digits. No owner, no date: equal arrays give
equal bytes. ``samples=N`` makes shards of N samples: x-000000.tar, which is named, x-000001.tar ...

Refused: links, devices, sparse members, names that lead out of the archive or are not UTF-8; two
members of one extension in a sample, also in capitals; samples whose members do not follow each
other; archives that are cut off; compressed ones. Writing refuses arrays without axes, or without
samples, those of different lengths together, names that differ in capitals only, and what NPY does
not hold. All other metadata of arrays has no place (named as equivalent); ``/`` in a name is
percent-escaped. An array is not added to an archive.
"""

from __future__ import annotations

import os
import re

from raconvert.bundle.members import MANIFEST
from raconvert.errors import Unsupported, UsageError, listed
from raconvert.files import tars
from raconvert.files.tars import BLOCK, MAGIC, MAGIC_AT
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from .plan import kind_of, plan
from .tables import (
    ARRAY,
    DIGITS,
    MOST_SHARDS,
    NAME,
    NUMBER,
    SUFFIXES,
    TITLE,
    split_name,
)

__all__ = ["FORMAT", "plan", "read", "read_together", "sniff"]


def _sample() -> bytes:
    """Return two samples, each an array (2, 3) and a class, as tarfile packs them."""
    npy = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"
    npy = npy.ljust(127) + b"\n"
    members = {
        "a.x.npy": npy + bytes(range(6)), "a.cls": b"3",
        "b.x.npy": npy + bytes(range(6, 12)), "b.cls": b"5",
    }  # fmt: skip
    parts = []
    for name, data in members.items():
        fields = (name.encode().ljust(100, b"\0"), b"0000644\0", b"0000000\0" * 2,
                  b"%011o\0" % len(data), b"0" * 11 + b"\0")  # fmt: skip
        before, behind = b"".join(fields), b"0" + bytes(100) + b"ustar\x0000"
        behind = behind.ljust(BLOCK - len(before) - 8, b"\0")
        total = sum(before) + 8 * 32 + sum(behind)
        parts.append(before + b"%06o\0 " % total + behind + data.ljust(BLOCK, b"\0"))
    return b"".join(parts) + bytes(2 * BLOCK)


FORMAT = Format(
    name=NAME,
    title=TITLE,
    suffixes=SUFFIXES,
    magic=((MAGIC_AT, MAGIC),),
    raw_bools=True,
    many=True,
    stream=True,
    meta="some",
    holds=("labels",),
    index_orders="C",
    together=True,
    names_files=True,
    read_options=(
        Option("only", "", str, "extensions that are read, such as jpg,cls; all others are not"),
        Option("raw", "", str, "extensions whose members are read as bytes"),
        Option("apart", "", str, "extensions of which every member is an array of its own"),
        Option("shards", 1, int, "shards that are read, by their numbers, from this one on"),
    ),
    write_options=(
        Option("samples", 0, int, "samples in each shard, of which the first is named; 0: one"),
        Option("text", "txt", ("txt", "npy"), "texts as they are, or as arrays of one"),
    ),
    samples={"two_by_three.wds.tar": _sample()},
    spec="https://github.com/webdataset/webdataset",
    losses="labels of the samples are the keys; other metadata is lost; types as in NPY",
)


def sniff(source: Source) -> int:
    """Return SURE if the first two members are of one sample or one kind, or for the suffix.

    A bundle begins with its manifest, which is neither.
    """
    if not _is_tar(source):
        return NO
    members: list[tuple[str, str]] = []
    offset = 0
    for _ in range(source.limits.probed_headers):
        block = source.read_at(offset, BLOCK)
        size = tars.size_in(block)
        if size is None:
            break
        if block[156:157] in (b"0", b"\0"):
            parts = split_name(tars.name_in(block))
            if parts is None or parts == _OF_BUNDLE:
                return NO
            members.append(parts)
        if len(members) == 2:
            break
        offset += BLOCK + size + -size % BLOCK
    is_named = bool(members) and source.name.lower().endswith(SUFFIXES)
    return SURE if is_named else _judged(members)


_OF_BUNDLE = split_name(MANIFEST)


def _judged(members: list[tuple[str, str]]) -> int:
    """Return SURE for two members that go together, and for a single one such as we write."""
    kinds = {kind_of(extension) for _, extension in members}
    if not kinds & {ARRAY, NUMBER}:  # texts are in any archive
        return NO
    if len(members) == 1:
        return SURE if members[0][1].lower().endswith((".npy", ".cls")) else NO
    one_key = len({key for key, _ in members}) == 1
    one_kind = len({extension.lower() for _, extension in members}) == 1
    return SURE if one_key or one_kind else NO


def read(
    source: Source, *, only: str = "", raw: str = "", apart: str = "", shards: int = 1
) -> Bundle:
    """Read the arrays of a shard, or of `shards` of them, numbered from this one on.

    Raises `Corrupt`, `Unsafe`, `Unsupported` and `TooLarge`, and what reading an image raises.
    """
    sources = [source]
    if shards != 1:
        sources += _next_shards(source, shards)
    return read_together(sources, folder=None, only=only, raw=raw, apart=apart)


def _next_shards(source: Source, count: int) -> list[Source]:
    """Open the shards behind the first of `count`. Raises `UsageError` for an odd name or count."""
    name = os.path.basename(source.place)
    match = re.search(r"([0-9]+)(\.[^0-9]*)$", name)
    if not 0 < count <= MOST_SHARDS or match is None:
        raise UsageError(
            "has no number in its name, or the option shards is out of range", path=source.path,
            expected=f"a name such as x-{0:0{DIGITS}d}.tar, and 1 to {MOST_SHARDS} shards",
            got=f"shards={count}",
        )  # fmt: skip
    number, end = match.groups()
    return [
        source.beside(f"{int(number) + more:0{len(number)}d}{end}", "the shard",
                      ending=(number + end).lower())
        for more in range(1, count)
    ]  # fmt: skip


def read_together(
    sources: list[Source],
    *,
    folder: str | None,
    only: str = "",
    raw: str = "",
    apart: str = "",
    shards: int = 1,
) -> Bundle:
    """Read the arrays of several shards, one after the other. Raises what `read` raises."""
    from .reader import read_shards

    if shards != 1:
        raise UsageError("option shards goes with one file, the first of the shards")
    notes: list[str] = []
    if folder is not None:
        others = [os.path.basename(file.path) for file in sources if not _is_tar(file)]
        notes += [f"left out, as they are not tar archives: {listed(others)}"] if others else []
        sources = [file for file in sources if _is_tar(file)]
        if not sources:
            raise Unsupported("folder holds no tar archive", path=folder)
    bundle = read_shards(sources, only=only, raw=raw, apart=apart)
    bundle.notes.extend(notes)
    return bundle


def _is_tar(source: Source) -> bool:
    return source.head[MAGIC_AT : MAGIC_AT + len(MAGIC)] == MAGIC
