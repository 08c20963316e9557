"""The worst known shapes of files, each at any size: for the budget of work and for the fuzzer.

A shape is a function of a number of bytes, roughly; it returns the file. Everything is put together
by hand or by a library that is not ours, so that a shape means the same whatever the code does.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import dicom_files
import edf_files
import numpy as np
import ra_bytes
import tfrecord_files

HASH = 2**61 - 1  # all multiples of it have one hash


class Shape(NamedTuple):
    """How a file of a size is made; `suffix` is how its name ends."""

    suffix: str
    make: Callable[[int], bytes | dict[str, bytes]]  # more files: by what comes behind the stem
    largest: int = 1 << 20


SHAPES: dict[str, Shape] = {}


def shape(suffix: str, largest: int = 1 << 20) -> Callable[..., Callable[..., object]]:
    """Register a function under its name."""

    def add(make: Callable[[int], bytes | dict[str, bytes]]) -> Callable[..., object]:
        SHAPES[make.__name__] = Shape(suffix, make, largest)
        return make

    return add


def lines(size: int, line: Callable[[int], str]) -> str:
    """Return numbered lines of so many bytes in all."""
    return "".join(line(n) for n in range(max(1, size // len(line(size)))))


# RA, sidecars, bundles ---------------------------------------------------------------------------

ARRAY = ra_bytes.ra_file(2, 1, [3], b"\1\2\3")


def described(text: str, dims: tuple[int, ...] = (3,), width: int = 1) -> dict[str, bytes]:
    """Return an .ra and a sidecar of this text that describes it."""
    data = bytes(int(np.prod(dims)) * width)
    kind = 2 if width == 1 else 0
    ends = {"crc32_first": data[: 64 << 10], "crc32_last": data[-(64 << 10) :]}
    told = {"eltype": kind, "elbyte": width, "dims": list(dims), "size": len(data),
            **{name: f"{zlib.crc32(end):08x}" for name, end in ends.items()}}  # fmt: skip
    whole = f"describes: {json.dumps(told)}\n{text}"
    return {"": ra_bytes.ra_file(kind, width, dims, data), ".yaml": whole.encode()}


@shape(".ra")
def ra_axes(size: int) -> bytes:
    return ra_bytes.ra_file(2, 1, [1] * (size // 8), b"\1")


@shape(".ra")
def ra_axes_of_nothing(size: int) -> bytes:
    return ra_bytes.ra_file(2, 1, [2**63] * (size // 8) + [0], b"")


@shape(".ra")
def ra_numbers_of_nines(size: int) -> bytes:
    return ra_bytes.ra_file(1, 8, [size // 10], b"\xff" * 9 * (size // 10), flags=2, size=size)


@shape(".ra")
def ra_trailer(size: int) -> bytes:
    text = "# raconvert metadata\nattributes:\n" + lines(size, lambda n: f"  key{n}: {n}\n")
    return ra_bytes.ra_file(2, 1, [3], b"\1\2\3", trailer=text.encode())


@shape(".ra")
def sidecar_of_keys(size: int) -> dict[str, bytes]:
    return described("attributes:\n" + lines(size, lambda n: f"  key{n}: {n}\n"))


@shape(".ra")
def sidecar_of_integer_keys(size: int) -> dict[str, bytes]:
    return described("attributes:\n  k:\n" + lines(size, lambda n: f"    {(n + 1) * HASH}: 1\n"))


@shape(".ra")
def sidecar_of_small_integer_keys(size: int) -> dict[str, bytes]:
    return described("attributes:\n  k:\n" + lines(size, lambda n: f"    {n << 44}: 1\n"))


@shape(".ra")
def sidecar_of_one_list(size: int) -> dict[str, bytes]:
    return described("attributes:\n  k:\n" + lines(size, lambda n: "  - [1, a]\n"))


@shape(".ra")
def sidecar_of_nested_lists(size: int) -> dict[str, bytes]:
    deep = "[" * 50 + "]" * 50
    return described("attributes:\n  k: [" + ", ".join([deep] * (size // 102)) + "]\n")


@shape(".ra")
def sidecar_of_brackets(size: int) -> dict[str, bytes]:
    return described("attributes: " + "[" * size)


@shape(".ra")
def sidecar_of_one_text(size: int) -> dict[str, bytes]:
    return described("description: '" + "x y " * (size // 4) + "'\n")


@shape(".ra")
def sidecar_of_escapes(size: int) -> dict[str, bytes]:
    return described('description: "' + "\\x41" * (size // 4) + '"\n')


@shape(".ra")
def sidecar_of_comments(size: int) -> dict[str, bytes]:
    return described(lines(size, lambda n: "# x\n\n"))


@shape(".ra")
def sidecar_of_digits(size: int) -> dict[str, bytes]:
    return described(f"attributes: {{a: {'1' * (size // 2)}, b: {'1' * (size // 2)}.5}}\n")


@shape(".ra")
def sidecar_of_fields(size: int) -> dict[str, bytes]:
    text = "dtype:\n" + lines(size, lambda n: f"- [f{n:07}, '<f4']\n")
    return described(text, (1,), width=4 * text.count("<f4"))


@shape(".ra")
def sidecar_of_a_deep_dtype(size: int) -> dict[str, bytes]:
    return described("dtype: " + "[[a, " * (size // 7) + "u1" + "]]" * (size // 7) + "\n")


@shape(".ra")
def sidecar_of_labels(size: int) -> dict[str, bytes]:
    count = size // 10
    return described("axes:\n- labels:\n" + lines(size, lambda n: f"  - l{n:06}\n"), (count,))


@shape(".ra")
def items_of_a_stack(size: int) -> dict[str, bytes]:
    count = size // 20
    found = described("items: true\n", (1, count))
    text = "".join(f'{{"number": {n}}}\n' for n in range(count))
    return {**found, ".items.jsonl": text.encode()}


@shape(".ra")
def items_of_one_line(size: int) -> dict[str, bytes]:
    found = described("items: true\n", (1, 1))
    text = "{" + ",".join(f'"k{n:06}":{n}' for n in range(size // 17)) + "}\n"
    return {**found, ".items.jsonl": text.encode()}


@shape(".ra")
def items_of_brackets(size: int) -> dict[str, bytes]:
    return {**described("items: true\n", (1, 1)), ".items.jsonl": b"[" * size}


def manifest(entries: list[tuple[str, str]], more: str = "") -> str:
    """Return a bundle.yaml."""
    listed = "".join(f"- name: {name}\n  file: {file}\n" for name, file in entries)
    return f"raconvert_bundle: 1\narrays:\n{listed}{more}...\n"


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a ZIP archive."""
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return room.getvalue()


def tarred(members: dict[str, bytes], **headers: str) -> bytes:
    """Return a tar archive with these extended headers for each member."""
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.pax_headers = headers
            archive.addfile(info, io.BytesIO(data))
    return room.getvalue()


def bundled(count: int) -> dict[str, bytes]:
    """Return the members of a bundle of so many small arrays."""
    names = [f"a{n:06}" for n in range(count)]
    files = {f"{name}.ra": ARRAY for name in names}
    return {"bundle.yaml": manifest([(n, f"{n}.ra") for n in names]).encode(), **files}


@shape(".zip")
def zip_of_many(size: int) -> bytes:
    return zipped(bundled(size // 250))


@shape(".zip")
def zip_of_deep_names(size: int) -> bytes:
    name = "a/" * min(size // 8, 30_000) + "b"
    text = manifest([(name, "b.ra")], f"groups:\n  ? {name[:-2]}\n  : {{}}\n")
    return zipped({"bundle.yaml": text.encode(), "b.ra": ARRAY, name[:60_000]: b""})


@shape(".zip")
def zip_of_groups(size: int) -> bytes:
    more = "groups:\n" + lines(size, lambda n: f"  g{n}: {{a: {n}}}\n")
    return zipped({"bundle.yaml": manifest([("a", "a.ra")], more).encode(), "a.ra": ARRAY})


@shape(".zip")
def zip_of_aliases(size: int) -> bytes:
    more = "aliases:\n" + lines(size, lambda n: f"  n{n}: n{n + 1}\n")
    return zipped({"bundle.yaml": manifest([("a", "a.ra")], more).encode(), "a.ra": ARRAY})


@shape(".zip")
def zip_that_is_nothing_but_marks(size: int) -> bytes:
    return zipped({"bundle.yaml": b""}) + b"PK\5\6" * (size // 4)


@shape(".tar")
def tar_of_many(size: int) -> bytes:
    return tarred(bundled(size // 1200))


@shape(".tar")
def tar_of_a_long_header(size: int) -> bytes:
    members = {"bundle.yaml": manifest([("a", "a.ra")]).encode(), "a.ra": ARRAY}
    return tarred(members, **{f"k{n:06}": "v" for n in range(size // 36)})


@shape(".tar")
def tar_of_digits(size: int) -> bytes:
    members = {"bundle.yaml": manifest([("a", "a.ra")]).encode(), "a.ra": ARRAY}
    return tarred(members, comment="9" * size)


# WebDataset --------------------------------------------------------------------------------------


@shape(".wds.tar")
def samples_of_classes(size: int) -> bytes:
    return tarred({f"{n:07}.cls": b"1" for n in range(size // 1024)})


@shape(".wds.tar")
def samples_of_arrays(size: int) -> bytes:
    room = io.BytesIO()
    np.save(room, np.zeros(3, "u1"))
    return tarred({f"{n:07}.npy": room.getvalue() for n in range(size // 1024)})


@shape(".wds.tar")
def samples_of_extensions(size: int) -> bytes:
    """Each sample has one member, of an extension of its own."""
    return tarred({f"{n:07}.e{n}": b"1" for n in range(size // 1024)})


@shape(".wds.tar")
def samples_of_other_extensions(size: int) -> bytes:
    """One sample of many members."""
    return tarred({f"a.{n:07}.cls": b"1" for n in range(size // 1024)})


@shape(".wds.tar")
def samples_of_global_headers(size: int) -> bytes:
    """Fields of all members that follow, more with each member."""
    fields = b"".join(b"17 k%06d=%s\n" % (n, b"v" * 5) for n in range(200))
    head = tarfile.TarInfo("././@PaxHeader")
    head.type, head.size = tarfile.XGLTYPE, len(fields)
    one = head.tobuf(tarfile.USTAR_FORMAT) + fields + bytes(-len(fields) % 512)
    return one * (size // len(one)) + tarred({"a.cls": b"1"})


@shape(".wds.tar")
def samples_of_one_long_text(size: int) -> bytes:
    return tarred({f"{n:07}.txt": b"" for n in range(size // 2048)} | {"x.txt": b"x" * (size // 2)})


@shape(".wds.tar")
def samples_of_long_keys(size: int) -> bytes:
    return tarred({f"{n:07}{'k' * 2000}.cls": b"1" for n in range(size // 4096)})


# NPY, NPZ ----------------------------------------------------------------------------------------


def npy(text: str, data: bytes = b"") -> bytes:
    raw = text.encode("latin-1")
    return b"\x93NUMPY\2\0" + struct.pack("<I", len(raw)) + raw + data


def npy_of(descr: str, shape: str = "(1,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


@shape(".npy", 250_000)
def npy_of_fields(size: int) -> bytes:
    fields = ", ".join(f"('f{n:06}', '|u1')" for n in range(size // 20))
    return npy(npy_of(f"[{fields}]"), bytes(size // 20))


@shape(".npy", 250_000)
def npy_of_escaped_quotes(size: int) -> bytes:
    return npy("{'descr': '" + "\\'" * (size // 2) + "L")


@shape(".npy", 250_000)
def npy_of_quotes(size: int) -> bytes:
    return npy("{'descr': " + "'x' " * (size // 4) + "2L")


@shape(".npy", 250_000)
def npy_of_axes(size: int) -> bytes:
    return npy(npy_of("'|u1'", f"({'1, ' * (size // 3)})"))


@shape(".npy", 250_000)
def npy_of_brackets(size: int) -> bytes:
    return npy(npy_of("(" * (size // 2) + ")" * (size // 2)))


@shape(".npy", 250_000)
def npy_of_keys(size: int) -> bytes:
    return npy("{" + "'shape': 1, " * (size // 12) + "}")


@shape(".npy", 250_000)
def npy_of_digits(size: int) -> bytes:
    return npy(npy_of("'|u1'", f"({('1' * 4000 + ', ') * max(1, size // 4002)})"))


@shape(".npz")
def npz_of_many(size: int) -> bytes:
    array = npy(npy_of("'|u1'"), b"\1")
    return zipped({f"a{n:06}.npy": array for n in range(size // 200)})


@shape(".npz")
def npz_of_no_arrays(size: int) -> bytes:
    return zipped(
        {f"{n:06}.txt": b"" for n in range(size // 100)} | {"a.npy": npy(npy_of("'|u1'"), b"\1")}
    )


@shape(".npz")
def npz_of_a_long_name(size: int) -> bytes:
    name = ("a/" * 32_000)[: min(size // 2, 60_000)]
    return zipped({name + ".npy": npy(npy_of("'|u1'"), b"\1")})


@shape(".npz")
def npz_of_deep_names(size: int) -> bytes:
    array = npy(npy_of("'|u1'"), b"\1")
    return zipped({"a/" * 500 + f"{n:06}.npy": array for n in range(size // 2200)})


@shape(".npz", 2000)
def npz_of_squeezed_headers(size: int) -> bytes:
    array = npy("{'descr': '" + "\\'" * 120_000)
    return zipped({f"{n}.npy": array for n in range(size // 500)}, zipfile.ZIP_DEFLATED)


# PNG ---------------------------------------------------------------------------------------------


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks: bytes, width: int = 1, height: int = 1) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND")


PIXEL = chunk(b"IDAT", zlib.compress(b"\0\1"))


@shape(".png")
def png_of_texts(size: int) -> bytes:
    return png(*(chunk(b"tEXt", b"k%d\0v" % n) for n in range(size // 20)), PIXEL)


@shape(".png")
def png_of_one_key(size: int) -> bytes:
    return png(chunk(b"tEXt", b"k\0v") * (size // 15), PIXEL)


@shape(".png")
def png_of_squeezed_texts(size: int) -> bytes:
    text = chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(20_000), 9))
    return png(text * (size // len(text)), PIXEL)


@shape(".png")
def png_of_unknown_chunks(size: int) -> bytes:
    return png(chunk(b"abCd", b"x") * (size // 13), PIXEL)


@shape(".png")
def png_of_pixels_in_bytes(size: int) -> bytes:
    height = size // 26
    rows = zlib.compress(bytes(2) * height, 0)
    return png(*(chunk(b"IDAT", rows[n : n + 1]) for n in range(len(rows))), height=height)


@shape(".png")
def png_of_empty_pixels(size: int) -> bytes:
    return png(chunk(b"IDAT") * (size // 12), PIXEL)


@shape(".png")
def png_of_rows(size: int) -> bytes:
    return png(chunk(b"IDAT", zlib.compress(bytes(2) * (size // 2), 0)), height=size // 2)


@shape(".png")
def png_of_frames(size: int) -> bytes:
    count = size // 90
    control = struct.pack(">IIIIHHBB", 1, 1, 0, 0, 1, 1, 0, 0)
    parts = [
        chunk(b"acTL", struct.pack(">II", count, 0)),
        chunk(b"fcTL", bytes(4) + control),
        PIXEL,
    ]
    for n in range(1, count):
        number = struct.pack(">I", 2 * n - 1)
        parts.append(chunk(b"fcTL", number + control))
        parts.append(chunk(b"fdAT", struct.pack(">I", 2 * n) + zlib.compress(b"\0\1")))
    return png(*parts)


@shape(".png")
def png_of_palettes(size: int) -> bytes:
    palette = chunk(b"sPLT", b"p%d\0\10" + bytes(6) * 10)
    return png(palette * (size // len(palette)), PIXEL)


# NRRD --------------------------------------------------------------------------------------------


def nrrd(*more: str, sizes: str = "3", encoding: str = "raw", kind: str = "uchar") -> bytes:
    fields = ["NRRD0005", f"type: {kind}", f"dimension: {len(sizes.split())}", f"sizes: {sizes}",
              f"encoding: {encoding}", *more, "", ""]  # fmt: skip
    return "\n".join(fields).encode()


@shape(".nrrd")
def nrrd_of_pairs(size: int) -> bytes:
    return nrrd(*(f"key{n}:=v" for n in range(size // 13))) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_comments(size: int) -> bytes:
    return nrrd(*(["# c"] * (size // 4))) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_unknown_fields(size: int) -> bytes:
    return nrrd(*(f"field{n}: x" for n in range(size // 14))) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_repeated_fields(size: int) -> bytes:
    return nrrd(*(["content: x"] * (size // 11))) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_one_line(size: int) -> bytes:
    return nrrd("k:=" + "\\n\\" * (size // 3)) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_blanks(size: int) -> bytes:
    return nrrd("spacings: " + " " * size + "1") + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_open_quotes(size: int) -> bytes:
    return nrrd("labels: " + '"\\' * (size // 2)) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_open_vectors(size: int) -> bytes:
    return nrrd("space: RAS", "space directions: " + "(" * size) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_vectors(size: int) -> bytes:
    return nrrd("space: RAS", "space directions: " + "(1,0,0) " * (size // 8)) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_our_own_integer_keys(size: int) -> bytes:
    pairs = ",".join(f"[{(n + 1) * HASH},0]" for n in range(size // 30))
    return nrrd(f'raconvert:={{"attributes":{{"$dict":[{pairs}]}}}}') + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_our_own_keys(size: int) -> bytes:
    pairs = ",".join(f'"k{n:06}":{n}' for n in range(size // 17))
    return nrrd(f'raconvert:={{"type":"uchar","sizes":[3],"attributes":{{{pairs}}}}}') + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_text(size: int) -> bytes:
    return nrrd(sizes=str(size // 2), encoding="text") + b"1 " * (size // 2)


@shape(".nrrd")
def nrrd_of_text_lines(size: int) -> bytes:
    return nrrd(sizes=str(size // 4), encoding="text", kind="double") + b"1\n\n\n" * (size // 4)


@shape(".nrrd")
def nrrd_of_one_word(size: int) -> bytes:
    return nrrd(sizes="1", encoding="text", kind="double") + b"1" * size


@shape(".nrrd")
def nrrd_of_skipped_lines(size: int) -> bytes:
    return nrrd(f"line skip: {size - 3}") + b"\n" * (size - 3) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_skipped_carriage_returns(size: int) -> bytes:
    return nrrd(f"line skip: {size - 3}") + b"\r" * (size - 3) + b"\1\2\3"


@shape(".nrrd")
def nrrd_of_hex(size: int) -> bytes:
    return nrrd(sizes=str(size // 4), encoding="hex") + b"0 1\n" * (size // 4)


@shape(".nrrd")
def nrrd_of_gzip_members(size: int) -> bytes:
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    empty = made.compress(b"") + made.flush()
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (
        nrrd(encoding="gzip")
        + empty * (size // len(empty))
        + made.compress(b"\1\2\3")
        + made.flush()
    )


@shape(".nhdr")
def nrrd_of_files(size: int) -> dict[str, bytes]:
    count = size // 13
    header = nrrd("data file: LIST", *(["data.raw"] * count), sizes=f"3 {count}")
    return {"": header[:-1], "/data.raw": b"\1\2\3"}


@shape(".nhdr")
def nrrd_of_skips(size: int) -> dict[str, bytes]:
    count = size // 13
    header = nrrd("data file: SKIPLIST", *(["0 data.raw"] * count), sizes=f"3 {count}")
    return {"": header[:-1], "/data.raw": b"\1\2\3"}


@shape(".nhdr")
def nrrd_of_a_pattern(size: int) -> dict[str, bytes]:
    return {"": nrrd(f"data file: %d.raw 1 {size} 1", sizes=f"3 {size}")}


# HAR ---------------------------------------------------------------------------------------------

BLANKS = b"    "


def record(*parts: bytes) -> bytes:
    payload = b"".join(parts)
    mark = struct.pack("<i", len(payload))
    return mark + payload + mark


def ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def har(name: str, kind: str, sizes: list[int], *rest: bytes) -> bytes:
    return (
        record(name.encode().ljust(4))
        + record(BLANKS, kind.encode(), b"FULL", b"long name".ljust(70), ints(len(sizes), *sizes))
        + b"".join(rest)
    )


def har_name(number: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "".join(digits[number // 36**n % 36] for n in (3, 2, 1, 0))


@shape(".har")
def har_of_headers(size: int) -> bytes:
    return b"".join(
        har(har_name(n), "2I", [1, 1], record(BLANKS, ints(1, 1, 1, 1, 1, 1, 1, 5)))
        for n in range(size // 170)
    )


@shape(".har")
def har_of_parts(size: int) -> bytes:
    count = size // 44
    parts = [record(BLANKS, ints(count - n, count, 1, n + 1, n + 1, 1, 1, 5)) for n in range(count)]
    return har("ARR1", "2I", [count, 1], *parts)


@shape(".har")
def har_of_parts_in_reverse(size: int) -> bytes:
    count = size // 44
    parts = [
        record(BLANKS, ints(count - n, count, 1, count - n, count - n, 1, 1, 5))
        for n in range(count)
    ]
    return har("ARR1", "2I", [count, 1], *parts)


@shape(".har")
def har_of_strings(size: int) -> bytes:
    count = size // 25
    parts = [record(BLANKS, ints(count - n, count, 1), b"x") for n in range(count)]
    return har("TEXT", "1C", [count, 1], *parts)


@shape(".har")
def har_of_sets(size: int) -> bytes:
    count = size // 7 // 12
    names = [b"SET%09d" % n for n in range(7)]
    label = record(BLANKS, ints(7), ints(1), ints(7), b"COEF".ljust(12), ints(1), *names, b"k" * 7,
                   ints(*[0] * 7), ints(0))  # fmt: skip
    sizes = [count, 1, 1, 1, 1, 1, 1]
    labels = [record(BLANKS, ints(1, n, n), *(b"L%011d" % at for at in range(n))) for n in sizes]
    head = record(BLANKS, ints(2, 7, *sizes))
    box = ints(*[end for n in sizes for end in (1, n)])
    data = record(BLANKS, ints(1), struct.pack("<f", 1) * count)
    return har("ARR1", "RE", sizes, label, *labels, head, record(BLANKS, ints(2), box), data)


@shape(".har")
def har_of_small_label_lists(size: int) -> bytes:
    name = b"SET".ljust(12)
    label = record(
        BLANKS, ints(1), ints(1), ints(1), b"C".ljust(12), ints(1), name, b"k", ints(0), ints(0)
    )
    rest = [record(BLANKS, ints(2, 7, *[1] * 7)), record(BLANKS, ints(2), ints(*[1] * 14)),
            record(BLANKS, ints(1), ints(0))]  # fmt: skip
    return b"".join(
        har(har_name(n), "RE", [1] * 7, label, record(BLANKS, ints(1, 1, 1), b"L%011d" % n), *rest)
        for n in range(size // 500)
    )


@shape(".har")
def har_of_empty_headers(size: int) -> bytes:
    return b"".join(record(har_name(n).encode()) for n in range(size // 12))


def har_of_damaged(size: int, damage: Callable[[bytearray], None]) -> bytes:
    """Headers of which every second one is damaged, and a sound one at the end."""
    found = []
    for n in range(size // 170):
        one = bytearray(
            har(har_name(n), "2I", [1, 1], record(BLANKS, ints(1, 1, 1, 1, 1, 1, 1, 5)))
        )
        if n % 2:
            damage(one)
        found.append(bytes(one))
    return b"".join([*found, har("ZZZZ", "2I", [1, 1], record(BLANKS, ints(*[1] * 8)))])


@shape(".har")
def har_of_damaged_leading_marks(size: int) -> bytes:
    return har_of_damaged(size, lambda one: one.__setitem__(slice(12, 16), ints(77)))


@shape(".har")
def har_of_damaged_trailing_marks(size: int) -> bytes:
    return har_of_damaged(size, lambda one: one.__setitem__(slice(-4, None), ints(77)))


@shape(".har")
def har_of_damaged_names(size: int) -> bytes:
    return har_of_damaged(size, lambda one: one.__setitem__(4, 1))


@shape(".har")
def har_of_names_with_damaged_marks(size: int) -> bytes:
    return har_of_damaged(size, lambda one: one.__setitem__(8, 5))


# SciDB -------------------------------------------------------------------------------------------


def scidb(schema: str, data: bytes) -> dict[str, bytes]:
    return {"": data, ".schema": schema.encode()}


@shape(".scidb")
def scidb_of_attributes(size: int) -> dict[str, bytes]:
    count = size // 24
    attributes = ", ".join(f"a{n:06}:uint8 NOT NULL" for n in range(count))
    return scidb(f"<{attributes}>[i=0:0]", bytes(count))


@shape(".scidb")
def scidb_of_dimensions(size: int) -> dict[str, bytes]:
    dims = ",".join(f"d{n:06}=0:0" for n in range(size // 12))
    return scidb(f"<a:uint8 NOT NULL>[{dims}]", b"\1")


@shape(".scidb")
def scidb_of_comments(size: int) -> dict[str, bytes]:
    return scidb("<a:uint8 NOT NULL>[i=0:0" + " /* x */ -- y\n" * (size // 14) + "]", b"\1")


@shape(".scidb")
def scidb_of_open_comments(size: int) -> dict[str, bytes]:
    return scidb("<a:uint8 NOT NULL>[i=0:0" + " /*" * (size // 3), b"\1")


@shape(".scidb")
def scidb_of_a_sum(size: int) -> dict[str, bytes]:
    return scidb("<a:uint8 NOT NULL>[i=0:0" + "+0" * (size // 2) + "]", b"\1")


@shape(".scidb")
def scidb_of_a_default(size: int) -> dict[str, bytes]:
    return scidb("<a:uint8 NOT NULL DEFAULT " + "1+" * (size // 2) + "1>[i=0:0]", b"\1")


@shape(".scidb")
def scidb_of_quotes(size: int) -> dict[str, bytes]:
    return scidb("<a:uint8 NOT NULL COMPRESSION '" + "\\'" * (size // 2) + ">[i=0:0]", b"\1")


@shape(".scidb")
def scidb_of_texts(size: int) -> dict[str, bytes]:
    count = size // 6
    return scidb(f"<a:string NOT NULL>[i=0:{count - 1}]", (struct.pack("<I", 2) + b"x\0") * count)


@shape(".scidb")
def scidb_of_one_long_text(size: int) -> dict[str, bytes]:
    """One text of half the file, and many of one character: as a table of one width, quadratic."""
    count = size // 12
    long = struct.pack("<I", size // 2) + b"x" * (size // 2 - 1) + b"\0"
    return scidb(
        f"<a:string NOT NULL>[i=0:{count}]", long + (struct.pack("<I", 2) + b"x\0") * count
    )


# Images ------------------------------------------------------------------------------------------


def pillow(format: str, **options: object) -> bytes:
    """Return an image of one pixel, written by Pillow."""
    from PIL import Image

    room = io.BytesIO()
    Image.new("RGB", (1, 1)).save(room, format, **options)
    return room.getvalue()


def gif(*blocks: bytes) -> bytes:
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes([0, 0, 0, 255, 255, 255])
    return screen + b"".join(blocks) + b";"


GIF_FRAME = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2\x44\1\0"


@shape(".gif")
def gif_of_a_comment_in_bytes(size: int) -> bytes:
    return gif(b"!\xfe" + b"\1x" * (size // 2) + b"\0", GIF_FRAME)


@shape(".gif")
def gif_of_comments(size: int) -> bytes:
    return gif(b"!\xfe\1x\0" * (size // 5), GIF_FRAME)


@shape(".gif")
def gif_of_frames(size: int) -> bytes:
    return gif(GIF_FRAME * (size // len(GIF_FRAME)))


@shape(".gif")
def gif_of_controls(size: int) -> bytes:
    return gif(b"!\xf9\4\4\1\0\0\0" * (size // 8), GIF_FRAME, GIF_FRAME)


@shape(".gif")
def gif_of_frames_put_back(size: int) -> bytes:
    part = b"!\xf9\4\x0c\1\0\0\0" + GIF_FRAME
    return gif(part * (size // len(part)))


@shape(".gif")
def gif_of_pixels_in_bytes(size: int) -> bytes:
    return gif(GIF_FRAME[:-5] + b"\2" + b"\1\x44" * (size // 2) + b"\0")


@shape(".ppm")
def netpbm_of_text(size: int) -> bytes:
    count = size // 6
    return b"P3 1 %d 255\n" % count + b"1 2 3\n" * count


@shape(".pgm")
def netpbm_of_blanks(size: int) -> bytes:
    return b"P2 1 1 255" + b"\n " * (size // 2) + b"7\n"


@shape(".pgm")
def netpbm_of_comments(size: int) -> bytes:
    return b"P5\n" + b"#\n" * (size // 2) + b"1 1 255\n\7"


@shape(".pgm")
def netpbm_of_images(size: int) -> bytes:
    return b"P5 1 1 255\n\7" * (size // 12)


@shape(".pbm")
def netpbm_of_bits(size: int) -> bytes:
    return b"P1 1 %d\n" % (size // 2) + b"1\n" * (size // 2)


@shape(".pgm")
def netpbm_of_comments_in_text(size: int) -> bytes:
    return b"P2 1 1 255\n" + b"#\n" * (size // 2) + b"7\n"


@shape(".pam")
def netpbm_of_a_line(size: int) -> bytes:
    return b"P7\nTUPLTYPE" + b" " * size + b"x\nWIDTH 1\n"


@shape(".pam")
def netpbm_of_lines(size: int) -> bytes:
    head = b"P7\n" + b"TUPLTYPE GRAYSCALE\n" * (size // 19)
    return head + b"WIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\7"


def tiff(pages: int, more: list[bytes], tail: bytes = b"") -> bytes:
    """Return pages of one pixel, each with more entries of 12 bytes."""
    entries = [(256, 4, 1), (257, 4, 1), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8),
               (277, 3, 1), (278, 4, 1), (279, 4, 1)]  # fmt: skip
    packed = [struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries] + more
    size = 2 + 12 * len(packed) + 4
    start = 16 + len(tail)
    parts = [b"II*\0", struct.pack("<I", start), b"\7" + bytes(7), tail]
    for n in range(pages):
        following = start + (n + 1) * size if n + 1 < pages else 0
        parts.append(
            struct.pack("<H", len(packed)) + b"".join(packed) + struct.pack("<I", following)
        )
    return b"".join(parts)


@shape(".tif")
def tiff_of_pages(size: int) -> bytes:
    return tiff(size // 114, [])


@shape(".tif")
def tiff_of_pages_of_entries(size: int) -> bytes:
    more = [struct.pack("<HHII", 40_000 + n, 4, 1, n) for n in range(50)]
    return tiff(size // 700, more)


@shape(".tif")
def tiff_of_one_large_value_for_all_pages(size: int) -> bytes:
    """Every page names the same half of the file as a description."""
    more = [struct.pack("<HHII", 40_000, 2, size // 2, 16)]
    return tiff(size // 252, more, b"x" * (size // 2))


@shape(".tif")
def tiff_of_a_description(size: int) -> bytes:
    text = b"ImageJ=1.53\n" + b"k=v\n" * (size // 4)
    page = tiff(1, [], text)
    # TIFF wants its entries in order: the description (270) comes before 273.
    start = 16 + len(text)
    entries = [page[start + 2 + 12 * n : start + 14 + 12 * n] for n in range(9)]
    entries.insert(5, struct.pack("<HHII", 270, 2, len(text), 16))
    return page[:start] + struct.pack("<H", 10) + b"".join(entries) + bytes(4)


def tiff_of_strips(size: int, compression: int, strip: bytes) -> bytes:
    """Return a page of strips of one row and one pixel."""
    count = size // (len(strip) + 8)
    data = strip * count
    at = 8 + len(data)
    places = struct.pack(f"<{count}I", *range(8, at, len(strip)))
    counts = struct.pack("<I", len(strip)) * count
    entries = [(256, 1, 1), (257, 1, count), (258, 1, 8), (259, 1, compression), (262, 1, 1),
               (273, count, at), (277, 1, 1), (278, 1, 1), (279, count, at + len(places))]  # fmt: skip
    directory = b"".join(struct.pack("<HHII", tag, 4, *rest) for tag, *rest in entries)
    start = at + 2 * len(places)
    head = b"II*\0" + struct.pack("<I", start) + data + places + counts
    return head + struct.pack("<H", len(entries)) + directory + bytes(4)


@shape(".tif")
def tiff_of_strips_of_lzw(size: int) -> bytes:
    return tiff_of_strips(size, 5, b"\x80\x00\x60\x20")


@shape(".tif")
def tiff_of_strips_of_packbits(size: int) -> bytes:
    return tiff_of_strips(size, 32773, b"\0\7")


@shape(".tif")
def tiff_of_strips_of_jpeg(size: int) -> bytes:
    from PIL import Image

    room = io.BytesIO()
    Image.new("L", (1, 1)).save(room, "JPEG")
    return tiff_of_strips(size, 7, room.getvalue())


@shape(".tif")
def tiff_of_absent_strips(size: int) -> bytes:
    count = size // 9
    return tiff_of_strips(size, 5, b"\0").replace(struct.pack("<I", 1) * count, bytes(4 * count))


@shape(".tif")
def tiff_of_codes_of_fax(size: int) -> bytes:
    """Every bit is a row of one pixel, equal to the one above."""
    entries = [(256, 1, 1), (257, 1, 8 * size), (258, 1, 1), (259, 1, 4), (262, 1, 1),
               (273, 1, 8), (277, 1, 1), (278, 1, 8 * size), (279, 1, size)]  # fmt: skip
    directory = b"".join(struct.pack("<HHII", tag, 4, *rest) for tag, *rest in entries)
    start = 8 + size + size % 2
    data = (b"\xff" * size).ljust(start - 8, b"\0")
    head = b"II*\0" + struct.pack("<I", start) + data
    return head + struct.pack("<H", len(entries)) + directory + bytes(4)


def tiff_of_kinds(size: int, subfile: int) -> bytes:
    """Return pages, each of another width."""
    pages, parts = size // 126, [b"II*\0\x10\0\0\0" + b"\7" + bytes(7)]
    for n in range(pages):
        following = 16 + (n + 1) * 126 if n + 1 < pages else 0
        entries = [(254, 4, subfile * (n > 0)), (256, 4, 1 + n), (257, 4, 1), (258, 3, 8), (259, 3, 1),
                   (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 4, 1), (279, 4, 1 + n)]  # fmt: skip
        parts.append(struct.pack("<H", len(entries)))
        parts += [struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries]
        parts.append(struct.pack("<I", following))
    return b"".join(parts)


@shape(".tif")
def tiff_of_pages_of_kinds(size: int) -> bytes:
    return tiff_of_kinds(size, 0)


@shape(".tif")
def tiff_of_reduced_images_of_kinds(size: int) -> bytes:
    return tiff_of_kinds(size, 1)


@shape(".tif")
def tiff_of_images_below_a_page(size: int) -> bytes:
    """One page leads to all others."""
    whole = tiff(1, [])
    count = size // len(whole)
    start = 32 + 4 * count
    page = whole[16:-4]
    below = b"".join(page + bytes(4) for _ in range(count))
    offsets = [start + len(page) + 4 + 12 + n * (len(page) + 4) for n in range(count)]
    entry = struct.pack("<HHII", 330, 4, count, 32)
    first = struct.pack("<H", 10) + page[2:] + entry + bytes(4)
    head = b"II*\0" + struct.pack("<I", start) + b"\7" + bytes(23)
    return head + struct.pack(f"<{count}I", *offsets) + first + below


def ome_tiff(text: bytes) -> bytes:
    """Return a page of one pixel that OME-XML describes."""
    page = tiff(1, [], text)
    start = 16 + len(text)
    entries = [page[start + 2 + 12 * n : start + 14 + 12 * n] for n in range(9)]
    entries.insert(5, struct.pack("<HHII", 270, 2, len(text), 16))
    return page[:start] + struct.pack("<H", 10) + b"".join(entries) + bytes(4)


def ome_xml(inside: bytes = b"", after: bytes = b"", size: bytes = b"1") -> bytes:
    return (
        b'<OME><Image ID="a"><Pixels DimensionOrder="XYZCT" Type="uint8" SizeX="1" SizeY="1" '
        b'SizeZ="' + size + b'" SizeC="1" SizeT="1">' + inside + b"</Pixels></Image>" + after
        + b"</OME>"
    )  # fmt: skip


@shape(".ome.tif")
def ometiff_of_elements(size: int) -> bytes:
    return ome_tiff(ome_xml(after=b"<A/>" * (size // 4)))


@shape(".ome.tif")
def ometiff_of_nested_elements(size: int) -> bytes:
    return ome_tiff(ome_xml(after=b"<A>" * (size // 7) + b"</A>" * (size // 7)))


@shape(".ome.tif")
def ometiff_of_planes(size: int) -> bytes:
    """Every plane names the same page."""
    parts = [b'<TiffData IFD="0" FirstZ="%d" PlaneCount="1"/>' % n for n in range(size // 48)]
    return ome_tiff(ome_xml(b"".join(parts), size=b"%d" % max(1, len(parts))))


@shape(".ome.tif")
def ometiff_of_channels(size: int) -> bytes:
    return ome_tiff(ome_xml(b'<Channel Name="c"/>' * (size // 19) + b"<TiffData/>"))


@shape(".ome.tif")
def ometiff_of_a_text(size: int) -> bytes:
    return ome_tiff(ome_xml(after=b"<Description>" + b"&amp;" * (size // 5) + b"</Description>"))


@shape(".ome.tif")
def ometiff_of_images(size: int) -> bytes:
    """All of them share a page, and a name."""
    one = ome_xml(b'<TiffData IFD="0"/>')[5:-6]
    return ome_tiff(b"<OME>" + one * max(1, size // len(one)) + b"</OME>")


@shape(".jpg")
def jpeg_of_markers(size: int) -> bytes:
    return b"\xff\xd8" + b"\xff\xfe\0\3x" * (size // 5) + pillow("JPEG")[2:]


@shape(".jpg")
def jpeg_of_fill_bytes(size: int) -> bytes:
    return b"\xff\xd8" + b"\xff" * size + pillow("JPEG")[2:]


@shape(".jpg")
def jpeg_of_bytes_behind(size: int) -> bytes:
    return pillow("JPEG") + b"\xff\xd9" * (size // 2)


@shape(".webp")
def webp_of_chunks(size: int) -> bytes:
    plain = pillow("WEBP", lossless=True)[12:]
    chunks = b"VP8X" + struct.pack("<I", 10) + bytes(10) + plain
    chunks += (b"abcd" + struct.pack("<I", 2) + b"xy") * (size // 10)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


@shape(".webp")
def webp_of_frames(size: int) -> bytes:
    frame = b"ANMF" + struct.pack("<I", 16) + bytes(16)
    chunks = (
        b"VP8X"
        + struct.pack("<I", 10)
        + b"\2"
        + bytes(9)
        + b"ANIM"
        + struct.pack("<I", 6)
        + bytes(6)
    )
    chunks += frame * (size // 24)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


@shape(".bmp")
def bmp_of_rows(size: int) -> bytes:
    data = b"\1\0\0\0" * (size // 4) + b"\0\1"
    head = struct.pack("<IiiHHIIiiII", 40, 1, size // 4, 1, 8, 1, len(data), 0, 0, 256, 0)
    return (
        b"BM"
        + struct.pack("<IHHI", 14 + 40 + 1024 + len(data), 0, 0, 1078)
        + head
        + bytes(1024)
        + data
    )


def bmp_of(width: int, height: int, bits: int, how: int, data: bytes) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, how, len(data), 0, 0, 16, 0)
    first = 14 + 40 + 64
    return b"BM" + struct.pack("<IHHI", first + len(data), 0, 0, first) + head + bytes(64) + data


@shape(".bmp")
def bmp_of_moves(size: int) -> bytes:
    return bmp_of(size // 4 + 1, 1, 8, 1, b"\0\2\1\0" * (size // 4) + b"\0\1")


@shape(".bmp")
def bmp_of_copies(size: int) -> bytes:
    return bmp_of(3 * (size // 4), 1, 4, 2, b"\0\3\0\0" * (size // 4) + b"\0\1")


# MAT ---------------------------------------------------------------------------------------------


def mat_head() -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(mat_class: int, dims: tuple[int, ...], name: bytes, *rest: bytes) -> bytes:
    flags = element(6, struct.pack("<II", mat_class, 0))
    shape = element(5, struct.pack(f"<{len(dims)}i", *dims))
    return element(14, flags + shape + element(1, name) + b"".join(rest))


NUMBER = matrix(9, (1, 1), b"", element(2, b"\7"))


@shape(".mat")
def mat_of_variables(size: int) -> bytes:
    return mat_head() + b"".join(
        matrix(9, (1, 1), b"v%06d" % n, element(2, b"\7")) for n in range(size // 72)
    )


@shape(".mat")
def mat_of_compressed_variables(size: int) -> bytes:
    def one(n: int) -> bytes:
        data = zlib.compress(matrix(9, (1, 1), b"v%06d" % n, element(2, b"\7")))
        return struct.pack("<II", 15, len(data)) + data

    return mat_head() + b"".join(one(n) for n in range(size // 60))


@shape(".mat")
def mat_of_cells(size: int) -> bytes:
    count = size // len(NUMBER)
    return mat_head() + matrix(1, (count, 1), b"c", NUMBER * count)


@shape(".mat")
def mat_of_empty_cells(size: int) -> bytes:
    count = size // 8
    return mat_head() + matrix(1, (count, 1), b"c", element(14, b"") * count)


@shape(".mat", 500)
def mat_of_squeezed_empty_cells(size: int) -> bytes:
    count = 2 * size
    data = zlib.compress(matrix(1, (count, 1), b"c", element(14, b"") * count), 9)
    return mat_head() + struct.pack("<II", 15, len(data)) + data


@shape(".mat")
def mat_of_deep_cells(size: int) -> bytes:
    inner = NUMBER
    for _ in range(min(size // 48, 2000)):
        inner = matrix(1, (1, 1), b"", inner)
    return mat_head() + matrix(1, (1, 1), b"c", inner)


@shape(".mat")
def mat_of_fields(size: int) -> bytes:
    count = size // (len(NUMBER) + 8)
    names = b"".join(b"f%06d\0" % n for n in range(count))
    return mat_head() + matrix(
        2, (1, 1), b"s", element(5, struct.pack("<i", 8)), element(1, names), NUMBER * count
    )


@shape(".mat")
def mat_of_an_empty_struct_of_fields(size: int) -> bytes:
    names = b"".join(b"f%06d\0" % n for n in range(size // 8))
    return mat_head() + matrix(2, (0, 0), b"s", element(5, struct.pack("<i", 8)), element(1, names))


def mat_objects(
    variables: bytes, names: list[bytes], cls: bytes, blocks: list[list[int]], values: list[bytes]
) -> bytes:
    """Objects of one class, a block of properties for each, and their values."""
    from mat_bytes import classes_data, listed, subsystem

    objects = [[1, 0, n + 1] for n in range(len(blocks))]
    head = listed([cls, *names], [1], objects, blocks)
    text = b"MATLAB 5.0 MAT-file".ljust(116) + struct.pack("<Q", 128 + len(variables))
    return text + b"\0\1IM" + variables + subsystem(classes_data(head, *values))


def mat_text(text: bytes) -> bytes:
    return matrix(4, (1, len(text)), b"", element(16, text))


@shape(".mat")
def mat_of_objects(size: int) -> bytes:
    from mat_bytes import MAGIC, opaque

    count = size // 300
    variables = b"".join(
        opaque(b"v%06d" % n, b"duration", MAGIC, 2, 1, 1, n + 1, 1) for n in range(count)
    )
    values = [matrix(6, (1, 1), b"", element(9, struct.pack("<d", n))) for n in range(count)]
    blocks = [[1, 2, 1, n] for n in range(count)]
    return mat_objects(variables, [b"millis"], b"duration", blocks, values)


@shape(".mat")
def mat_of_uses_of_an_object(size: int) -> bytes:
    from mat_bytes import opaque

    count = size // 200
    variables = b"".join(opaque(b"v%06d" % n, b"duration") for n in range(count))
    values = [matrix(6, (1, 1), b"", element(9, struct.pack("<d", 1)))]
    return mat_objects(variables, [b"millis"], b"duration", [[1, 2, 1, 0]], values)


@shape(".mat")
def mat_of_strings(size: int) -> bytes:
    from mat_bytes import opaque, string_record, uint64s

    texts = [f"{n:07d}" for n in range(size // 22)]
    values = [uint64s(string_record(*texts))]
    return mat_objects(opaque(b"s", b"string"), [b"any"], b"string", [[1, 2, 1, 0]], values)


@shape(".mat")
def mat_of_a_table_of_columns(size: int) -> bytes:
    from mat_bytes import opaque

    count = size // 150
    one = element(9, struct.pack("<d", 1))
    values = [
        matrix(1, (1, count), b"", matrix(6, (1, 1), b"", one) * count),
        matrix(1, (1, count), b"", *(mat_text(b"c%06d" % n) for n in range(count))),
        matrix(6, (1, 1), b"", one),
    ]
    blocks = [[3, 2, 1, 0, 3, 1, 1, 4, 1, 2]]
    names = [b"data", b"varnames", b"nrows"]
    return mat_objects(opaque(b"t", b"table"), names, b"table", blocks, values)


@shape(".mat")
def mat_of_a_table_of_texts(size: int) -> bytes:
    from mat_bytes import opaque

    count = size // 64
    texts = b"".join(mat_text(b"%07d" % n) for n in range(count))
    values = [
        matrix(1, (1, 1), b"", matrix(1, (count, 1), b"", texts)),
        matrix(1, (1, 1), b"", mat_text(b"c")),
        matrix(6, (1, 1), b"", element(9, struct.pack("<d", count))),
    ]
    blocks = [[3, 2, 1, 0, 3, 1, 1, 4, 1, 2]]
    names = [b"data", b"varnames", b"nrows"]
    return mat_objects(opaque(b"t", b"table"), names, b"table", blocks, values)


@shape(".mat")
def mat_of_categories(size: int) -> bytes:
    from mat_bytes import opaque

    count = size // 64
    values = [
        matrix(1, (count, 1), b"", *(mat_text(b"%07d" % n) for n in range(count))),
        matrix(13, (1, 1), b"", element(6, struct.pack("<I", 1))),
    ]
    blocks = [[2, 2, 1, 0, 3, 1, 1]]
    names = [b"categoryNames", b"codes"]
    return mat_objects(opaque(b"c", b"categorical"), names, b"categorical", blocks, values)


@shape(".mat")
def mat_4_of_variables(size: int) -> bytes:
    return b"".join(
        struct.pack("<5i", 50, 1, 1, 0, 8) + b"v%06d\0\7" % n for n in range(size // 29)
    )


@shape(".mat")
def mat_4_of_one_long_name(size: int) -> bytes:
    return struct.pack("<5i", 50, 1, 1, 0, size + 1) + b"v" * size + b"\0\7"


# HDF5 --------------------------------------------------------------------------------------------


def hdf5(fill: Callable[..., None], **options: object) -> bytes:
    import h5py

    room = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with h5py.File(room, "w", **options) as file:
            fill(file)
    return room.getvalue()


@shape(".h5", 1 << 19)
def hdf5_of_datasets(size: int) -> bytes:
    def fill(file: object) -> None:
        for n in range(size // 500):
            file[f"d{n:06}"] = np.uint8([n % 256])

    return hdf5(fill)


@shape(".h5", 1 << 19)
def hdf5_of_groups(size: int) -> bytes:
    def fill(file: object) -> None:
        for n in range(size // 800):
            file.create_group(f"g{n:06}")
        file["d"] = np.uint8([1])

    return hdf5(fill)


@shape(".h5", 1 << 19)
def hdf5_of_deep_groups(size: int) -> bytes:
    def fill(file: object) -> None:
        group = file
        for _ in range(min(size // 1000, 480)):
            group = group.create_group("g")
        group["d"] = np.uint8([1])

    return hdf5(fill)


@shape(".h5", 1 << 19)
def hdf5_of_attributes(size: int) -> bytes:
    def fill(file: object) -> None:
        file["d"] = np.uint8([1])
        for n in range(size // 100):
            file["d"].attrs[f"a{n:06}"] = n

    return hdf5(fill, libver="latest")


@shape(".h5", 1 << 19)
def hdf5_of_soft_links(size: int) -> bytes:
    import h5py

    def fill(file: object) -> None:
        file["d"] = np.uint8([1])
        count = size // 30
        for n in range(count):
            file[f"s{n:06}"] = h5py.SoftLink(f"/s{n + 1:06}" if n + 1 < count else "/d")

    return hdf5(fill, libver="latest")


@shape(".h5", 1 << 19)
def hdf5_of_dangling_links(size: int) -> bytes:
    import h5py

    def fill(file: object) -> None:
        file["d"] = np.uint8([1])
        for n in range(size // 30):
            file[f"s{n:06}"] = h5py.SoftLink("/nowhere/at/all")

    return hdf5(fill, libver="latest")


@shape(".h5", 1 << 19)
def hdf5_of_names_of_one_group(size: int) -> bytes:
    """One group of arrays under many names: every name stands for all that is in it."""

    def fill(file: object) -> None:
        group = file.create_group("g")
        count = max(1, size // 600)
        for n in range(count):
            group[f"d{n:06}"] = np.uint8([1])
        for n in range(count):
            file[f"h{n:06}"] = group

    return hdf5(fill, libver="latest")


@shape(".h5", 1 << 18)
def hdf5_of_virtual_maps(size: int) -> bytes:
    import h5py

    def fill(file: object) -> None:
        count = size // 40
        file["d"] = np.arange(count, dtype="u1")
        layout = h5py.VirtualLayout((count,), "u1")
        for n in range(count):
            layout[n : n + 1] = h5py.VirtualSource(".", "d", (count,))[n : n + 1]
        file.create_virtual_dataset("v", layout)

    return hdf5(fill, libver="latest")


@shape(".h5", 1 << 19)
def hdf5_of_chunks(size: int) -> bytes:
    def fill(file: object) -> None:
        file.create_dataset("d", data=np.zeros(size // 40, "u1"), chunks=(1,), compression="gzip")

    return hdf5(fill)


@shape(".h5", 1 << 19)
def hdf5_of_a_shared_index(size: int) -> bytes:
    def fill(file: object) -> None:
        chunks = {"dtype": "u1", "chunks": (1,), "maxshape": (None,)}
        count = size // 80
        whole = file.create_dataset("whole", (count,), **chunks)
        for n in range(count):
            whole.id.write_direct_chunk((n,), b"x")
        for n in range(size // 800):
            file.create_dataset(f"d{n:06}", (count,), **chunks)

    raw = hdf5(fill)
    layout, rest = b"\3\2\2", struct.pack("<2I", 1, 1)  # of version 3; lengths of a chunk
    at = raw.index(layout) + len(layout)  # of the first dataset, which alone has an index
    return raw.replace(layout + b"\xff" * 8 + rest, layout + raw[at : at + 8] + rest)


@shape(".h5", 1 << 18)
def hdf5_of_fields(size: int) -> bytes:
    def fill(file: object) -> None:
        count = min(size // 40, 1600)  # as many as an object header takes
        file["d"] = np.zeros(1, [(f"f{n:06}", "u1") for n in range(count)])

    return hdf5(fill, libver="latest")


# IDX ---------------------------------------------------------------------------------------------


@shape(".idx.gz", 1 << 16)
def idx_of_many_members(size: int) -> bytes:
    empty = gzip.compress(b"", mtime=0)
    head = gzip.compress(b"\0\0\x08\1\0\0\0\1", mtime=0)
    return head + empty * (size // len(empty)) + gzip.compress(b"\1", mtime=0)


# safetensors -------------------------------------------------------------------------------------


@shape(".safetensors", 1 << 18)
def safetensors_of_tensors(size: int) -> bytes:
    entry = '"t%d":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}'
    text = "{" + ",".join(entry % (n, n, n + 1) for n in range(size // 60)) + "}"
    return len(text).to_bytes(8, "little") + text.encode() + bytes(size // 60)


@shape(".safetensors", 1 << 17)
def safetensors_of_one_name(size: int) -> bytes:
    text = "{" + ",".join(f'"{n}":0' for n in range(size // 9)) + ',"0":0}'
    return len(text).to_bytes(8, "little") + text.encode()


@shape(".safetensors", 1 << 18)
def safetensors_of_metadata(size: int) -> bytes:
    words = ",".join(f'"k{n:07}":"v"' for n in range(size // 16))
    text = '{"__metadata__":{' + words + '},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    return len(text).to_bytes(8, "little") + text.encode() + b"x"


@shape(".safetensors", 1 << 17)
def safetensors_of_deep_lists(size: int) -> bytes:
    text = '{"t":{"dtype":"U8","shape":' + "[" * (size // 2) + "]" * (size // 2) + "}}"
    return len(text).to_bytes(8, "little") + text.encode()


# netCDF classic ----------------------------------------------------------------------------------


def _classic(dims: bytes = b"", attributes: bytes = b"", variables: bytes = b"") -> bytes:
    return b"CDF\1" + bytes(4) + b"".join(one or bytes(8) for one in (dims, attributes, variables))


def _tagged(tag: int, entries: list[bytes]) -> bytes:
    return struct.pack(">2I", tag, len(entries)) + b"".join(entries)


def _named(number: int) -> bytes:
    return struct.pack(">I", 8) + b"n%07d" % number


@shape(".nc3", 1 << 18)
def netcdf3_of_dimensions(size: int) -> bytes:
    dims = [_named(n) + struct.pack(">I", 1) for n in range(size // 16)]
    one = struct.pack(">I", 1) + b"x\0\0\0" + struct.pack(">2I", 1, 0) + bytes(8)
    data = one + struct.pack(">3I", 1, 4, 76 + 16 * len(dims) + 16)
    return _classic(_tagged(10, dims), b"", _tagged(11, [data])) + bytes(64)


@shape(".nc3", 1 << 18)
def netcdf3_of_attributes(size: int) -> bytes:
    numbers = [_named(n) + struct.pack(">2Ii", 4, 1, n) for n in range(size // 24)]
    one = struct.pack(">I", 1) + b"x\0\0\0" + struct.pack(">I", 0) + bytes(8)
    head = 76 + 24 * len(numbers) + 16
    return _classic(
        b"", _tagged(12, numbers), _tagged(11, [one + struct.pack(">3I", 1, 4, head)])
    ) + (bytes(64))


@shape(".nc3", 1 << 18)
def netcdf3_of_one_long_attribute(size: int) -> bytes:
    numbers = [_named(0) + struct.pack(">2I", 1, size // 4 * 4) + bytes(size // 4 * 4)]
    one = struct.pack(">I", 1) + b"x\0\0\0" + struct.pack(">I", 0) + bytes(8)
    head = 76 + len(numbers[0]) + 16
    return _classic(
        b"", _tagged(12, numbers), _tagged(11, [one + struct.pack(">3I", 1, 4, head)])
    ) + (bytes(64))


@shape(".nc3", 1 << 17)
def netcdf3_of_variables(size: int) -> bytes:
    return _of_variables(size // 44, records=False)


@shape(".nc3", 1 << 17)
def netcdf3_of_record_variables(size: int) -> bytes:
    return _of_variables(size // 44, records=True)


def _of_variables(count: int, *, records: bool) -> bytes:
    """Variables of four bytes, each along a dimension of its own name, or in the records."""
    dims = [struct.pack(">I", 1) + b"t\0\0\0" + struct.pack(">I", 0 if records else 1)]
    head = 12 + 8 + 12 + 8 + 8 + count * (12 + 8 + 8 + 12)
    one = [
        _named(n) + struct.pack(">2I", 1, 0) + bytes(8) + struct.pack(">3I", 4, 4, head + 4 * n)
        for n in range(count)
    ]
    body = _classic(_tagged(10, dims), b"", _tagged(11, one))
    return body[:4] + struct.pack(">I", 1 if records else 0) + body[8:] + bytes(4 * count + 64)


# NIfTI -------------------------------------------------------------------------------------------


@shape(".nii", 1 << 18)
def nifti_of_extensions(size: int) -> bytes:
    count = size // 16
    head = struct.pack("<i", 348).ljust(40, b"\0") + struct.pack("<8h", 1, 1, 1, 1, 1, 1, 1, 1)
    head = head.ljust(70, b"\0") + struct.pack("<hh", 2, 8)
    head = head.ljust(108, b"\0") + struct.pack("<f", 352 + 16 * count)
    extensions = struct.pack("<ii8x", 16, 6) * count
    return head.ljust(344, b"\0") + b"n+1\0\1\0\0\0" + extensions + b"\7"


# MetaImage ---------------------------------------------------------------------------------------


@shape(".mha", 1 << 16)
def metaimage_of_fields(size: int) -> bytes:
    head = "ObjectType = Image\nNDims = 1\nDimSize = 1\nElementType = MET_UCHAR\n"
    text = head + lines(min(size, 60_000), lambda n: f"key{n} = {n}\n")
    return text.encode() + b"ElementDataFile = LOCAL\n\1"


def metaimage(*fields: str, sizes: str) -> str:
    head = f"ObjectType = Image\nNDims = 2\nDimSize = {sizes}\nElementType = MET_UCHAR\n"
    return head + "".join(f"{field}\n" for field in fields)


@shape(".mhd")
def metaimage_of_files(size: int) -> dict[str, bytes]:
    count = size // 9
    text = metaimage("ElementDataFile = LIST", *["data.raw"] * count, sizes=f"3 {count}")
    return {"": text.encode(), "/data.raw": b"\1\2\3"}


@shape(".mhd")
def metaimage_of_a_pattern(size: int) -> dict[str, bytes]:
    return {"": metaimage("ElementDataFile = %d.raw", sizes=f"3 {size}").encode()}


@shape(".mha")
def metaimage_of_numbers(size: int) -> bytes:
    text = metaimage("BinaryData = False", "ElementDataFile = LOCAL", sizes=f"1 {size // 6}")
    return text.encode() + b"1e00 0" * (size // 6)


# CFL ---------------------------------------------------------------------------------------------


@shape(".hdr", 60_000)
def cfl_of_sections(size: int) -> dict[str, bytes]:
    text = "# Dimensions\n1\n" + lines(min(size, 60_000), lambda n: f"# S{n}\n")
    return {"": text.encode(), ".cfl": bytes(8)}


# Zarr: the metadata of one array, in a file of its own --------------------------------------------


def zarr_json(**more: object) -> bytes:
    """Return the metadata of an array of version 3 of which no chunk is there."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [little], "fill_value": 7, "attributes": {}, **more,
    }).encode()  # fmt: skip


@shape(".json")
def zarr_attributes(size: int) -> bytes:
    return zarr_json(attributes={f"k{n:06}": n for n in range(size // 18)})


@shape(".json")
def zarr_one_attribute(size: int) -> bytes:
    return zarr_json(attributes={"k": [[1, "a"]] * (size // 10)})


@shape(".json")
def zarr_nested(size: int) -> bytes:
    return zarr_json(attributes={"k": 0}).replace(
        b"0}", b"[" * (size // 2) + b"]" * (size // 2) + b"}"
    )


@shape(".json")
def zarr_codecs(size: int) -> bytes:
    return zarr_json(codecs=[{"name": "gzip", "configuration": {"level": 1}}] * (size // 50))


@shape(".json")
def zarr_axes(size: int) -> bytes:
    grid = {"name": "regular", "configuration": {"chunk_shape": [1] * (size // 6)}}
    return zarr_json(shape=[1] * (size // 6), chunk_grid=grid)


@shape(".json")
def zarr_names(size: int) -> bytes:
    return zarr_json(dimension_names=["x" * (size // 2)] * 2)


@shape(".json")
def zarr_chunks(size: int) -> bytes:
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
    return zarr_json(shape=[size, 1 << 40], chunk_grid=grid)


def ome_zarr(document: dict[str, object]) -> bytes:
    """Return a group with one array, in one document."""
    listed = {"0": json.loads(zarr_json())}
    said = {"kind": "inline", "must_understand": False, "metadata": listed}
    return json.dumps({
        "zarr_format": 3, "node_type": "group", "attributes": {"ome": document},
        "consolidated_metadata": said,
    }).encode()  # fmt: skip


def ome_image(**said: object) -> dict[str, object]:
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    scale = [{"type": "scale", "scale": [1, 1]}]
    datasets = [{"path": "0", "coordinateTransformations": scale}]
    return {"multiscales": [{"axes": axes, "datasets": datasets, **said}]}


@shape(".ome.zarr")
def omezarr_levels(size: int) -> bytes:
    return ome_zarr(ome_image(datasets=[{"path": "0"}] * (size // 15)))


@shape(".ome.zarr")
def omezarr_axes(size: int) -> bytes:
    return ome_zarr(ome_image(axes=[{"name": "x"}] * (size // 16)))


@shape(".ome.zarr")
def omezarr_channels(size: int) -> bytes:
    channels = [{"label": "c"}] * (size // 16)
    return ome_zarr({**ome_image(), "omero": {"channels": channels}})


@shape(".ome.zarr")
def omezarr_wells(size: int) -> bytes:
    wells = [{"path": f"A/{n}"} for n in range(size // 18)]
    return ome_zarr({"plate": {"wells": wells}})


def zarr_shard(chunk: int, inner: object = "bytes", **more: object) -> bytes:
    """Return the metadata of one shard of bytes, its index in front, under the key ``0``."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs = [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [chunk], "codecs": [inner], "index_codecs": [little],
        "index_location": "start"}}]  # fmt: skip
    return zarr_chunk(codecs=codecs, **more)


def zarr_chunk(**more: object) -> bytes:
    """Return the metadata of an array whose chunks lie beside it: ``0``, ``1``, and so on."""
    keys = {"name": "v2", "configuration": {"separator": "."}}
    return zarr_json(chunk_key_encoding=keys, data_type="uint8", **more)


def grid(length: int) -> dict[str, object]:
    return {"name": "regular", "configuration": {"chunk_shape": [length]}}


@shape(".json")
def zarr_parts(size: int) -> dict[str, bytes]:
    """A shard of parts of a byte each."""
    count = size // 17
    index = b"".join(struct.pack("<QQ", 16 * count + n, 1) for n in range(count))
    said = zarr_shard(1, shape=[count], chunk_grid=grid(count))
    return {"": said, "/0": index + bytes(count)}


@shape(".json")
def zarr_parts_that_overlap(size: int) -> dict[str, bytes]:
    """A shard of which each part is half of its bytes."""
    count = size // 32
    index = struct.pack("<QQ", 16 * count, size // 2) * count
    length = count * (size // 2)
    said = zarr_shard(size // 2, shape=[length], chunk_grid=grid(length))
    return {"": said, "/0": index + bytes(size // 2)}


@shape(".json")
def zarr_shards_in_shards(size: int) -> dict[str, bytes]:
    """A shard of which each part is the same shard, in which each part is the same one, too."""
    count, body = size // 16, b"\7"
    for parts in (8, 8, count):
        body = struct.pack("<QQ", 16 * parts, len(body)) * parts + body
    inner: object = "bytes"
    for chunk in (1, 8):
        inner = json.loads(zarr_shard(chunk, inner))["codecs"][0]
    return {"": zarr_shard(64, inner, shape=[64 * count], chunk_grid=grid(64 * count)), "/0": body}


@shape(".json", 1 << 16)
def zarr_chunk_files(size: int) -> dict[str, bytes]:
    """One file of a byte for each hundredth chunk."""
    count = size // 64
    said = zarr_chunk(shape=[100 * count], chunk_grid=grid(1))
    return {"": said, **{f"/{100 * n}": b"x" for n in range(count)}}


@shape(".json")
def zarr_texts(size: int) -> dict[str, bytes]:
    """Texts without a letter."""
    count = size // 4
    said = json.loads(zarr_chunk(shape=[count], chunk_grid=grid(count), codecs=["vlen-utf8"]))
    said |= {"data_type": "string", "fill_value": ""}
    return {"": json.dumps(said).encode(), "/0": struct.pack("<I", count) + bytes(4 * count)}


@shape(".json")
def zarr_texts_that_are_not_asked_for(size: int) -> dict[str, bytes]:
    count = size // 4
    said = json.loads(zarr_chunk(shape=[2], chunk_grid=grid(count), codecs=["vlen-utf8"]))
    said |= {"data_type": "string", "fill_value": ""}
    return {"": json.dumps(said).encode(), "/0": struct.pack("<I", count) + bytes(4 * count)}


@shape(".json")
def zarr_bomb(size: int) -> dict[str, bytes]:
    """A chunk of which each of sixteen steps would make twice the bytes."""
    step = {
        "name": "numcodecs.astype",
        "configuration": {"encode_dtype": "u1", "decode_dtype": "u2"},
    }
    said = zarr_chunk(shape=[1 << 16], chunk_grid=grid(1 << 16), codecs=["bytes", *[step] * 15])
    return {"": said, "/0": bytes(size)}


@shape(".json")
def zarr_word(size: int) -> bytes:
    """A type of very many fields, as NumPy would take it."""
    step = {"name": "numcodecs.astype", "configuration": {
        "encode_dtype": "i1," * (size // 3) + "i1", "decode_dtype": "i1"}}  # fmt: skip
    return zarr_json(codecs=["bytes", step])


# References: views of arrays where they lie, with their proof ---------------------------------------


def view(files: list[object], arrays: list[object], refs: dict[str, object] | None = None) -> bytes:
    """Return references with the proof of what these files were."""
    refs = {} if refs is None else refs
    text = json.dumps(refs, sort_keys=True, separators=(",", ":")).encode()
    proof = {"references": 1, "kind": "kerchunk", "view": "", "sha256": sha256(text).hexdigest()}
    said = {"version": 1, "raconvert": {**proof, "files": files, "arrays": arrays}, "refs": refs}
    return json.dumps(said, separators=(",", ":")).encode()


def seen_file(number: int, **more: object) -> dict[str, object]:
    return {"path": f"/nowhere/{number}", "size": 80, "mtime_ns": 1, **more}


def seen_array(number: int, files: list[int], **more: object) -> dict[str, object]:
    return {"name": f"a{number}", "type": "uint8", "byte_order": None, "shape": [80],
            "index_order": "C", "pieces": 1, "nbytes": 80, "files": files, **more}  # fmt: skip


@shape(".json")
def view_of_files(size: int) -> bytes:
    return view([seen_file(n) for n in range(size // 60)], [seen_array(0, [0])])


@shape(".json")
def view_of_one_file_with_a_digest(size: int) -> bytes:
    """One file by very many names: each would be read to its end."""
    files = [{"path": f"/{'./' * n}dev/null", "size": 0, "mtime_ns": 1, "sha256": "0" * 64}
             for n in range(int((size / 2) ** 0.5))]  # fmt: skip
    return view(files, [])


@shape(".json")
def view_of_arrays(size: int) -> bytes:
    return view([seen_file(0)], [seen_array(n, [0]) for n in range(size // 130)])


@shape(".json")
def view_of_an_array_in_files(size: int) -> bytes:
    return view([seen_file(0)], [seen_array(0, [0] * (size // 2))])


@shape(".json")
def view_of_axes(size: int) -> bytes:
    return view([seen_file(0)], [seen_array(0, [0], shape=[1] * (size // 2))])


@shape(".json")
def view_of_references(size: int) -> bytes:
    refs = {f"a/{n}": ["file:///nowhere/0", 0, 8] for n in range(size // 36)}
    return view([seen_file(0)], [seen_array(0, [0])], refs)


@shape(".json")
def view_of_texts(size: int) -> bytes:
    return view([seen_file(0)], [seen_array(0, [0])], {"a/.zattrs": "x" * size})


@shape(".json")
def view_of_nested_lists(size: int) -> bytes:
    return view([seen_file(0)], [seen_array(0, [0])]).replace(
        b'"refs":{}', b'"refs":{"a":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"
    )


@shape(".json")
def view_of_empty_lists(size: int) -> bytes:
    return view([[] for _ in range(size // 3)], [])


# EDF ---------------------------------------------------------------------------------------------


@shape(".edf")
def edf_of_signals(size: int) -> bytes:
    """Signals of one sample and of one label."""
    count = min(9999, max(1, size // 258))
    return edf_files.edf([edf_files.signal(samples=1)] * count, bytes(2 * count), records=1)


@shape(".edf")
def edf_of_records(size: int) -> bytes:
    """Two signals of one sample in each of very many records."""
    two = [edf_files.signal(label=one, samples=1) for one in "xy"]
    return edf_files.edf(two, bytes(size // 4 * 4), records=-1)


@shape(".edf")
def edf_of_annotations(size: int) -> bytes:
    """Annotations of nothing."""
    count = max(1, size // 16)
    data = (b"+0\x14\x14\x14\x14\x14\0" * 2) * count
    notes = edf_files.signal(edf_files.NOTES)
    return edf_files.edf([notes], data, records=count, reserved="EDF+C")


@shape(".edf")
def edf_of_one_onset(size: int) -> bytes:
    """One list of annotations: an onset of very many digits, then very many texts."""
    half = size // 2 // 4 * 4
    data = b"+0\x14\x14\0+" + b"1" * half + b"\x14" + b"\x14" * half + b"\0"
    notes = edf_files.signal(edf_files.NOTES, samples=len(data) // 2)
    return edf_files.edf([notes], data, records=1, reserved="EDF+C")


@shape(".edf")
def edf_of_records_with_gaps(size: int) -> bytes:
    """Records of one sample, each a long time after the one before."""
    signals = [edf_files.signal(samples=1), edf_files.signal(edf_files.NOTES, samples=5)]
    count = max(1, size // 12)
    data = b"".join(b"xx" + b"+%07d\x14\x14" % (9 * n % 10**7) for n in range(count))
    return edf_files.edf(signals, data, records=-1, reserved="EDF+D")


# TFRecord ----------------------------------------------------------------------------------------


@shape(".tfrecord", 1 << 19)
def tfrecord_of_records(size: int) -> bytes:
    """Records of one number."""
    return tfrecord_files.record(tfrecord_files.example(x=tfrecord_files.ints(1))) * (size // 31)


@shape(".tfrecord", 1 << 19)
def tfrecord_of_features(size: int) -> bytes:
    """Very many features in one record."""
    one = tfrecord_files.ints(1)
    return tfrecord_files.file(
        [tfrecord_files.example(**{f"x{n}": one for n in range(max(1, size // 20))})]
    )


@shape(".tfrecord", 1 << 19)
def tfrecord_of_a_feature_each(size: int) -> bytes:
    """Records that each have another feature."""
    one = tfrecord_files.ints(1)
    return tfrecord_files.file(
        tfrecord_files.example(**{f"x{n}": one}) for n in range(max(1, size // 38))
    )


@shape(".tfrecord", 1 << 19)
def tfrecord_of_texts(size: int) -> bytes:
    """Texts of nothing in one feature."""
    return tfrecord_files.file(
        [tfrecord_files.example(x=tfrecord_files.texts(*[b""] * (size // 2)))]
    )


@shape(".tfrecord", 1 << 19)
def tfrecord_of_integers(size: int) -> bytes:
    """Integers of ten bytes, not packed."""
    lists = (b"\x08" + b"\xff" * 9 + b"\x01") * max(1, size // 11)
    return tfrecord_files.file([tfrecord_files.example(x=tfrecord_files.field(3, lists))])


@shape(".tfrecord", 1 << 19)
def tfrecord_of_steps(size: int) -> bytes:
    """A sequence of steps of nothing."""
    steps = tfrecord_files.field(1, b"") * (size // 2) + tfrecord_files.field(
        1, tfrecord_files.ints(1)
    )
    named = tfrecord_files.features(x=steps)
    return tfrecord_files.file([tfrecord_files.field(2, named)])


@shape(".tfrecord", 1 << 19)
def tfrecord_of_gzip(size: int) -> bytes:
    """Zeros in one value, deflated to little."""
    value = tfrecord_files.texts(bytes(size * 900))
    return gzip.compress(tfrecord_files.file([tfrecord_files.example(x=value)]))


# DICOM -------------------------------------------------------------------------------------------


@shape(".dcm")
def dicom_of_elements(size: int) -> bytes:
    """Elements of nothing before the pixels."""
    return dicom_files.raw(dicom_files.element(0x00290010, b"LO", b"") * (size // 8))


@shape(".dcm")
def dicom_of_items(size: int) -> bytes:
    """Functional groups of nothing, many more than frames."""
    items = (dicom_files.item(b"", 0xFFFFFFFF) + dicom_files.ended(False)) * (size // 16)
    groups = dicom_files.element(0x52009230, b"SQ", items + dicom_files.ended(True), 0xFFFFFFFF)
    return dicom_files.raw(groups)


@shape(".dcm")
def dicom_of_deep_sequences(size: int) -> bytes:
    deep = (dicom_files.element(0x00290010, b"SQ", b"", 0xFFFFFFFF)
            + dicom_files.item(b"", 0xFFFFFFFF))  # fmt: skip
    return dicom_files.raw(deep * (size // len(deep)))


@shape(".dcm")
def dicom_of_frames(size: int) -> bytes:
    """Frames of a byte."""
    count = min(size, 99_999)
    small = {"x00280010": b"\1\0", "x00280011": b"\1\0", "x00280100": b"\x08\0",
             "x00280101": b"\x08\0", "x00280102": b"\7\0"}  # fmt: skip
    pixels = dicom_files.element(0x7FE00010, b"OW", bytes(count + count % 2))
    return dicom_files.raw(pixels=pixels, x00280008=(b"IS", b"%d " % count), **small)


@shape(".dcm")
def dicom_of_fragments(size: int) -> bytes:
    """Fragments of one frame by RLE, of a byte pair each."""
    return dicom_files.raw(
        pixels=dicom_files.fragments(*[b"\0\0"] * (size // 10)), syntax="1.2.840.10008.1.2.5"
    )


@shape(".dcm")
def dicom_of_numbers(size: int) -> bytes:
    """Offsets of the frames of a dose, far more than frames."""
    text = b"1\\" * (min(size, 60_000) // 2)
    return dicom_files.raw(x3004000C=(b"DS", text))


@shape(".dcm", largest=1 << 16)
def dicom_that_is_deflated(size: int) -> bytes:
    """Private elements of nothing, which deflate makes small."""
    much = dicom_files.element(0x00291010, b"OB", bytes(1000 * size))
    return dicom_files.deflated(much + dicom_files.raw()[160:])


# CIFAR -------------------------------------------------------------------------------------------


@shape(".cifar.bin")
def cifar_of_images(size: int) -> bytes:
    return (b"\1" + bytes(3072)) * max(1, size // 3073)


# FITS --------------------------------------------------------------------------------------------


def fits_header(*lines: str) -> bytes:
    text = "".join(line.ljust(80) for line in [*lines, "END"]).encode()
    return text.ljust(-(-len(text) // 2880) * 2880)


FITS_PRIMARY = ("SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = 3")


def fits_image(*lines: str) -> bytes:
    return fits_header(*FITS_PRIMARY, *lines) + b"\1\2\3".ljust(2880, b"\0")


def fits_table(width: int, rows: int, heap: int, *lines: str, kind: str = "BINTABLE") -> bytes:
    head = (f"XTENSION= '{kind}'", "BITPIX  = 8", "NAXIS   = 2", f"NAXIS1  = {width}",
            f"NAXIS2  = {rows}", f"PCOUNT  = {heap}", "GCOUNT  = 1")  # fmt: skip
    return fits_image() + fits_header(*head, *lines)


@shape(".fits")
def fits_of_keywords(size: int) -> bytes:
    return fits_image(*(f"K{n:07}= {n}" for n in range(size // 80)))


@shape(".fits.gz")
def fits_of_packed_hdus(size: int) -> bytes:
    """Many small HDUs inside gzip, in a member each: front to back once."""
    one = fits_header("XTENSION= 'IMAGE   '", "BITPIX  = 8", "NAXIS   = 0")
    member = zlib.compress(one, 1, wbits=31)
    return zlib.compress(fits_image(), wbits=31) + member * (size // len(member))


@shape(".fits.gz")
def fits_of_empty_members(size: int) -> bytes:
    member = zlib.compress(b"", wbits=31)
    return zlib.compress(fits_image(), wbits=31) + member * (size // len(member))


@shape(".fits")
def fits_of_one_keyword(size: int) -> bytes:
    return fits_image(*["SAME    = 1"] * (size // 80))


@shape(".fits")
def fits_of_one_long_text(size: int) -> bytes:
    return fits_image("LONG    = 'a&'", *["CONTINUE  'b&'"] * (size // 80))


@shape(".fits")
def fits_of_quotes(size: int) -> bytes:
    return fits_image(*(f"Q{n:07}= '" + "''" * 34 for n in range(size // 80)))


@shape(".fits")
def fits_of_comments(size: int) -> bytes:
    return fits_image(*["COMMENT x"] * (size // 160), *(f"N{n:07}" for n in range(size // 160)))


@shape(".fits")
def fits_of_coordinates(size: int) -> bytes:
    lines = (f"PV{n % 60 + 1}_{n % 97}{chr(65 + n // 6000)} = 1.5" for n in range(size // 80))
    return fits_image("CTYPE1  = 'RA---TAN'", *lines)


@shape(".fits")
def fits_of_hdus(size: int) -> bytes:
    one = fits_header("XTENSION= 'IMAGE'", "BITPIX  = 8", "NAXIS   = 0", "EXTNAME = 'SAME'")
    return fits_image() + one * max(1, size // 2880)


@shape(".fits")
def fits_of_images(size: int) -> bytes:
    one = fits_header("XTENSION= 'IMAGE'", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = 0")
    return fits_image() + one * max(1, size // 2880)


@shape(".fits", 1 << 18)
def fits_of_columns(size: int) -> bytes:
    count = min(900, max(1, size // 160))
    lines = [f"{f'TTYPE{n}':8}= 'same'" for n in range(1, count + 1)]
    lines += [f"{f'TFORM{n}':8}= 'B'" for n in range(1, count + 1)]
    head = fits_table(count, 1, 0, f"TFIELDS = {count}", *lines)
    return head + bytes(-(-count // 2880) * 2880)


@shape(".fits")
def fits_of_cells(size: int) -> bytes:
    """Descriptors that all name the same cell."""
    rows = max(1, size // 8)
    data = struct.pack(">2i", 8, 0) * rows + bytes(8)
    head = fits_table(8, rows, 8, "TFIELDS = 1", "TFORM1  = 'PB(8)'")
    return head + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


@shape(".fits")
def fits_of_cells_in_reverse(size: int) -> bytes:
    """Cells of one byte, each before the last: none can be read together with another."""
    rows = max(1, size // 9)
    data = b"".join(struct.pack(">2i", 1, rows - 1 - n) for n in range(rows)) + bytes(rows)
    head = fits_table(8, rows, rows, "TFIELDS = 1", "TFORM1  = 'PB(1)'")
    return head + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


@shape(".fits")
def fits_of_characters(size: int) -> bytes:
    rows = max(1, size // 4)
    lines = ("TFIELDS = 1", "TBCOL1  = 1", "TFORM1  = 'I4'")
    data = b"  12" * rows
    return fits_table(4, rows, 0, *lines, kind="TABLE") + data.ljust(-(-len(data) // 2880) * 2880)


@shape(".fits")
def fits_of_tiles_of_one_element(size: int) -> bytes:
    """An image in tiles of one element, all with the same bytes."""
    rows, tile = max(1, size // 8), gzip.compress(b"\1", mtime=0)
    lines = ("ZIMAGE  = T", "ZCMPTYPE= 'GZIP_1'", "ZBITPIX = 8", "ZNAXIS  = 1", f"ZNAXIS1 = {rows}",
             "ZTILE1  = 1", "TFIELDS = 1", "TTYPE1  = 'COMPRESSED_DATA'", f"TFORM1  = 'PB({len(tile)})'")  # fmt: skip
    data = struct.pack(">2i", len(tile), 0) * rows + tile
    head = fits_table(8, rows, len(tile), *lines)
    return head + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


# MRC ---------------------------------------------------------------------------------------------


def mrc_header(nx: int, ny: int, nz: int, mode: int, nsymbt: int = 0, group: int = 1) -> bytearray:
    head = bytearray(1024)
    struct.pack_into("<10i", head, 0, nx, ny, nz, mode, 0, 0, 0, nx, ny, nz)
    struct.pack_into("<6f3i", head, 40, 1, 1, 1, 90, 90, 90, 1, 2, 3)
    struct.pack_into("<2i", head, 88, group, nsymbt)
    head[208:216] = b"MAP DD\0\0"
    return head


@shape(".mrc")
def mrc_of_an_extended_header(size: int) -> bytes:
    return bytes(mrc_header(1, 1, 1, 0, nsymbt=size)) + b"\xff" * size + b"x"


@shape(".mrc")
def mrc_of_packed_columns(size: int) -> bytes:
    """Rows of one element of 4 bits."""
    return bytes(mrc_header(1, max(1, size), 1, 101)) + bytes(max(1, size))


@shape(".mrc")
def mrc_of_volumes(size: int) -> bytes:
    head = mrc_header(1, 1, max(1, size), 0, group=401)
    struct.pack_into("<i", head, 36, 1)
    return bytes(head) + bytes(max(1, size))


# GGUF --------------------------------------------------------------------------------------------


def gguf_text(word: str) -> bytes:
    return struct.pack("<Q", len(word)) + word.encode()


def gguf(pairs: list[bytes], tensors: int = 1, width: int = 32) -> bytes:
    infos = [gguf_text(f"t{n}") + struct.pack("<IQIQ", 1, 1, 24, n * width) for n in range(tensors)]
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, len(pairs)) + b"".join([*pairs, *infos])
    return head + bytes(-len(head) % 32) + bytes(tensors * width)


@shape(".gguf", 1 << 19)
def gguf_of_tensors(size: int) -> bytes:
    return gguf([], max(1, size // 70))


@shape(".gguf", 1 << 19)
def gguf_of_keys(size: int) -> bytes:
    return gguf([gguf_text(f"k{n}") + struct.pack("<IB", 0, 1) for n in range(size // 20)])


@shape(".gguf")
def gguf_of_tokens(size: int) -> bytes:
    words = b"".join(gguf_text("x") for _ in range(size // 9))
    return gguf([gguf_text("k") + struct.pack("<IIQ", 9, 8, size // 9) + words])


@shape(".gguf")
def gguf_of_empty_lists(size: int) -> bytes:
    lists = struct.pack("<IQ", 0, 0) * (size // 12)
    return gguf([gguf_text("k") + struct.pack("<IIQ", 9, 9, size // 12) + lists])


@shape(".gguf")
def gguf_of_a_long_text(size: int) -> bytes:
    return gguf([gguf_text("k") + struct.pack("<I", 8) + gguf_text("x" * size)])


# LMDB --------------------------------------------------------------------------------------------

LMDB_PAGE = 4096


def lmdb_page(number: int, flags: int, entries: list[bytes]) -> bytes:
    """Return a branch or a leaf with these entries."""
    places, at = [], LMDB_PAGE
    for entry in entries:
        at -= len(entry) + len(entry) % 2
        places.append(at)
    head = struct.pack("<QHHHH", number, 0, flags, 16 + 2 * len(entries), at)
    room = bytearray(head + struct.pack(f"<{len(places)}H", *places)).ljust(LMDB_PAGE, b"\0")
    for place, entry in zip(places, entries, strict=True):
        room[place : place + len(entry)] = entry
    return bytes(room)


def lmdb_packed(
    nodes: list[tuple[bytes, bytes]], begin: int, flags: int
) -> list[tuple[bytes, bytes]]:
    """Return pages that are full of nodes, each with its first key."""
    pages, rest = [], list(nodes)
    while rest:
        taken, room = 0, LMDB_PAGE - 16
        while taken < len(rest) and room >= len(rest[taken][1]) + 3:
            room -= len(rest[taken][1]) + len(rest[taken][1]) % 2 + 2
            taken += 1
        page = lmdb_page(begin + len(pages), flags, [node for _, node in rest[:taken]])
        pages.append((rest[0][0], page))
        del rest[:taken]
    return pages


def lmdb(items: list[tuple[bytes, bytes]]) -> bytes:
    """Return a file of small values in one tree, as deep as it has to be."""
    nodes = [(key, struct.pack("<HHHH", len(value), 0, 0, len(key)) + key + value)
             for key, value in items]  # fmt: skip
    level = lmdb_packed(nodes, 2, 2)
    pages, depth = [page for _, page in level], 1
    while len(level) > 1:
        first = 2 + len(pages) - len(level)
        nodes = [(key, struct.pack("<HHHH", first + n & 0xFFFF, first + n >> 16, 0, len(key)) + key)
                 for n, (key, _) in enumerate(level)]  # fmt: skip
        level = lmdb_packed(nodes, 2 + len(pages), 1)
        pages += [page for _, page in level]
        depth += 1
    last = 1 + len(pages)
    metas = []
    for number in (0, 1):
        meta = struct.pack("<QHHHH", number, 0, 8, 0, 0) + b"\xde\xc0\xef\xbe"
        meta += struct.pack("<IQQ", 1, 0, LMDB_PAGE * (last + 1))
        meta += struct.pack("<IHH5Q", LMDB_PAGE, 0, 0, 0, 0, 0, 0, 2**64 - 1)
        meta += struct.pack("<IHH5Q", 0, 0, depth, 0, 0, 0, len(items), last)
        metas.append((meta + struct.pack("<QQ", last, number)).ljust(LMDB_PAGE, b"\0"))
    return b"".join([*metas, *pages])


def lmdb_keys(size: int, value: Callable[[int], bytes], each: int) -> bytes:
    return lmdb([(b"%07d" % n, value(n)) for n in range(max(1, size // each))])


@shape(".lmdb")
def lmdb_of_entries(size: int) -> bytes:
    return lmdb_keys(size, lambda n: b"\xff", 18)


@shape(".lmdb", 1 << 19)
def lmdb_of_lengths(size: int) -> bytes:
    return lmdb_keys(size, lambda n: b"\xff" * (n % 3), 18)


@shape(".lmdb")
def lmdb_of_texts(size: int) -> bytes:
    return lmdb_keys(size, lambda n: b"word %d" % n, 28)


@shape(".lmdb", 1 << 19)
def lmdb_of_data(size: int) -> bytes:
    return lmdb_keys(size, lambda n: b"\x08\x01\x10\x01\x18\x01\x22\x01a\x28\x01", 28)


@shape(".lmdb", 1 << 19)
def lmdb_of_one_float(size: int) -> bytes:
    raw = b"\x08\x01\x10\x01\x18\x02\x35abcd\x32\x04abcd"
    return lmdb_keys(size, lambda n: raw, 40)


@shape(".lmdb", 1 << 19)
def lmdb_of_pickles(size: int) -> bytes:
    return lmdb_keys(size, lambda n: b"\x80\x04N.", 22)


@shape(".lmdb", 1 << 18)
def lmdb_of_images(size: int) -> bytes:
    head = struct.pack(">II5B", 1, 1, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0\1")), (b"IEND", b"")]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return lmdb_keys(size, lambda n: image, 90)


# PyTorch -----------------------------------------------------------------------------------------


def torch_file(pickled: bytes, **members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in {"data.pkl": pickled, "byteorder": b"little", **members}.items():
            file.writestr(zipfile.ZipInfo(f"x/{name}"), content)
    return out.getvalue()


TORCH_TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nByteStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00K\x08\x85K\x01\x85"
    b"\x89ccollections\nOrderedDict\n)RtR"
)


def torch_of(entries: bytes) -> bytes:
    return torch_file(b"\x80\x02}(" + entries + b"u.", **{"data/0": bytes(8)})


@shape(".pt", 1 << 19)
def torch_of_tensors(size: int) -> bytes:
    """Tensors that all share one storage of a few bytes."""
    one = b"X\x08\x00\x00\x00%08d" + TORCH_TENSOR.replace(b"%", b"%%")
    return torch_of(b"".join(one % n for n in range(max(1, size // len(one)))))


@shape(".pt")
def torch_of_numbers(size: int) -> bytes:
    numbers = b"X\x01\x00\x00\x00n](" + b"K\x01" * (size // 2) + b"e"
    return torch_of(b"X\x01\x00\x00\x00t" + TORCH_TENSOR + numbers)


@shape(".pt", 1 << 19)
def torch_of_names(size: int) -> bytes:
    numbers = b"".join(b"X\x08\x00\x00\x00%08dK\x01" % n for n in range(size // 15))
    return torch_of(b"X\x01\x00\x00\x00t" + TORCH_TENSOR + numbers)


@shape(".pt")
def torch_of_lists_in_lists(size: int) -> bytes:
    nested = b"X\x01\x00\x00\x00n" + b"]" * (size // 2) + b"a" * (size // 2 - 1)
    return torch_of(b"X\x01\x00\x00\x00t" + TORCH_TENSOR + nested)


@shape(".pt")
def torch_of_memos(size: int) -> bytes:
    puts = b"".join(b"K\x01r%s0" % struct.pack("<I", n) for n in range(size // 8))
    return torch_file(b"\x80\x02" + puts + TORCH_TENSOR + b".", **{"data/0": bytes(8)})


@shape(".pt")
def torch_of_shared_lists(size: int) -> bytes:
    """A list of lists, each of which has the one before twice."""
    pickled = b"\x80\x02]" + b"".join(
        b"r%s0](j%sj%se" % ((struct.pack("<I", n),) * 3) for n in range(size // 18)
    )
    return torch_file(pickled + b".", **{"data/0": bytes(8)})


@shape(".pt", 1 << 19)
def torch_of_members(size: int) -> bytes:
    members = {f"data/{n}": b"" for n in range(1, size // 110)}
    return torch_file(b"\x80\x02" + TORCH_TENSOR + b".", **{"data/0": bytes(8), **members})


# Tables ------------------------------------------------------------------------------------------


@shape(".csv")
def csv_of_numbers(size: int) -> bytes:
    return b"dim_0,x\n" + lines(size, lambda n: f"{n},{n}.5\n").encode()


@shape(".csv")
def csv_of_texts(size: int) -> bytes:
    return b"a,b\n" + lines(size, lambda n: f'"t{n}","x""y"\n').encode()


@shape(".csv")
def csv_of_labels(size: int) -> bytes:
    return b"k,v\n" + lines(size, lambda n: f"label{n},1.5\n").encode()


@shape(".csv", largest=1 << 17)
def csv_of_columns(size: int) -> bytes:
    count = size // 8
    return ",".join(f"c{n}" for n in range(count)).encode() + b"\n" + b"1," * (count - 1) + b"1\n"


@shape(".csv")
def csv_of_a_quote(size: int) -> bytes:
    return b'a,b\n1,"' + b"5,6\n" * (size // 4)


@shape(".csv")
def csv_of_dates(size: int) -> bytes:
    return b"d,v\n" + lines(size, lambda n: f"2020-01-01T00:{n % 60:02}:00.5,1\n").encode()


def _package(sheet: str, texts: str = "") -> bytes:
    """Return a workbook of one sheet."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships><Relationship Id="r" Type="{office}/worksheet"'
        ' Target="s.xml"/></Relationships>',
        "xl/s.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
    }
    if texts:
        parts["xl/sharedStrings.xml"] = f'<sst xmlns="{main}">{texts}</sst>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


@shape(".xlsx")
def xlsx_of_numbers(size: int) -> bytes:
    return _package(lines(size, lambda n: f"<row><c><v>{n}.5</v></c></row>"))


@shape(".xlsx", largest=1 << 18)
def xlsx_of_columns(size: int) -> bytes:
    return _package(f"<row>{'<c><v>1</v></c>' * min(16_000, size // 15)}</row>")


@shape(".xlsx")
def xlsx_of_shared_texts(size: int) -> bytes:
    one = "<row><c t='s'><v>0</v></c></row>"
    return _package(one, lines(size, lambda n: f"<si><t>t{n}</t></si>"))


@shape(".xlsx")
def xlsx_of_merged_cells(size: int) -> bytes:
    return _package(
        "<row><c><v>1</v></c></row>" + lines(size, lambda n: '<mergeCell ref="A1:B2"/>')
    )


# R -----------------------------------------------------------------------------------------------


def r_ints(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


R_HEAD = b"X\n" + r_ints(3, 0x40202, 0x30500, 5) + b"UTF-8"
R_ONE = r_ints(13, 1, 7)  # an integer
R_NIL = r_ints(254)


def r_text(text: bytes) -> bytes:
    return r_ints(0x40009, len(text)) + text


def r_symbol(text: bytes) -> bytes:
    return r_ints(1) + r_text(text)


def r_names(names: list[bytes]) -> bytes:
    """The attribute of a list that has the names of its members."""
    texts = b"".join(map(r_text, names))
    return r_ints(0x402) + r_symbol(b"names") + r_ints(16, len(names)) + texts + R_NIL


@shape(".rds")
def rds_of_vectors(size: int) -> bytes:
    """A list of vectors of one number."""
    count = max(1, size // len(R_ONE))
    return R_HEAD + r_ints(19, count) + R_ONE * count


@shape(".rds")
def rds_of_nothings(size: int) -> bytes:
    """A list of NULL, and one vector."""
    count = max(1, size // 4)
    return R_HEAD + r_ints(19, count + 1) + R_ONE + R_NIL * count


@shape(".rds")
def rds_of_equal_names(size: int) -> bytes:
    """A list of vectors of one name."""
    count = max(1, size // 21)
    return R_HEAD + r_ints(0x213, count) + R_ONE * count + r_names([b"a"] * count)


@shape(".rds")
def rds_of_names_that_end_in_numbers(size: int) -> bytes:
    """A list of vectors, of which the names are those that equal ones would get."""
    count = max(1, size // 44)
    names = [b"a~%d" % n for n in range(2, count + 2)] + [b"a"] * count
    return R_HEAD + r_ints(0x213, 2 * count) + R_ONE * (2 * count) + r_names(names)


@shape(".rds")
def rds_of_a_long_name(size: int) -> bytes:
    """A list in a list of a long name, with many members."""
    count = max(1, size // 24)
    inner = r_ints(19, count) + R_ONE * count
    return R_HEAD + r_ints(0x213, 1) + inner + r_names([b"a" * (size // 2)])


@shape(".rds")
def rds_of_strings(size: int) -> bytes:
    """A vector of empty strings."""
    count = max(1, size // 8)
    return R_HEAD + r_ints(16, count) + r_ints(9, 0) * count


@shape(".rds")
def rds_of_one_long_string(size: int) -> bytes:
    """A vector of empty strings, and one long one."""
    count = max(1, size // 16)
    long = r_text(b"a" * (size // 2))
    return R_HEAD + r_ints(16, count + 1) + r_ints(9, 0) * count + long


@shape(".rds")
def rds_of_attributes(size: int) -> bytes:
    """A vector with many attributes of one name."""
    one = r_ints(0x402) + r_symbol(b"a") + R_ONE
    return R_HEAD + r_ints(0x20D, 1, 7) + one * max(1, size // len(one)) + R_NIL


@shape(".rds")
def rds_of_attributes_by_reference(size: int) -> bytes:
    """A vector with many attributes, of which a number says the name."""
    first = r_ints(0x402) + r_symbol(b"a") + R_ONE
    one = r_ints(0x402, 1 << 8 | 255) + R_ONE
    return R_HEAD + r_ints(0x20D, 1, 7) + first + one * max(1, size // len(one)) + R_NIL


@shape(".rds")
def rds_of_levels(size: int) -> bytes:
    """A factor of one element with many levels, one of them long."""
    count = max(1, size // 20)
    texts = b"".join(r_text(b"%d" % n) for n in range(count)) + r_text(b"a" * (size // 4))
    levels = r_ints(0x402) + r_symbol(b"levels") + r_ints(16, count + 1) + texts
    kind = r_ints(0x402) + r_symbol(b"class") + r_ints(16, 1) + r_text(b"factor")
    return R_HEAD + r_ints(0x30D, 1, 1) + levels + kind + R_NIL


@shape(".rds")
def rds_of_labels(size: int) -> bytes:
    """Labels for each element, of two axes of one element besides."""
    count = max(1, size // 16)
    names = r_ints(16, count) + b"".join(r_text(b"%d" % n) for n in range(count))
    dim = r_ints(0x402) + r_symbol(b"dim") + r_ints(13, 3, count, 1, 1)
    labels = r_ints(0x402) + r_symbol(b"dimnames") + r_ints(19, 3) + names + R_NIL * 2
    return R_HEAD + r_ints(0x20D, count) + r_ints(*[7] * count) + dim + labels + R_NIL


@shape(".rds")
def rds_of_calls(size: int) -> bytes:
    """A call of calls of calls, and a vector."""
    return R_HEAD + r_ints(19, 2) + R_ONE + r_ints(6) * (size // 8) + R_NIL * (size // 8 + 1)


@shape(".rds")
def rds_of_symbols(size: int) -> bytes:
    """A list of symbols, and a vector."""
    one = r_symbol(b"a")
    count = max(1, size // len(one))
    return R_HEAD + r_ints(19, count + 1) + R_ONE + one * count


@shape(".rds")
def rds_of_bytecode(size: int) -> bytes:
    """Bytecode of many constants, and a vector."""
    count = max(1, size // 16)
    code = r_ints(21, 1) + R_ONE + r_ints(count) + (r_ints(13) + R_ONE) * count
    return R_HEAD + r_ints(19, 2) + R_ONE + code


@shape(".rds")
def rds_of_squeezed_vectors(size: int) -> bytes:
    """As `rds_of_vectors`, compressed."""
    return gzip.compress(rds_of_vectors(size))


@shape(".rds")
def rds_of_squeezed_missing_values(size: int) -> bytes:
    """Vectors of missing numbers too long to be kept, compressed."""
    count = max(1, size // (1 << 17))
    one = r_ints(13, 1 << 15) + r_ints(-(1 << 31)) * (1 << 15)
    return gzip.compress(R_HEAD + r_ints(19, count) + one * count)


@shape(".rda")
def rda_of_objects(size: int) -> bytes:
    """Many objects by name."""
    one = r_ints(0x402) + r_symbol(b"a") + R_ONE
    return b"RDX3\n" + R_HEAD + one * max(1, size // len(one)) + R_NIL
