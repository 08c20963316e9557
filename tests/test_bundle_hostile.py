"""Hostile and damaged bundles: refused by an error of ours, quickly, in little memory, harmlessly.

What is hostile about each file is its name in the tables.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import struct
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ra_bytes
from attempts import MB, PEAK, Answer
from bundles import FORMS, as_zip, facts, load, place, save, small
from cases import rounds, some

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files import tars
from raconvert.files.limits import DEFAULT
from raconvert.inspect.verify import verify
from raconvert.ra.plugin import data_range

EACH_FORM = pytest.mark.parametrize("form", FORMS)
RA = ra_bytes.ra_file(2, 1, (3,), b"abc")
GOOD = b"raconvert_bundle: 1\narrays:\n- {name: x, file: x.ra}\n...\n"


def listing(arrays: str, more: str = "") -> bytes:
    """Return a manifest with this list of arrays."""
    return f"raconvert_bundle: 1\narrays: {arrays}\n{more}...\n".encode()


def as_tar(members: dict[str, bytes], **changes: Any) -> bytes:
    """Return an archive with these members; `changes` are fields of the header of x.ra."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for field, value in changes.items() if name == "x.ra" else ():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def build(folder: Path, form: str, members: dict[str, bytes]) -> Path:
    """Write a bundle in one of the forms, whatever its members are."""
    path = place(folder, form, "evil")
    if form == "zip":
        path.write_bytes(as_zip(members))
    elif form == "tar":
        path.write_bytes(as_tar(members))
    else:
        for name, data in members.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
    return path


@pytest.fixture
def outcome(attempt: Callable[..., Answer], tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Return a function that converts to another bundle and says how it was refused."""
    out = tmp_path / "out"
    out.mkdir()

    def check(source: Path, **options: object) -> tuple[str, str]:
        found = attempt(source, out / "x.zip", **options)
        assert found.peak < PEAK
        assert os.listdir(out) == (["x.zip"] if not found.kind else [])
        if found.kind:
            assert source.name in found.text
            assert len(found.text) < 2000
        return found.kind, found.text

    return check


@EACH_FORM
def test_the_good_one_is_read(outcome: Callable[..., Any], tmp_path: Path, form: str) -> None:
    assert outcome(build(tmp_path, form, {"bundle.yaml": GOOD, "x.ra": RA})) == ("", "")


# Outside -----------------------------------------------------------------------------------------

OUTSIDE = {
    "parent": "../secret.ra",
    "parent-from-below": "a/../../secret.ra",
    "parent-and-back": "../evil/x.ra",
    "absolute": "/etc/passwd",
    "absolute-twice": "//host/secret.ra",
    "backslash": "..\\\\secret.ra",
    "backslash-inside": "a\\\\x.ra",
    "drive": "C:/secret.ra",
    "drive-relative": "C:secret.ra",
    "unc": "\\\\\\\\host\\\\share\\\\secret.ra",
    "nothing": "",
    "dot": ".",
    "two-dots": "..",
    "dot-inside": "./x.ra",
    "empty-part": "a//x.ra",
    "slash-at-the-end": "x.ra/",
    "nul": "x.ra\\0",
}


@EACH_FORM
@pytest.mark.parametrize("case", OUTSIDE)
def test_no_file_outside_is_read(
    outcome: Callable[..., Any], tmp_path: Path, form: str, case: str
) -> None:
    (tmp_path / "secret.ra").write_bytes(RA)
    text = listing(f'[{{name: x, file: "{OUTSIDE[case]}"}}]')
    path = build(tmp_path, form, {"bundle.yaml": text, "x.ra": RA})
    before = {place.name for place in tmp_path.rglob("*")}
    for options in ({}, {"trust": ["external"]}):
        kind, told = outcome(path, **options)
        assert kind == "Unsafe"
        assert "said to lie outside the bundle" in told
    assert {place.name for place in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("name", ["../x.ra", "/tmp/raconvert-evil.ra", "..\\x.ra", "a/../x.ra"])
def test_members_with_names_outside_are_never_extracted(
    outcome: Callable[..., Any], tmp_path: Path, form: str, name: str
) -> None:
    """They are no part of the bundle, whatever else it holds; and those that are, are refused."""
    path = build(tmp_path, form, {"bundle.yaml": GOOD, "x.ra": RA, name: RA})
    before = set(tmp_path.rglob("*"))
    assert outcome(path)[0] == ""
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "out" / "x.zip"}
    assert not Path("/tmp/raconvert-evil.ra").exists()


LINKS: dict[str, tuple[str, str]] = {
    "array": ("x.ra", "../secret.ra"),
    "array-absolute": ("x.ra", "/etc/passwd"),
    "array-by-a-folder": ("g", ".."),
    "sidecar": ("x.ra.yaml", "../secret.yaml"),
    "items": ("x.ra.items.jsonl", "../secret.jsonl"),
    "manifest": ("bundle.yaml", "../secret-bundle.yaml"),
}


def linked(tmp_path: Path, case: str) -> Path:
    """Return a folder in which one thing is a link that leads outside."""
    name, end = LINKS[case]
    (tmp_path / "secret.ra").write_bytes(RA)
    (tmp_path / "secret.yaml").write_text("describes: {}\n")
    (tmp_path / "secret.jsonl").write_text("{}\n")
    (tmp_path / "secret-bundle.yaml").write_bytes(GOOD)
    text = GOOD.replace(b"x.ra", b"g/secret.ra") if name == "g" else GOOD
    path = build(tmp_path, "bundle", {"bundle.yaml": text, "x.ra": RA})
    if name == "x.ra.items.jsonl":
        meta = raconvert.Metadata(attributes={"k": 1})
        raconvert.write(path / "x.ra", np.zeros(1), meta=meta, overwrite=True)
        with (path / "x.ra.yaml").open("a") as file:
            file.write("items: true\n")
    (path / name).unlink(missing_ok=True)
    os.symlink(end, path / name)
    return path


@pytest.mark.parametrize("case", LINKS)
def test_links_that_lead_outside_are_not_followed(
    outcome: Callable[..., Any], tmp_path: Path, case: str
) -> None:
    kind, told = outcome(linked(tmp_path, case))
    assert kind == "Unsafe"
    assert "lies outside the folder" in told
    assert 'trust=["external"]' in told


@pytest.mark.parametrize("case", ["array", "array-by-a-folder", "manifest"])
def test_links_are_followed_for_those_one_trusts(
    outcome: Callable[..., Any], tmp_path: Path, case: str
) -> None:
    path = linked(tmp_path, case)
    assert outcome(path, allow=["all"])[0] == "Unsafe"
    assert outcome(path, trust=["external"])[0] == ""


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    path = build(tmp_path, "bundle", {"bundle.yaml": GOOD, "y.ra": RA})
    os.symlink("y.ra", path / "x.ra")
    assert raconvert.read(path)["x"].tolist() == [97, 98, 99]


def test_links_in_a_zip_are_data(outcome: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "secret.ra").write_bytes(RA)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("bundle.yaml", GOOD)
        link = zipfile.ZipInfo("x.ra")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "../secret.ra")
    (tmp_path / "evil.zip").write_bytes(buffer.getvalue())
    assert outcome(tmp_path / "evil.zip")[0] == "Corrupt"


# What is there and is no file --------------------------------------------------------------------

NO_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "loop": lambda path: os.symlink(path.name, path),
    "device": lambda path: os.symlink("/dev/zero", path),
    "dangling": lambda path: os.symlink("nothing", path),
}


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name in ("x.ra", "x.ra.yaml") for case in NO_FILES]
    + [("bundle.yaml", case) for case in NO_FILES if case != "loop"],
)
@pytest.mark.parametrize("trust", [[], ["external"]], ids=["", "trusted"])
def test_what_is_no_file_is_not_waited_for(
    outcome: Callable[..., Any], tmp_path: Path, name: str, case: str, trust: list[str]
) -> None:
    path = build(tmp_path, "bundle", {"bundle.yaml": GOOD, "x.ra": RA})
    (path / name).unlink(missing_ok=True)
    NO_FILES[case](path / name)
    assert outcome(path, from_="bundle", trust=trust)[0] in ("Unsafe", "ReadFailed")


# Manifests ---------------------------------------------------------------------------------------

# case -> manifest, error, words of the message
MANIFESTS: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "Corrupt", "cut off"),
    "no-end": (GOOD.removesuffix(b"...\n"), "Corrupt", "cut off"),
    "end-inside-a-line": (b"raconvert_bundle: 1\narrays: []\nx: wait...", "Corrupt", "cut off"),
    "no-version": (b"arrays: []\n...\n", "Unsupported", "known version"),
    "version-2": (b"raconvert_bundle: 2\n...\n", "Unsupported", "got raconvert_bundle: 2"),
    "version-text": (b"raconvert_bundle: '1'\n...\n", "Unsupported", "known version"),
    "version-true": (b"raconvert_bundle: true\n...\n", "Unsupported", "known version"),
    "version-float": (b"raconvert_bundle: 1.0\n...\n", "Unsupported", "known version"),
    "version-long": (b"raconvert_bundle: " + b"1" * 4000 + b"\n...\n", "Unsupported", "version"),
    "version-longer": (b"raconvert_bundle: " + b"1" * 9000 + b"\n...\n", "Corrupt", "YAML"),
    "of-something-else": (b"bundle:\n  name: my-job\n...\n", "Unsupported", "known version"),
    "no-mapping": (b"- 1\n...\n", "Corrupt", "not a YAML mapping"),
    "no-yaml": (b"raconvert_bundle: 1\n]: [\n...\n", "Corrupt", "not readable YAML"),
    "binary": (bytes(range(256)) + b"\n...\n", "Corrupt", "YAML"),
    "utf-16": (GOOD.decode().encode("utf-16-le"), "Corrupt", ""),
    "two-documents": (GOOD + GOOD, "Corrupt", "YAML"),
    "further-names-list": (listing("[]", "aliases: [a]\n"), "Corrupt", "'aliases'"),
    "further-names-number": (listing("[]", "aliases: {a: 1}\n"), "Corrupt", "'aliases'"),
    "further-names-nested": (listing("[]", "aliases: {a: {b: c}}\n"), "Corrupt", "'aliases'"),
    "alias": (listing("[&a {name: x, file: x.ra}, *a]"), "Corrupt", "aliases"),
    "alias-bomb": (
        listing("[]", "attributes:\n  a: &a [1]\n" + "".join(
            f"  {chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n"
            for n in range(20)
        )), "Corrupt", "aliases",
    ),
    "tag-python": (
        listing("[]", "attributes: !!python/object/apply:os.system [touch OWNED]\n"), "Corrupt", "tag",
    ),
    "tag-set": (listing("!!set {x}"), "Corrupt", "tag"),
    "deep": (listing("[]", f"attributes: {'[' * 5000}{']' * 5000}\n"), "Corrupt", "nested too deep"),
    "deep-block": (listing("[]", "attributes:\n" + "".join(
        " " * n + "a:\n" for n in range(1, 400)
    )), "Corrupt", "nested too deep"),
    "arrays-text": (listing("x"), "Corrupt", "'arrays' has the wrong form"),
    "arrays-mapping": (listing("{x: x.ra}"), "Corrupt", "'arrays' has the wrong form"),
    "arrays-null": (listing("null"), "Corrupt", "'arrays' has the wrong form"),
    "entry-text": (listing("[x.ra]"), "Corrupt", "an entry of 'arrays'"),
    "entry-null": (listing("[null]"), "Corrupt", "an entry of 'arrays'"),
    "entry-list": (listing("[[x, x.ra]]"), "Corrupt", "an entry of 'arrays'"),
    "entry-without-file": (listing("[{name: x}]"), "Corrupt", "an entry of 'arrays'"),
    "entry-without-name": (listing("[{file: x.ra}]"), "Corrupt", "an entry of 'arrays'"),
    "name-number": (listing("[{name: 1, file: x.ra}]"), "Corrupt", "an entry of 'arrays'"),
    "name-list": (listing("[{name: [x], file: x.ra}]"), "Corrupt", "an entry of 'arrays'"),
    "file-number": (listing("[{name: x, file: 1}]"), "Corrupt", "an entry of 'arrays'"),
    "file-list": (listing("[{name: x, file: [x.ra]}]"), "Corrupt", "an entry of 'arrays'"),
    "order-unknown": (
        listing("[{name: x, file: x.ra, index_order: K}]"), "Corrupt", "unknown index order",
    ),
    "order-list": (
        listing("[{name: x, file: x.ra, index_order: [C]}]"), "Corrupt", "unknown index order",
    ),
    "name-twice": (
        listing("[{name: x, file: x.ra}, {name: x, file: y.ra}]"), "Corrupt", "the name 'x' twice",
    ),
    "file-twice": (
        listing("[{name: x, file: x.ra}, {name: y, file: x.ra}]"), "Corrupt", "the file 'x.ra' twice",
    ),
    "file-missing": (listing("[{name: x, file: z.ra}]"), "Corrupt", "'z.ra' of array 'x' is missing"),
    "no-arrays": (b"raconvert_bundle: 1\n...\n", "Corrupt", "'arrays' has the wrong form"),
    "field-unknown": (listing("[{name: x, file: x.ra}]", "group: {}\n"), "Corrupt", "field 'group'"),
    "field-number": (listing("[{name: x, file: x.ra}]", "1: {}\n"), "Corrupt", "field '1'"),
    "entry-field-unknown": (
        listing("[{name: x, file: x.ra, order: F}]"), "Corrupt", "unknown field 'order'",
    ),
    "file-of-another-case": (listing("[{name: x, file: X.ra}]"), "Corrupt", "is missing"),
    "file-is-the-manifest": (listing("[{name: x, file: bundle.yaml}]"), "Corrupt", "bundle.yaml"),
    "file-below-a-file": (listing("[{name: x, file: x.ra/y.ra}]"), "Corrupt", "missing"),
    "file-too-long": (listing(f"[{{name: x, file: {'x' * 5000}}}]"), "Corrupt", "missing"),
    "groups-list": (listing("[]", "groups: [g]\n"), "Corrupt", "'groups' has the wrong form"),
    "groups-of-text": (listing("[]", "groups: {g: k}\n"), "Corrupt", "'groups' has the wrong form"),
    "groups-of-null": (listing("[]", "groups: {g: }\n"), "Corrupt", "'groups' has the wrong form"),
    "groups-with-number": (listing("[]", "groups: {1: {}}\n"), "Corrupt", "'groups' has the wrong form"),
    "attributes-list": (listing("[]", "attributes: [k]\n"), "Corrupt", "'attributes' has the wrong"),
    "attributes-number": (listing("[]", "attributes: {1: k}\n"), "Corrupt", "'attributes' has the"),
    "attributes-null": (listing("[]", "attributes:\n"), "Corrupt", "'attributes' has the wrong form"),
    "formats-text": (listing("[]", "formats: hdf5\n"), "Corrupt", "'formats' has the wrong form"),
    "formats-of-text": (listing("[]", "formats: {hdf5: x}\n"), "Corrupt", "'formats' has the wrong form"),
    "no-array": (listing("[]"), "UsageError", "holds no array"),
}  # fmt: skip


@EACH_FORM
@pytest.mark.parametrize("case", MANIFESTS)
def test_manifests(outcome: Callable[..., Any], tmp_path: Path, form: str, case: str) -> None:
    text, error, words = MANIFESTS[case]
    path = build(tmp_path, form, {"bundle.yaml": text, "x.ra": RA, "y.ra": RA})
    kind, told = outcome(path)
    assert kind == error, told
    assert words in told
    assert not Path("OWNED").exists()


@EACH_FORM
def test_a_manifest_that_is_too_large_is_not_read(
    outcome: Callable[..., Any], tmp_path: Path, form: str
) -> None:
    text = GOOD + b"#" * (DEFAULT.hierarchy_bytes + 1 - len(GOOD))
    path = build(tmp_path, form, {"bundle.yaml": text, "x.ra": RA})
    kind, told = outcome(path)
    assert kind == "Corrupt"
    assert "bundle.yaml is too large" in told


def test_a_manifest_cut_anywhere_never_means_other_arrays(tmp_path: Path) -> None:
    """Each array, group and attribute is there, or nothing is."""
    bundle = small()
    # Where a careless look for the end mark would find one.
    bundle["x"].name = "a...\n...\nb"
    bundle.attributes = {"a": "wait...", "b": "...", "...": "\n...\n", "c": "last"}
    bundle.groups = {"...": {"...": "..."}}
    save(tmp_path / "scan", bundle)
    whole = (tmp_path / "scan" / "bundle.yaml").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "scan" / "bundle.yaml").write_bytes(whole[:length])
        if whole[:length].rstrip() == whole.rstrip():
            assert load(tmp_path / "scan") == facts(bundle)
            continue
        with pytest.raises((Corrupt, Unsupported)):
            open_bundle(tmp_path / "scan")


def test_a_manifest_with_foreign_line_ends_is_read(tmp_path: Path) -> None:
    for number, text in enumerate((GOOD.replace(b"\n", b"\r\n"), GOOD + b"\n\n", GOOD.rstrip())):
        path = build(tmp_path / str(number), "bundle", {"bundle.yaml": text, "x.ra": RA})
        assert list(raconvert.read(path)) == ["x"]


# Arrays and their sidecars -----------------------------------------------------------------------


@EACH_FORM
@pytest.mark.parametrize("name", ra_bytes.HOSTILE)
def test_hostile_arrays(outcome: Callable[..., Any], tmp_path: Path, form: str, name: str) -> None:
    """As when they lie alone: what comes after them in an archive is none of their data."""
    text = listing("[{name: x, file: x.ra}, {name: y, file: y.ra}]")
    members = {"bundle.yaml": text, "x.ra": ra_bytes.HOSTILE[name].contents, "y.ra": RA * 100}
    kind, told = outcome(build(tmp_path, form, members))
    # WouldLose: what only shows while elements are read can be left out with --allow arrays.
    assert kind in ("Corrupt", "Unsupported", "TooLarge", "ReadFailed", "WouldLose"), told
    assert "x.ra" in told or "array 'x'" in told


SIDECARS: dict[str, tuple[bytes, str]] = {
    "of-another-file": (b"describes: {}\nindex_order: F\n", "describes another file"),
    "no-yaml": (b"describes: [\n", "not readable YAML"),
    "alias": (b"describes: &a {}\nattributes: *a\n", "aliases"),
    "too-large": (b"describes: {}\n" + b"#" * (17 << 20), "too large"),
}


@EACH_FORM
@pytest.mark.parametrize("case", SIDECARS)
def test_hostile_sidecars(
    outcome: Callable[..., Any], tmp_path: Path, form: str, case: str
) -> None:
    text, words = SIDECARS[case]
    path = build(tmp_path, form, {"bundle.yaml": GOOD, "x.ra": RA, "x.ra.yaml": text})
    kind, told = outcome(path)
    assert kind == "Corrupt"
    assert words in told
    assert "x.ra" in told
    assert outcome(path, meta="ignore")[0] == ""


@EACH_FORM
def test_a_foreign_file_beside_an_array_is_no_sidecar(tmp_path: Path, form: str) -> None:
    members = {"bundle.yaml": GOOD, "x.ra": RA, "x.ra.yaml": b"title: mine\nindex_order: F\n"}
    with open_bundle(build(tmp_path, form, members)) as bundle:
        assert not bundle["x"].meta


@EACH_FORM
@pytest.mark.parametrize("lines", [b"", b"{}\n", b"{}\n{}\n{}\n{}\n", b"[]\n[]\n[]\n", b"{\n{}\n{}\n",
                                   b"[" * 100_000], ids=ascii)  # fmt: skip
def test_hostile_items(
    outcome: Callable[..., Any], tmp_path: Path, form: str, lines: bytes
) -> None:
    facts_ = raconvert.metadata.sidecar.describe(_source(tmp_path, RA), data_range)
    beside = raconvert.metadata.sidecar.text_of({"items": True}, facts_)
    members = {"bundle.yaml": GOOD, "x.ra": RA, "x.ra.yaml": beside, "x.ra.items.jsonl": lines}
    kind, told = outcome(build(tmp_path, form, members))
    assert kind == "Corrupt"
    assert "per-item metadata" in told


def _source(folder: Path, data: bytes) -> Any:
    (folder / "alone.ra").write_bytes(data)
    return raconvert.files.source.Source(str(folder / "alone.ra"))


# ZIP ---------------------------------------------------------------------------------------------

PLAIN = as_zip({"bundle.yaml": GOOD, "x.ra": RA})
CENTRAL, END = b"PK\x01\x02", b"PK\x05\x06"


def patched(at: bytes, offset: int, value: bytes) -> bytes:
    """Return the good archive with bytes replaced, behind the last occurrence of a mark."""
    whole = bytearray(PLAIN)
    start = whole.rindex(at) + offset
    whole[start : start + len(value)] = value
    return bytes(whole)


def zip_with_entry(members: dict[str, bytes], name: str, offset: int, data: bytes) -> bytes:
    """Return an archive with one more entry in its directory, for data that lies at `offset`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for own, content in members.items():
            archive.writestr(zipfile.ZipInfo(own), content)
        entry = zipfile.ZipInfo(name)
        entry.header_offset, entry.CRC = offset, zlib.crc32(data)
        entry.compress_size = entry.file_size = len(data)
        archive.filelist.append(entry)
    return buffer.getvalue()


def local(name: bytes, data: bytes) -> bytes:
    """Return the local header of a stored member, and its data."""
    fixed = (20, 0, 0, 0, 0x21, zlib.crc32(data), len(data), len(data), len(name), 0)
    return b"PK\x03\x04" + struct.pack("<5H3I2H", *fixed) + name + data


def nested_zip() -> bytes:
    """Return an archive in which x.ra lies inside another member: its bytes count twice."""
    inner = local(b"x.ra", RA)
    members = {"bundle.yaml": GOOD, "cover": inner}
    offset = as_zip(members).index(inner)
    return zip_with_entry(members, "x.ra", offset, RA)


ZIPS: dict[str, tuple[bytes, str]] = {
    "empty": (END + bytes(18), "holds no bundle.yaml"),
    "cut-in-the-directory": (PLAIN[:-30], "ZIP directory"),
    "cut-in-the-data": (PLAIN[:120], "ZIP directory"),
    "directory-offset-wild": (patched(END, 16, struct.pack("<I", 2**32 - 2)), ""),
    "directory-size-wild": (patched(END, 12, struct.pack("<I", 2**32 - 2)), ""),
    "size-wild": (patched(CENTRAL, 24, struct.pack("<I", 2**31)), "size"),
    "sizes-wild": (patched(CENTRAL, 20, struct.pack("<II", 2**31, 2**31)), "size"),
    "encrypted": (patched(CENTRAL, 8, struct.pack("<H", 1)), "encrypted"),
    "method-unknown": (patched(CENTRAL, 10, struct.pack("<H", 77)), "compressed"),
    "method-only-in-the-directory": (patched(CENTRAL, 10, struct.pack("<H", 8)), "differ in the"),
    "local-offset-wild": (patched(CENTRAL, 42, struct.pack("<I", 2**31)), "local header is missing"),
    "local-offset-of-the-manifest": (patched(CENTRAL, 42, bytes(4)), "differ in the name"),
    "name-only-in-the-directory": (patched(CENTRAL, 46, b"y"), "differ in the name"),
    "manifest-twice": (
        zip_with_entry({"bundle.yaml": GOOD, "x.ra": RA}, "bundle.yaml", 0, GOOD), "the name",
    ),
    "member-inside-a-member": (nested_zip(), "overlap"),
    "manifest-damaged": (PLAIN.replace(b"name: x", b"name: y"), "data is damaged"),
    "deflated": (as_zip({"bundle.yaml": GOOD, "x.ra": RA}, zipfile.ZIP_DEFLATED), "in place"),
    "bomb": (
        as_zip({"bundle.yaml": GOOD, "x.ra": bytes(256 * MB)}, zipfile.ZIP_DEFLATED), "in place",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ZIPS)
def test_hostile_zips(outcome: Callable[..., Any], tmp_path: Path, case: str) -> None:
    data, words = ZIPS[case]
    (tmp_path / "evil.zip").write_bytes(data)
    kind, told = outcome(tmp_path / "evil.zip")
    assert kind in ("Corrupt", "Unsupported"), told
    assert words in told


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    """Whatever reads all of a member finds it; a small one is read whole for any element of it."""
    path = tmp_path / "evil.zip"
    path.write_bytes(PLAIN.replace(b"abc", b"abd"))
    with raconvert.open(path, "x") as array, pytest.raises(Corrupt, match="data is damaged"):
        array[2]
    with pytest.raises(Corrupt, match="data is damaged"):
        raconvert.read(path)
    with pytest.raises(Corrupt, match="data is damaged") as caught:
        verify(path)
    assert "member 'x.ra'" in str(caught.value)
    assert zipfile.ZipFile(path).testzip() == "x.ra"


def test_verify_also_reads_members_that_are_no_array(
    attempt: Callable[..., Answer], tmp_path: Path
) -> None:
    """64 MiB of zeros in a few kilobytes are read in bounded memory."""
    buffer = io.BytesIO(PLAIN)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("more", bytes(64 * MB), zipfile.ZIP_DEFLATED)
    path = tmp_path / "evil.zip"
    path.write_bytes(buffer.getvalue())
    found = attempt(path, None)
    assert (found.kind, found.text) == ("", "")
    assert found.peak < 64 * MB + attempt(place_of(tmp_path, PLAIN), None).peak
    damaged = bytearray(buffer.getvalue())
    damaged[damaged.index(b"more") + 400] ^= 0xFF
    path.write_bytes(damaged)
    assert attempt(path, None).kind == "Corrupt"


def place_of(folder: Path, data: bytes) -> Path:
    (folder / "plain.zip").write_bytes(data)
    return folder / "plain.zip"


# tar ---------------------------------------------------------------------------------------------

BLOCK = 512
TAR = as_tar({"bundle.yaml": GOOD, "x.ra": RA})


def rechecked(header: bytes | bytearray) -> bytes:
    """Return a header of a tar member with the checksum that it should have."""
    header = bytearray(header)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def with_header(offset: int, field: int, value: bytes) -> bytes:
    """Return the good archive with a field of one header changed, its checksum right."""
    header = bytearray(TAR[offset : offset + BLOCK])
    header[field : field + len(value)] = value
    return TAR[:offset] + rechecked(header) + TAR[offset + BLOCK :]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def header(name: bytes, size: int, kind: bytes) -> bytes:
    raw = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2
    raw += b"%011o\0" % size + b"00000000000\0" + b" " * 8 + kind + bytes(100) + b"ustar\x0000"
    return rechecked(raw.ljust(BLOCK, b"\0"))


def pax(records: bytes, kind: bytes = b"x") -> bytes:
    """Return an extended header."""
    return header(b"pax", len(records), kind) + padded(records)


def record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while length != len(b"%d %s=%s\n" % (length, key, value)):
        length = len(b"%d %s=%s\n" % (length, key, value))
    return b"%d %s=%s\n" % (length, key, value)


MEMBER = TAR.index(b"x.ra\0")  # where the header of x.ra begins
ENDLESS = b"\xff" * 12  # -1 to base 256
TARS: dict[str, tuple[bytes, str]] = {
    "empty": (bytes(10240), ""),
    "hard-link": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.LNKTYPE, linkname="bundle.yaml"), "missing"),
    "soft-link": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "missing"),
    "character-device": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.CHRTYPE, devmajor=1, devminor=5), "missing"),
    "block-device": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.BLKTYPE), "missing"),
    "pipe": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.FIFOTYPE), "missing"),
    "folder": (as_tar({"bundle.yaml": GOOD, "x.ra": b""}, type=tarfile.DIRTYPE), "missing"),
    "size-wild": (with_header(MEMBER, 124, b"77777777777\0"), ""),
    "size-negative": (with_header(MEMBER, 124, ENDLESS), ""),
    "size-minus-a-block": (with_header(MEMBER, 124, struct.pack(">Iq", 2**32 - 1, -1024)), ""),
    "size-of-exabytes": (with_header(MEMBER, 124, b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7), ""),
    "size-no-number": (with_header(MEMBER, 124, b"12 34 xyz\0\0\0"), ""),
    "checksum-wrong": (TAR[: MEMBER + 5] + b"?" + TAR[MEMBER + 6 :], ""),
    "first-checksum-wrong": (b"?" + TAR[1:], ""),
    "no-end": (TAR.rstrip(b"\0").ljust(MEMBER + 2 * BLOCK, b"\0"), "cut off"),
    "garbage-in-place-of-the-end": (
        TAR.rstrip(b"\0").ljust(MEMBER + 2 * BLOCK, b"\0") + b"garbage" * 1000, "cut off",
    ),
    "pax-size-of-exabytes": (pax(record(b"size", b"9" * 18)) + TAR, ""),
    "pax-size-negative": (pax(record(b"size", b"-1024")) + TAR, ""),
    "pax-size-no-number": (pax(record(b"size", b"many")) + TAR, ""),
    "pax-path-outside": (TAR[:MEMBER] + pax(record(b"path", b"../x.ra")) + TAR[MEMBER:], "missing"),
    "pax-of-16-mib": (pax(record(b"comment", b"x" * (16 * MB))) + TAR, "too long"),
    "pax-length-zero": (pax(b"0 path=x\n") + TAR, ""),
    "pax-length-wild": (pax(b"99999999999 path=x\n") + TAR, ""),
    "pax-of-digits": (pax(b"1" * (4 * MB)) + TAR, ""),
    "pax-sparse-1.0": (
        TAR[:MEMBER] + pax(
            record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.minor", b"0")
            + record(b"GNU.sparse.name", b"x.ra") + record(b"GNU.sparse.realsize", b"9" * 15)
        ) + TAR[MEMBER:], "",
    ),
    "pax-sparse-map-of-numbers": (
        TAR[:MEMBER] + pax(record(b"GNU.sparse.map", b"0,1," * 100_000 + b"0,1")
                           + record(b"GNU.sparse.size", b"9" * 15)) + TAR[MEMBER:], "",
    ),
    "long-name-of-16-mib": (header(b"././@LongLink", 16 * MB, b"L") + bytes(16 * MB) + TAR, "too long"),
    "long-names-in-a-row": ((header(b"././@LongLink", 1, b"L") + padded(b"x")) * 20_000 + TAR, ""),
    "pax-headers-in-a-row": (pax(record(b"a", b"b")) * 20_000 + TAR, ""),
    "long-name-at-the-end": (TAR[: MEMBER + 2 * BLOCK] + header(b"././@LongLink", 5, b"L"), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", TARS)
def test_hostile_tars(outcome: Callable[..., Any], tmp_path: Path, case: str) -> None:
    data, words = TARS[case]
    (tmp_path / "evil.tar").write_bytes(data)
    kind, told = outcome(tmp_path / "evil.tar")
    assert kind in ("Corrupt", "Unsupported", "UnknownFormat"), told
    assert words in told


@pytest.mark.parametrize("field", [b"-0000000003\0", b"-77777777777", b"           x", bytes(12)])
def test_a_block_without_a_length_is_not_a_header(field: bytes) -> None:
    block = tars.header_of("x.ra", 59)
    assert tars.size_in(block) == 59
    assert tars.size_in(block[:124] + field + block[136:]) is None


def test_extended_headers_that_say_nothing_are_passed_over(tmp_path: Path) -> None:
    for number, records in enumerate((b"path=x\n" * 100, b"", record(b"mtime", b"1.5"))):
        (tmp_path / f"{number}.tar").write_bytes(pax(records) + TAR)
        assert raconvert.read(tmp_path / f"{number}.tar")["x"].tolist() == [97, 98, 99]


def test_many_extended_records_in_bounded_time(
    attempt: Callable[..., Answer], tmp_path: Path
) -> None:
    records = b"".join(b"12 k%05x=v\n" % n for n in range(40_000))
    (tmp_path / "evil.tar").write_bytes(pax(records) + TAR)
    found = attempt(tmp_path / "evil.tar", tmp_path / "x.ra")
    assert found.kind in ("", "Corrupt", "Unsupported"), found.text
    assert found.peak < PEAK


def test_a_sparse_member_is_refused(tmp_path: Path, tool: Callable[..., str]) -> None:
    path = build(
        tmp_path,
        "bundle",
        {"bundle.yaml": GOOD, "x.ra": ra_bytes.ra_file(2, 1, (MB,), b"", size=MB)},
    )
    os.truncate(path / "x.ra", 56 + MB)
    for form in ("gnu", "posix"):
        command = [tool("tar"), "-cSf", "../sparse.tar", f"--format={form}", "bundle.yaml", "x.ra"]
        subprocess.run(command, cwd=path, check=True)
        assert (tmp_path / "sparse.tar").stat().st_size < MB // 2, "tar found no hole"
        with pytest.raises(Unsupported, match="sparse"):
            open_bundle(tmp_path / "sparse.tar")


def test_a_tar_cut_at_every_block_never_means_another_bundle(tmp_path: Path) -> None:
    """The last sidecar is lost first, with the description of what the elements are."""
    save(tmp_path / "scan.tar", small())
    whole = (tmp_path / "scan.tar").read_bytes()
    assert whole[-2 * BLOCK :] == bytes(2 * BLOCK)
    for length in range(0, len(whole), BLOCK):
        (tmp_path / "cut.tar").write_bytes(whole[:length])
        if length == len(whole) - BLOCK:  # one of the two blocks at the end is enough
            assert load(tmp_path / "cut.tar") == facts(small())
            continue
        with pytest.raises((Corrupt, RaconvertError)) as caught:
            open_bundle(tmp_path / "cut.tar")
        assert str(tmp_path / "cut.tar") in str(caught.value)


# Anything at all ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_every_byte_may_be_damaged(tmp_path: Path, form: str) -> None:
    """Refused, or decoded; and what says what the arrays are is never silently lost."""
    path = place(tmp_path, form)
    save(path, small())
    whole = path.read_bytes()
    rng = random.Random(form)
    read = 0
    messages = set()
    tried = some(range(3000), 400, form)
    for number in tried:
        data = bytearray(whole)
        at = number if number < len(whole) else rng.randrange(len(whole))
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            with open_bundle(path, from_=form) as bundle:
                found = facts(bundle)
        except RaconvertError as error:
            messages.add(str(error))
            continue
        read += 1
        assert len(found["arrays"]) == 2
        if form == "zip":  # where the manifest has a checksum
            assert found["attributes"] == small().attributes
            assert [array[0] for array in found["arrays"]] == small().names
    assert 0 < read < len(tried)
    assert all(path.name in message for message in messages)


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_damage_costs_neither_time_nor_memory(
    attempt: Callable[..., Answer], tmp_path: Path, form: str
) -> None:
    path = place(tmp_path, form)
    save(path, small())
    whole = path.read_bytes()
    rng = random.Random(form + "again")
    for number in range(rounds(100, 15)):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 2, 4))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        path.write_bytes(data)
        found = attempt(path, tmp_path / f"{number}.npz", from_=form)
        kinds = {"", "Corrupt", "Unsupported", "Unsafe", "TooLarge", "WouldLose"}
        assert found.kind in kinds, found
        assert found.peak < PEAK


def test_a_member_that_goes_away_while_it_is_read(tmp_path: Path) -> None:
    save(tmp_path / "scan.zip", small())
    with open_bundle(tmp_path / "scan.zip") as bundle:
        os.truncate(tmp_path / "scan.zip", 600)
        with pytest.raises(RaconvertError):
            facts(bundle)


def test_nothing_is_unpacked_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    for form in FORMS:
        save(place(tmp_path, form), small())
    shutil.move(tmp_path / "scan.zip", tmp_path / "temp.zip")
    before = sorted(tmp_path.rglob("*"))
    for path in (tmp_path / "scan", tmp_path / "temp.zip", tmp_path / "scan.tar"):
        raconvert.read(path)
        verify(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_external_trust_is_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unsafe):
        open_bundle(linked(tmp_path, "array"))
    with open_bundle(tmp_path / "evil", trust=["external"]) as bundle:
        assert bundle.names == ["x"]
