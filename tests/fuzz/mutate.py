"""Changes of files: blind ones, and ones that know enough of a format to get past its checksums."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

ODD = (0, 1, 2, 3, 7, 8, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000, 1024, 4096, 32767, 32768, 65535,
       65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
ODD_WORDS = (b"-1", b"0", b"1", b"99999999999", b"nan", b"inf", b"1e400", b"''", b"()", b"[]", b"{}", b"null",
             b"../x", b"/etc/passwd", b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"%s", b"\n", b"\r\n", b"\n\n")  # fmt: skip
MOST = 1 << 16  # bytes of a file that is still worth changing


def changed(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Return the bytes with one to four blind changes; `others` are pieces to splice in."""
    room = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        if not room:
            room += rng.randbytes(8)
        rng.choice(_BLIND)(room, rng, others)
    return bytes(room[:MOST])


def _flip(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    room[rng.randrange(len(room))] ^= 1 << rng.randrange(8)


def _byte(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    room[rng.randrange(len(room))] = rng.choice((0, 1, 32, 127, 128, 255, rng.randrange(256)))


def _number(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(room))
    order = rng.choice(("little", "big"))
    room[at : at + width] = (rng.choice(ODD) % (1 << 8 * width)).to_bytes(width, order)


def _add(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(room))
    order = rng.choice(("little", "big"))
    value = int.from_bytes(room[at : at + width], order) + rng.randint(-9, 9)
    room[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, order)


def _cut(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    del room[rng.randrange(len(room)) :]


def _delete(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    at = rng.randrange(len(room))
    del room[at : at + rng.choice((1, 2, 4, 8, 16, 64))]


def _repeat(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    at = rng.randrange(len(room))
    piece = room[at : at + rng.choice((1, 4, 8, 16, 64, 256))]
    room[at:at] = piece * rng.choice((1, 1, 2, 10))


def _insert(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    at = rng.randrange(len(room) + 1)
    room[at:at] = rng.choice(ODD_WORDS)


def _splice(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    other = rng.choice(others) if others else b""
    if other:
        start = rng.randrange(len(other))
        at = rng.randrange(len(room))
        piece = other[start : start + rng.choice((4, 16, 64, 256, 4096))]
        room[at : at + (len(piece) if rng.random() < 0.5 else 0)] = piece


def _digits(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    found = list(re.finditer(rb"[0-9]+", room))
    if found:
        match = rng.choice(found)
        room[match.start() : match.end()] = b"%d" % rng.choice(ODD)


def _line(room: bytearray, rng: random.Random, others: list[bytes]) -> None:
    """Move, repeat or leave out a line."""
    lines = room.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    room[:] = b"\n".join(lines)


_BLIND: tuple[Callable[[bytearray, random.Random, list[bytes]], None], ...] = (
    _flip, _byte, _number, _number, _add, _cut, _delete, _repeat, _insert, _splice, _digits, _line,
)  # fmt: skip

# What knows a format: each takes the file and returns it changed, or raises if it is not its own.
Change = Callable[[bytes, random.Random, list[bytes]], bytes]


def inside_zlib(stream: bytes, rng: random.Random, others: list[bytes], wbits: int = 15) -> bytes:
    """Return a compressed stream whose content is changed."""
    inner = zlib.decompressobj(wbits).decompress(stream, MOST)
    packer = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return packer.compress(changed(inner, rng, others)) + packer.flush()


def png(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change, repeat, move or leave out a chunk; all checksums fit."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    number = rng.randrange(len(chunks))
    kind, body = chunks.pop(number)
    if kind in (b"IDAT", b"fdAT", b"iCCP", b"zTXt") and rng.random() < 0.5:
        skip = {b"fdAT": 4, b"IDAT": 0}.get(kind, body.find(b"\0") + 2)
        body = body[:skip] + inside_zlib(body[skip:], rng, others)
    elif rng.random() < 0.8:
        body = changed(body, rng, others)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
        place = number if rng.random() < 0.8 else rng.randrange(len(chunks) + 1)
        chunks.insert(place, (kind, body))
    packed = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    ]
    return data[:8] + b"".join(packed)


def archive(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change the content or the name of a member of a ZIP; its checksums and sizes fit."""
    room = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(room, "w") as new:
        members = [(info.filename, old.read(info), info.compress_type) for info in old.infolist()]
        for name, content, method in _changed_members(members, rng, others):
            info = zipfile.ZipInfo(name)
            new.writestr(info, content, method)
    return room.getvalue()


def tar(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change a member of a tar archive, or one of its headers; the checksums fit."""
    if rng.random() < 0.5:
        blocks = bytearray(data)
        starts = [
            at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"
        ]
        at = rng.choice(starts)
        header = bytearray(changed(data[at : at + 512], rng, others)[:512].ljust(512, b"\0"))
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        blocks[at : at + 512] = header
        return bytes(blocks)
    room = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=room, mode="w") as new:
        members = []
        for info in old:
            file = old.extractfile(info)
            members.append((info.name, file.read() if file else b"", 0))
        for name, content, _ in _changed_members(members, rng, others):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            new.addfile(info, io.BytesIO(content))
    return room.getvalue()


Member = tuple[str, bytes, int]


def _changed_members(
    members: list[Member], rng: random.Random, others: list[bytes]
) -> list[Member]:
    at = rng.randrange(len(members))
    name, content, method = members[at]
    if rng.random() < 0.1:
        name = changed(name.encode(), rng, others).decode("latin-1")
    else:
        content = changed(content, rng, others)
    members[at : at + 1] = [(name, content, method)] * rng.choice((1, 1, 1, 1, 0, 2))
    if rng.random() < 0.1:
        rng.shuffle(members)
    return members


def har(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change, repeat, move or leave out a record; the marks around all of them fit."""
    order = "<" if data[0] else ">"
    found, at = [], 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from(f"{order}i", data, at)
        if length < 0:
            break
        found.append(data[at + 4 : at + 4 + length])
        at += 8 + length
    place = rng.randrange(len(found))
    record = found.pop(place)
    if rng.random() < 0.9:
        body = changed(record[4:], rng, others)
        if rng.random() < 0.7:  # of the same length
            body = body[: len(record) - 4].ljust(len(record) - 4)
        record = record[:4] + body
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2))):
        found.insert(place if rng.random() < 0.8 else rng.randrange(len(found) + 1), record)
    marks = [struct.pack(f"{order}i", len(record)) for record in found]
    return b"".join(mark + record + mark for mark, record in zip(marks, found, strict=True))


def mat(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change what is inside a compressed variable, or in the plain ones; the lengths fit."""
    found, at = [], 128
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        found.append((kind, data[at + 8 : at + 8 + length]))
        at += 8 + length
    place = rng.randrange(len(found))
    kind, body = found[place]
    body = inside_zlib(body, rng, others) if kind == 15 else changed(body, rng, others)
    found[place] = kind, body
    return data[:128] + b"".join(struct.pack("<II", kind, len(body)) + body for kind, body in found)


def nrrd(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change the header alone, or what is inside gzip data."""
    head, blank, body = data.partition(b"\n\n")
    if body.startswith(b"\x1f\x8b") and rng.random() < 0.5:
        return head + blank + inside_zlib(body, rng, others, 31)
    return changed(head, rng, others) + blank + body


def npy(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change the header text; its length fits."""
    wide = data[6] > 1
    start = 12 if wide else 10
    length = int.from_bytes(data[8:start], "little")
    text = changed(data[start : start + length], rng, others)
    size = len(text).to_bytes(start - 8, "little")
    return data[:8] + size + text + data[start + length :]


def json_text(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Replace, repeat or leave out a value of JSON; what comes out is JSON."""
    whole = json.loads(data)
    places: list[tuple[Any, Any]] = []
    left = [whole]
    while left:
        inside = left.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        places += [(inside, key) for key in keys]
        left += [inside[key] for key in keys if isinstance(inside[key], (dict, list))]
    inside, key = rng.choice(places)
    way = rng.randrange(6)
    if way == 0:
        del inside[key]
    elif way == 1 and isinstance(inside, list):
        inside[key:key] = [inside[key]] * rng.choice((1, 3, 100))
    elif way == 2:
        other, place = rng.choice(places)
        if isinstance(other, dict) or place < len(other):
            inside[key] = json.loads(json.dumps(other[place]))
    elif way == 3 and isinstance(inside[key], str):
        inside[key] = changed(inside[key].encode(), rng, others).decode("latin-1")
    else:
        inside[key] = rng.choice((*_ODD_VALUES, rng.choice(ODD), -rng.choice(ODD)))
    return json.dumps(whole).encode()


_ODD_VALUES = (
    None, True, 1.5, float("nan"), 1e308, "", "..", "/", "\0", "\x1b]0;x\x07", "\u202e", "\ud800", [], {},
    [[]], [0] * 9, {"": []}, 1 << 70,
)  # fmt: skip


def described(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Change what is behind the first line, which says what a sidecar describes."""
    first, end, rest = data.partition(b"\n")
    return first + end + changed(rest, rng, others)
