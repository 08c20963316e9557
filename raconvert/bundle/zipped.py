"""A bundle in one .zip: every array an .ra member, stored, its data aligned, mappable in place.

Specification: PKWARE APPNOTE 6.3 (`raconvert.files.zips`); `raconvert.bundle.manifest` for the
content.

Written: ``bundle.yaml`` first, so that the kind of archive shows in its first bytes; then each
array, its data at a multiple of 64 bytes of the file, followed by its sidecar; ZIP64, fixed dates.
Reads: any stored bundle, also below one folder and in any order of members; nothing is unpacked,
arrays are windows into the archive. The CRC-32 of every member is checked while its bytes pass;
`raconvert.open`, which maps them, reads single elements without it (``verify`` checks all).
"""

from __future__ import annotations

from contextlib import closing
from zlib import crc32

from raconvert.arrays.dtypes import FLOAT8
from raconvert.bundle import manifest, members
from raconvert.bundle.folder import folder_of
from raconvert.bundle.members import MANIFEST
from raconvert.errors import Corrupt, Unsupported
from raconvert.files import zips
from raconvert.files.inflate import ZIP_STORED
from raconvert.files.paths import write_failed
from raconvert.files.source import HEAD_BYTES
from raconvert.files.window import Window
from raconvert.files.zips import Archive
from raconvert.files.zipsplice import spliced
from raconvert.plugin import MAYBE, MODEL, NO, SURE, Bundle, Format, Plan, Source, trailing_note
from raconvert.ra import plugin as ra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.zipsplice import Put
    from raconvert.plugin import Array, Target

__all__ = ["FORMAT", "add", "check", "plan", "read", "sniff"]

_NAME = MANIFEST.encode()
# one array x = [1, 2, 3] of uint8, packed by Python's zipfile
_SAMPLE = (
    b"PK\x03\x04\x14\x00\x00\x00\x00\x00\x00\x00!\x00\\b$\xec7\x00\x00\x007\x00\x00\x00\x0b\x00"
    b"\x00\x00bundle.yamlraconvert_bundle: 1\narrays:\n- name: x\n  file: x.ra\n...\nPK\x03\x04"
    b"\x14\x00\x00\x00\x00\x00\x00\x00!\x00\xfcQ\xb6\xcf;\x00\x00\x00;\x00\x00\x00\x04\x00\x00"
    b"\x00x.rarawarray\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00"
    b"\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
    b"\x03\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03PK\x01\x02\x14\x03\x14\x00\x00\x00\x00\x00"
    b"\x00\x00!\x00\\b$\xec7\x00\x00\x007\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\xa4\x01\x00\x00\x00\x00bundle.yamlPK\x01\x02\x14\x03\x14\x00\x00\x00\x00\x00\x00"
    b"\x00!\x00\xfcQ\xb6\xcf;\x00\x00\x00;\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\xa4\x01`\x00\x00\x00x.raPK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00k\x00\x00\x00"
    b"\xbd\x00\x00\x00\x00\x00"
)  # fmt: skip

FORMAT = Format(
    name="zip",
    title="Bundle of .ra files in a ZIP archive",
    raw_bools=True,
    float8=FLOAT8,
    suffixes=(".zip",),
    magic=((0, zips.LOCAL_MAGIC), (0, zips.EMPTY_MAGIC)),
    many=True,
    meta="all",
    holds=MODEL,
    index_orders="",
    sidecar="never",
    read_options=members.READ_OPTIONS,
    samples={"empty.zip": _SAMPLE},
    spec=members.SPEC,
    losses=members.LOSSES,
)


def sniff(source: Source) -> int:
    """Sure if the first member is ``bundle.yaml``; no for another known kind of ZIP; else maybe."""
    head = source.head
    if not head.startswith((zips.LOCAL_MAGIC, zips.EMPTY_MAGIC)):
        return NO
    name = head[zips.LOCAL.size :][: int.from_bytes(head[26:28], "little")]
    if name == _NAME:
        return SURE
    return NO if name.endswith(zips.FIRST_NAMES) else MAYBE


def read(source: Source, *, metadata: bool = True) -> Bundle:
    """Return the arrays of a bundle, each a window into the archive."""
    by_name = {member.filename: member for member in zips.members(source)}
    above = folder_of(by_name, source.path)

    def find(file: str) -> Source | None:
        member = by_name.get(above + file)
        if member is None:
            return None
        if member.method != ZIP_STORED:
            raise Unsupported(
                f"member '{file}' is compressed, so that it cannot be read in place",
                path=source.path,
                expected="stored members, as `zip -0` and raconvert write them",
                remedy="unpack the archive and convert the folder",
            )
        if not file.endswith(members.SUFFIX):  # the manifest and sidecars, which are read whole
            _check(source, member)
        return Window(source, file, member.offset, member.size, member.crc)

    def whole(file: str) -> None:
        _check(source, by_name[above + file])

    bundle = members.read(find, source.path, metadata=metadata, check=whole)
    if trailing := zips.trailing_bytes(source):
        bundle.notes.append(trailing_note(trailing, "the archive"))
    return bundle


def plan(bundle: Bundle) -> Plan:
    """Plan a .zip: the manifest, then each array followed by its sidecar; all of RA fits."""
    files = members.paths_of(bundle)
    return Plan(
        members.fits(bundle, files),
        lambda target: _write(bundle, files, target),
        names=bundle.names,
    )


def add(bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool) -> Plan:
    """Plan the archive with its members copied, the arrays added and a new manifest; see `Add`."""
    existing = zips.members(source)
    above = folder_of([member.filename for member in existing], source.path)
    listing = next((member for member in existing if member.filename == above + MANIFEST), None)
    if listing is None or listing.method != ZIP_STORED:
        raise Unsupported("holds no stored bundle.yaml to add an array to", path=source.path)
    window = Window(source, MANIFEST, listing.offset, listing.size, listing.crc)
    paths = [member.filename.removeprefix(above) for member in existing]
    added = members.Added(bundle, manifest.load(window), source.path, paths, overwrite=overwrite)

    def write(target: Target) -> None:
        def put(array: Array, file: str) -> Put:
            return lambda archive: _write_array(archive, array, file, target, above)

        def put_listing(archive: Archive) -> None:
            archive.add(above + MANIFEST, [added.text])

        puts: dict[str, Put | None] = {above + MANIFEST: put_listing}
        more: list[Put] = []
        for array, file in zip(bundle.arrays, added.files, strict=True):
            gone = added.gone.get(array.name, ())
            puts.update(dict.fromkeys(above + name for name in gone))  # None: left out
            if gone:
                puts[above + gone[0]] = put(array, file)
            else:
                more.append(put(array, file))
        try:
            spliced(source, target.open(), existing, puts, more)
        except OSError as error:
            raise write_failed(target.path, error) from error

    return Plan(members.fits(bundle, added.files), write, names=bundle.names)


def _write(bundle: Bundle, files: list[str], target: Target) -> None:
    """Write an archive with the arrays as these files."""
    try:
        archive = Archive(target.open())
        archive.add(MANIFEST, [manifest.text_of(bundle, files)])
        for array, file in zip(bundle.arrays, files, strict=True):
            _write_array(archive, array, file, target)
        archive.finish()
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_array(
    archive: Archive, array: Array, file: str, target: Target, above: str = ""
) -> None:
    """Write an array and its sidecars, in the folder `above` of the archive."""
    pieces, written = members.pieces_of(array, file, target)
    offset = archive.add(above + file, pieces, header_bytes=ra.header_size(array))
    if written is None:
        whole = Source(target.temp, max_memory=target.max_memory)
        written = Window(whole, file, offset, ra.size_of(array))
    for beside, content in members.sidecars_of(array, file, written):
        archive.add(above + beside, content)


def check(source: Source) -> None:
    """Read every member to its end; raises `Corrupt` if a CRC-32 differs from the directory's."""
    for member in zips.members(source):
        _check(source, member)


def _check(source: Source, member: zips.Member) -> None:
    """Raise `Corrupt` if the bytes of a member do not have the CRC-32 of the directory."""
    if member.method == ZIP_STORED and member.size <= HEAD_BYTES:
        data = source.read_at(member.offset, member.size)
        if len(data) == member.size and crc32(data) == member.crc:
            return
    try:
        with closing(zips.Decoded(source, member)) as decoded:
            decoded.finish()
    except Corrupt as error:
        error.where = f"member '{member.filename}'"
        raise
