"""Hostile and damaged files: refused by an error of ours, quickly, in little memory, harmlessly.

Every file is converted in a process of its own, with limits of time and memory (`attempts`).
"""

from __future__ import annotations

import io
import os
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import ra_bytes
from attempts import MB, PEAK, REFUSALS, Answer
from cases import every, rounds

from raconvert import registry
from raconvert.catalogue import ROWS, Row

SUFFIXED = [row for row in ROWS if row.suffixes]


def test_the_measuring_works(attempt: Callable[..., Answer], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    found = attempt(tmp_path / "x.npy", tmp_path / "x.ra")
    assert found.kind == ""
    assert MB < found.peak < PEAK


# The corpus --------------------------------------------------------------------------------------

CORPUS = {
    "hostile": [
        "bad_npy_negative_dim.npy", "bad_npy_truncated_data.npy", "bad_npy_unknown_version.npy",
        "png_bad_iCCP.png", "png_badcrc.png", "png_huge_bKGD_chunk.png", "png_huge_tEXt_chunk.png",
        "png_missing_plte.png", "png_zero_width.png",
    ],
    "npy": ["npy_object_py3.npy"],
    "png/synthetic_bad": [
        "IHDR_crc_wrong.png", "adler_wrong_crc_right.png", "bit_depth_3.png",
        "bomb_2p31-1_x_2p31-1.png", "bomb_30000x30000_8-bit_grey.png", "cut_inside_IEND_crc.png",
        "empty_file.png", "filter_type_9.png", "palette_no_PLTE.png", "rgb_depth_4.png",
        "sig_only.png", "truncated_mid_IDAT.png", "two_IHDR.png", "widthgt2p31.png",
        "zero_width.png",
    ],
    "png/crashers": [
        "badadler.png", "huge_bKGD_chunk.png", "huge_cHRM_chunk.png", "huge_eXIf_chunk.png",
        "huge_gAMA_chunk.png", "huge_iCCP_chunk.png", "huge_juNK_unsafe_to_copy.png",
        "huge_juNk_safe_to_copy.png", "huge_pCAL_chunk.png", "huge_pHYs_chunk.png",
        "huge_sCAL_chunk.png", "huge_sPLT_chunk.png", "huge_sRGB_chunk.png", "huge_sTER_chunk.png",
        "huge_tIME_chunk.png", "zero_gama.png",
    ],
    "png/pngsuite_corrupt": [
        "xc1n0g08.png", "xc9n2c08.png", "xcrn0g04.png", "xd0n2c08.png", "xd3n2c08.png",
        "xs1n0g01.png", "xs2n0g01.png", "xs4n0g01.png",
    ],
}  # fmt: skip
FILES = [pytest.param(folder, name, id=name) for folder, names in CORPUS.items() for name in names]


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_the_files_of_the_corpus(
    corpus: Callable[..., Path],
    refused: Callable[..., str],
    folder: str,
    name: str,
) -> None:
    refused(corpus(*folder.split("/"), name))


@pytest.mark.parametrize("folder", ["hostile", "png/synthetic_bad", "png/crashers",
                                    "png/pngsuite_corrupt"])  # fmt: skip
def test_no_file_of_the_corpus_is_forgotten(corpus: Callable[..., Path], folder: str) -> None:
    there = {path.name for path in corpus(*folder.split("/")).iterdir()}
    fine = {"MANIFEST.md", "good.png", "trailing_garbage.png"}
    assert there - fine == set(CORPUS[folder])


def test_the_truncated_image_in_a_stack_is_named(
    corpus: Callable[..., Path], refused: Callable[..., str]
) -> None:
    folder = corpus("png", "one_truncated_of_12")
    assert "3.png" in refused([str(folder / f"{n}.png") for n in (0, 1, 2, 4, 3)], sort="given")


@pytest.mark.parametrize("name", ra_bytes.HOSTILE)
def test_hostile_ra_files(refused: Callable[..., str], tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.ra"
    path.write_bytes(ra_bytes.HOSTILE[name].contents)
    refused(path)


# NPY and NPZ made here ---------------------------------------------------------------------------


def npy(header: str, data: bytes = b"", *, version: int = 1, length: int | None = None) -> bytes:
    raw = header.encode("latin-1")
    size = len(raw) if length is None else length
    field = struct.pack("<H" if version == 1 else "<I", size)
    return b"\x93NUMPY" + bytes([version, 0]) + field + raw + data


def fields(descr: str = "'<f8'", order: str = "False", shape: str = "(3,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


NPY: dict[str, bytes] = {
    "empty": b"",
    "magic-only": b"\x93NUMPY",
    "no-length": b"\x93NUMPY\x01\x00",
    "header-cut": npy(fields(), length=200),
    "header-of-4-gib": npy(fields(), version=2, length=2**32 - 1),
    "header-empty": npy(""),
    "header-no-literal": npy("{'descr': open('/etc/passwd'), 'fortran_order': False, 'shape': ()}"),
    "header-call": npy("__import__('os').system('touch OWNED')"),
    "header-list": npy("[1, 2]"),
    "header-deep": npy("(" * 60_000 + ")" * 60_000, version=2),
    "header-deep-minus": npy("-" * 100_000 + "1", version=2),
    "header-nul": npy("{'descr': '<f8\0', 'fortran_order': False, 'shape': (3,)}", bytes(24)),
    "header-huge-number": npy(fields(shape=f"({'9' * 50_000},)"), version=2),
    "header-power": npy(fields(shape="(9**9**9,)")),
    "header-repeat": npy(fields(shape="(3,)*10**9")),
    "header-string-bomb": npy(fields(descr="'a'*10**9")),
    "keys-missing": npy("{'descr': '<f8'}\n", bytes(24)),
    "keys-more": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'x': 1}", bytes(24)),
    "order-number": npy(fields(order="1"), bytes(24)),
    "shape-negative": npy(fields(shape="(-3,)"), bytes(24)),
    "shape-bool": npy(fields(shape="(True,)"), bytes(8)),
    "shape-float": npy(fields(shape="(3.0,)"), bytes(24)),
    "shape-list": npy(fields(shape="[3]"), bytes(24)),
    "shape-overflow": npy(fields(shape="(4294967296, 4294967296)")),
    "shape-2-to-63": npy(fields(shape=f"({2**63},)")),
    "shape-huge": npy(fields(shape="(1000000000000000000,)")),
    "shape-huge-with-zero": npy(fields(shape=f"(0, {2**62}, {2**62})")),
    "shape-65-axes": npy(fields(shape=f"({'1, ' * 65})"), bytes(8)),
    "shape-of-10000-axes": npy(fields(shape=f"({'1, ' * 10000})"), bytes(8)),
    "data-cut": npy(fields(), bytes(23)),
    "object": npy(fields(descr="'|O'"), b"cos\nsystem\n(S'touch OWNED'\ntR."),
    "object-in-a-field": npy(fields(descr="[('a', '|O')]"), b"cos\nsystem\n(S'touch OWNED'\ntR."),
    "object-in-a-sub-array": npy(fields(descr="('|O', (2,))"), bytes(48)),
    "object-by-name": npy(fields(descr="'object'"), bytes(24)),
    "descr-unknown": npy(fields(descr="'<q7'"), bytes(24)),
    "descr-none": npy(fields(descr="None"), bytes(24)),
    "descr-fields-deep": npy(fields(descr="[('a'," * 500 + "'<f8'" + ")]" * 500), bytes(24)),
    "descr-sub-array-huge": npy(fields(descr=f"('<f8', ({2**31},))"), bytes(24)),
    "descr-width-huge": npy(fields(descr="'|S4294967296'"), bytes(24)),
    "descr-width-0": npy(fields(descr="'|S0'", shape="(1000000000000,)")),
    "long-double": npy(fields(descr="'<f16'"), bytes(48)),
    "pickle": b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x93.",
    "version-0": b"\x93NUMPY\x00\x00" + bytes(100),
}  # fmt: skip


@pytest.mark.parametrize("case", NPY)
def test_hostile_npy_files(
    refused: Callable[..., str], tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"{case}.npy"
    path.write_bytes(NPY[case])
    text = refused(path)
    assert "allow_pickle" not in text
    assert not (tmp_path / "OWNED").exists()
    assert not Path("OWNED").exists()


def zip_of(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive; names are written as they are."""
    buffer = io.BytesIO()
    stand_ins = [
        letter * len(name.encode()) for letter, (name, _) in zip("QWZ", members, strict=False)
    ]
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for stand_in, (_, data) in zip(stand_ins, members, strict=True):
            info = zipfile.ZipInfo(stand_in)
            info.compress_type = method
            archive.writestr(info, data)
    whole = buffer.getvalue()
    for stand_in, (name, _) in zip(stand_ins, members, strict=True):
        whole = whole.replace(stand_in.encode(), name.encode())
    return whole


GOOD = npy(fields(), bytes(24))
TRAVERSAL = [
    "../evil.npy", "../../evil.npy", "/tmp/raconvert-evil.npy", "a/../../evil.npy", "..\\evil.npy",
    "C:\\evil.npy", "./../evil.npy", "evil.npy/", "~/evil.npy", "/dev/null", "//host/evil.npy",
]  # fmt: skip


@every("name", TRAVERSAL)
@every("target", ["folder", "npz", "ra", "template"])
def test_names_in_an_archive_are_never_paths(
    attempt: Callable[..., Answer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    target: str,
) -> None:
    """Whatever becomes of the array: nothing is written but the destination, in its folder."""
    inside = tmp_path / "deep" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    (inside / "in.npz").write_bytes(zip_of((name, GOOD)))
    before = set(tmp_path.rglob("*"))
    if target == "folder":
        (inside / "out").mkdir()
        before.add(inside / "out")
        found = attempt(inside / "in.npz", inside / "out", to="ra")
    elif target == "template":
        found = attempt(inside / "in.npz", inside / "out" / "{stem}.ra")
    else:
        found = attempt(inside / "in.npz", inside / f"out.{target}")
    assert found.kind in {"", *REFUSALS, "WouldLose", "WriteFailed"}, found.text
    allowed = {inside / "out", inside / "out.npz", inside / "out.ra", inside / "out" / "in.ra"}
    assert set(tmp_path.rglob("*")) - before <= allowed
    assert not Path("/tmp/raconvert-evil.npy").exists()


def bomb(nbytes: int) -> bytes:
    """Return an array of zeros, deflated to a thousandth."""
    return zip_of(("a.npy", npy(fields("'|u1'", shape=f"({nbytes},)"), bytes(nbytes))),
                  method=zipfile.ZIP_DEFLATED)  # fmt: skip


def overlapping() -> bytes:
    """Return an archive whose two directory entries mean the same bytes."""
    whole = bytearray(zip_of(("a.npy", GOOD), ("b.npy", GOOD)))
    second = whole.rindex(b"PK\x01\x02")
    whole[second + 42 : second + 46] = struct.pack("<I", 0)
    return bytes(whole)


def patched(at: bytes, offset: int, value: bytes, data: bytes | None = None) -> bytes:
    """Return an archive with bytes replaced at an offset behind the last occurrence of a mark."""
    whole = bytearray(zip_of(("a.npy", GOOD)) if data is None else data)
    start = whole.rindex(at) + offset
    whole[start : start + len(value)] = value
    return bytes(whole)


CENTRAL, END = b"PK\x01\x02", b"PK\x05\x06"
NPZ: dict[str, bytes] = {
    "cut-in-the-directory": zip_of(("a.npy", GOOD))[:-30],
    "cut-in-the-data": zip_of(("a.npy", GOOD))[:100],
    "local-header-only": zip_of(("a.npy", GOOD))[:30],
    "end-only": b"PK\x05\x06" + bytes(18),
    "no-array": zip_of(("readme.txt", b"text")),
    "only-objects": zip_of(("a.npy", NPY["object"])),
    "only-pickle": zip_of(("a.npy", NPY["pickle"])),
    "data-damaged": zip_of(("a.npy", GOOD)).replace(bytes(24), bytes(23) + b"\1"),
    "twice-the-same-name": zip_of(("a.npy", GOOD), ("a.npy", GOOD)),
    "overlap": overlapping(),
    "directory-offset-wild": patched(END, 16, struct.pack("<I", 2**32 - 2)),
    "directory-size-wild": patched(END, 12, struct.pack("<I", 2**32 - 2)),
    "size-wild": patched(CENTRAL, 24, struct.pack("<I", 2**31)),
    "compressed-size-wild": patched(CENTRAL, 20, struct.pack("<I", 2**31)),
    "method-unknown": patched(CENTRAL, 10, struct.pack("<H", 77)),
    "encrypted": patched(CENTRAL, 8, struct.pack("<H", 1)),
    "local-offset-wild": patched(CENTRAL, 42, struct.pack("<I", 2**31)),
    "array-longer-than-member": zip_of(("a.npy", npy(fields(shape="(1000,)"), bytes(24)))),
    "array-of-exabytes": zip_of(("a.npy", npy(fields(shape=f"({2**58},)")))),
    "bomb-behind-the-array": zip_of(
        ("a.npy", GOOD + bytes(50 * MB)), method=zipfile.ZIP_DEFLATED
    ),
    "deflate-damaged": bomb(10_000).replace(b"\xed", b"\xff", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", NPZ)
def test_hostile_npz_files(refused: Callable[..., str], tmp_path: Path, case: str) -> None:
    path = tmp_path / f"{case}.npz"
    path.write_bytes(NPZ[case])
    refused(path)


def test_a_deflated_array_far_above_the_limit_is_decoded_in_blocks_or_refused(
    attempt: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "bomb.npz").write_bytes(bomb(64 * MB))
    found = attempt(tmp_path / "bomb.npz", tmp_path / "y.npy", max_memory=16 * MB)
    assert found.kind in ("", "TooLarge")
    assert found.peak < PEAK


# PNG made here -----------------------------------------------------------------------------------


def chunk(kind: bytes, payload: bytes = b"") -> bytes:
    crc = struct.pack(">I", zlib.crc32(kind + payload))
    return struct.pack(">I", len(payload)) + kind + payload + crc


def png(*chunks: bytes, width: int = 4, height: int = 4, depth: int = 8, color: int = 0) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND")


PIXELS = chunk(b"IDAT", zlib.compress(bytes(20)))
PNG: dict[str, bytes] = {
    "inflates-to-1-gib": png(chunk(b"IDAT", zlib.compress(bytes(64 * MB)))),
    "text-inflates-to-64-mib": png(
        chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(64 * MB))), b""
    ),
    "profile-inflates-to-64-mib": png(
        chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(64 * MB))), b""
    ),
    "no-pixels": png(),
    "too-few-rows": png(chunk(b"IDAT", zlib.compress(bytes(15)))),
    "too-many-rows": png(chunk(b"IDAT", zlib.compress(bytes(25)))),
    "stored-bomb": png(PIXELS, width=2**31 - 1, height=2**31 - 1, depth=16, color=6),
    "gigapixel": png(PIXELS, width=100_000, height=100_000),
    "million-empty-chunks": png(chunk(b"IDAT") * 100_000),
    "unknown-critical": png(chunk(b"ABCD"), PIXELS),
    "preset-dictionary": png(chunk(b"IDAT", b"\x78\xbb" + bytes(20))),
    "palette-of-257": png(chunk(b"PLTE", bytes(771)), PIXELS, color=3),
    "index-beyond-the-palette": png(
        chunk(b"PLTE", bytes(3)), chunk(b"IDAT", zlib.compress(b"\0\1\1\1\1" * 4)), color=3
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PNG)
def test_hostile_png_files(refused: Callable[..., str], tmp_path: Path, case: str) -> None:
    path = tmp_path / f"{case}.png"
    path.write_bytes(PNG[case])
    refused(path)


@pytest.mark.parametrize("case", ["too-few-rows", "inflates-to-1-gib", "gigapixel", "no-pixels"])
def test_hostile_png_files_in_a_stack(
    refused: Callable[..., str], tmp_path: Path, case: str
) -> None:
    (tmp_path / "0.png").write_bytes(png(PIXELS))
    (tmp_path / f"{case}.png").write_bytes(PNG[case])
    refused([str(tmp_path / "0.png"), str(tmp_path / f"{case}.png")], sort="given")


# Not regular files -------------------------------------------------------------------------------

EACH_FORMAT = pytest.mark.parametrize("row", SUFFIXED, ids=lambda row: row.name)


@EACH_FORMAT
@pytest.mark.parametrize(
    "device", ["/dev/zero", "/dev/random", "/dev/tty", "/dev/full", "/dev/null"]
)
def test_devices(refused: Callable[..., str], tmp_path: Path, device: str, row: Row) -> None:
    os.symlink(device, tmp_path / f"x{row.suffixes[0]}")
    refused(tmp_path / f"x{row.suffixes[0]}")
    refused(tmp_path / f"x{row.suffixes[0]}", from_=row.name)


@pytest.mark.parametrize("device", ["/dev/zero", "/proc/self/mem", "/proc/kmsg", "/sys"])
def test_devices_by_their_own_name(refused: Callable[..., str], device: str) -> None:
    refused(device)
    refused(device, from_="ra")


@EACH_FORMAT
def test_pipes_do_not_hang(refused: Callable[..., str], tmp_path: Path, row: Row) -> None:
    os.mkfifo(tmp_path / f"x{row.suffixes[0]}")
    assert "pipe" in refused(tmp_path / f"x{row.suffixes[0]}")
    refused(tmp_path / f"x{row.suffixes[0]}", from_=row.name)


@pytest.mark.parametrize("suffix", [".npy", ".ra", ".png"])
def test_a_pipe_or_device_in_a_stack_does_not_hang(
    attempt: Callable[..., Answer], tmp_path: Path, suffix: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(tmp_path / "x.npy", np.zeros((2, 2), "u1"))
    attempt(tmp_path / "x.npy", folder / f"0{suffix}")
    os.mkfifo(folder / f"1{suffix}")
    os.symlink("/dev/zero", folder / f"2{suffix}")
    for name in (f"1{suffix}", f"2{suffix}"):
        found = attempt([folder / f"0{suffix}", folder / name], tmp_path / "y.ra", sort="given")
        assert found.kind == "Unsafe", found.text
        assert name in found.text


@EACH_FORMAT
def test_a_folder_named_like_a_file(refused: Callable[..., str], tmp_path: Path, row: Row) -> None:
    (tmp_path / f"x{row.suffixes[0]}").mkdir()
    refused(tmp_path / f"x{row.suffixes[0]}")


@EACH_FORMAT
def test_loops_of_links(refused: Callable[..., str], tmp_path: Path, row: Row) -> None:
    os.symlink(f"b{row.suffixes[0]}", tmp_path / f"a{row.suffixes[0]}")
    os.symlink(f"a{row.suffixes[0]}", tmp_path / f"b{row.suffixes[0]}")
    refused(tmp_path / f"a{row.suffixes[0]}")


def test_a_link_to_nothing(refused: Callable[..., str], tmp_path: Path) -> None:
    os.symlink("missing", tmp_path / "x.ra")
    refused(tmp_path / "x.ra")


def test_a_socket(refused: Callable[..., str], tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "x.ra"))
        refused(tmp_path / "x.ra")


@pytest.mark.parametrize("name", ["x" * 300 + ".ra", "x/" * 3000 + "x.ra", "x\udcff.ra"],
                         ids=["long-name", "long-path", "not-unicode"])  # fmt: skip
def test_names_that_no_file_has(attempt: Callable[..., Answer], tmp_path: Path, name: str) -> None:
    found = attempt(tmp_path / name, tmp_path / "y.ra")
    assert found.kind in REFUSALS, found.text


@pytest.mark.parametrize("name", ["x" * 300 + ".ra", "x/" * 3000 + "x.ra", "a\0b.ra"],
                         ids=["long-name", "long-path", "nul"])  # fmt: skip
def test_destinations_that_cannot_be(
    attempt: Callable[..., Answer], tmp_path: Path, name: str
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    found = attempt(tmp_path / "x.npy", tmp_path / name)
    assert found.kind in ("WriteFailed", "UsageError"), found.text
    assert os.listdir(tmp_path) == ["x.npy"]


def test_a_device_is_no_destination(attempt: Callable[..., Answer], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    os.symlink("/dev/null", tmp_path / "y.ra")
    found = attempt(tmp_path / "x.npy", tmp_path / "y.ra", overwrite=True)
    assert found.kind == "TargetExists"
    assert Path("/dev/null").is_char_device()


# Anything at all ---------------------------------------------------------------------------------


def sample(row: Row) -> bytes:
    """Return a small valid file of a format."""
    npz = io.BytesIO()
    np.savez_compressed(npz, a=np.arange(6).reshape(2, 3), b=np.zeros(3, "M8[s]"))
    array = io.BytesIO()
    np.save(array, np.arange(6, dtype=">f4").reshape(2, 3, order="F"))
    made = {
        "ra": ra_bytes.ra_file(1, 4, (3, 2), bytes(24), trailer=b"more"),
        "npy": array.getvalue(),
        "npz": npz.getvalue(),
        "png": png(chunk(b"tEXt", b"Comment\0text"), PIXELS),
    }
    return made.get(row.name) or next(iter(registry.load(row).FORMAT.samples.values()))


def is_refusal(found: Answer) -> bool:
    """True if a file, or one of its arrays, was refused because it cannot be read."""
    return found.kind in REFUSALS or (
        found.kind == "WouldLose" and 'allow=["arrays"]' in found.text
    )


@EACH_FORMAT
def test_files_damaged_anywhere(attempt: Callable[..., Answer], tmp_path: Path, row: Row) -> None:
    """Whatever is read or refused: no other exception, no hang, no large memory."""
    rng = random.Random(row.name)
    whole = sample(row)
    for number in range(rounds(80, 12)):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 4))):
            place = rng.randrange(len(data))
            data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        (tmp_path / f"x{row.suffixes[0]}").write_bytes(data)
        found = attempt(tmp_path / f"x{row.suffixes[0]}", tmp_path / f"y{number}.npz")
        assert found.kind == "" or is_refusal(found), (bytes(data), found)
        assert found.peak < PEAK


@EACH_FORMAT
@pytest.mark.parametrize("content", ["empty", "nul", "random", "text", "tar", "holes"])
def test_anything_under_a_suffix(
    refused: Callable[..., str], tmp_path: Path, row: Row, content: str
) -> None:
    path = tmp_path / f"x{row.suffixes[0]}"
    if content == "tar":
        with tarfile.open(path, "w") as archive:
            archive.add(__file__, "x")
    else:
        path.write_bytes({
            "nul": bytes(5000), "random": random.Random(1).randbytes(5000), "text": b"text\n" * 999,
        }.get(content, b""))  # fmt: skip
        if content == "holes":
            os.truncate(path, 1 << 40)
    refused(path)
    refused(path, from_=row.name)
