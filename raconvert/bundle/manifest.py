"""The text of ``bundle.yaml``.

    raconvert_bundle: 1
    arrays:
    - {name: mnist/images, file: mnist/images.ra, index_order: C}
    groups: {mnist: {title: digits}}      # attributes of groups; groups without arrays
    aliases: {digits: mnist/images}       # further names of arrays and groups
    attributes: {source: scanner 3}       # of the whole
    formats: {hdf5: {...}}                # metadata of the whole for single formats
    ...

The last line is YAML's end of a document: without it the file is cut off. `index_order` is the
order of the indices [i,j,k], so that they mean the same element in any format that the bundle is
converted to; without it the axes are only listed, fastest first, as RA does it.
"""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsafe, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.files.names import is_inside
from raconvert.metadata.roundtrip import of_file, record_of_file
from raconvert.metadata.yaml import dump, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from raconvert.arrays.bundle import Bundle
    from raconvert.files.source import Source

VERSION = 1
KEY = "raconvert_bundle"
MARK = f"{KEY}: ".encode()
END = b"\n...\n"  # no text of the content stands at the start of a line


class Entry(Record):
    """One array of a bundle: the path of its .ra file, and its index order."""

    name: str
    file: str
    index_order: str | None


class Manifest(Record):
    """The content of ``bundle.yaml``."""

    entries: list[Entry]
    groups: dict[str, dict[str, Any]]
    attributes: dict[str, Any]
    formats: dict[str, dict[str, Any]]
    aliases: dict[str, str]


_FIELDS = (KEY, "arrays", *Manifest._fields[1:])


def text_of(bundle: Bundle, files: list[str]) -> bytes:
    """Return ``bundle.yaml`` for a bundle whose arrays lie in these files."""
    pairs = zip(bundle.arrays, files, strict=True)
    entries = [Entry(array.name, file, array.index_order) for array, file in pairs]
    return _text(entries, record_of_file(bundle))


def text_with(content: Manifest, entries: list[Entry], gone: Collection[str]) -> bytes:
    """Return ``bundle.yaml`` with other entries, and without the aliases in `gone`."""
    aliases = {alias: name for alias, name in content.aliases.items() if alias not in gone}
    fields = {name: getattr(content, name) for name in Manifest._fields[1:]} | {"aliases": aliases}
    return _text(entries, {name: values for name, values in fields.items() if values})


def _text(entries: list[Entry], about: dict[str, Any]) -> bytes:
    """Return ``bundle.yaml`` with these entries and the fields `about` the whole."""
    listed = [
        {key: value for key, value in zip(Entry._fields, entry, strict=True) if value is not None}
        for entry in entries
    ]
    fields = {KEY: VERSION, "arrays": listed, **about}
    return dump(fields, limit=DEFAULT.hierarchy_bytes).rstrip(b"\n") + END


def load(source: Source) -> Manifest:
    """Return the checked content of ``bundle.yaml``.

    Raises `Corrupt`, `Unsafe` or `Unsupported`.
    """
    limits = source.limits
    if source.size > limits.hierarchy_bytes:
        raise Corrupt(
            "bundle.yaml is too large",
            path=source.path,
            expected=f"at most {limits.hierarchy_bytes} bytes",
            got=source.size,
        )
    text = source.read_exact(0, source.size, "bundle.yaml")
    if not text.rstrip().endswith(END.rstrip()):
        raise Corrupt("bundle.yaml is cut off", path=source.path, expected="'...' as its last line")
    fields = parse(text, source.path, limits, most=limits.hierarchy_bytes)
    version = fields.get(KEY)
    if type(version) is not int or version != VERSION:
        raise Unsupported(
            "is not a bundle of a known version",
            path=source.path,
            expected=f"{KEY}: {VERSION}",
            got=f"{KEY}: {version!r}"[:80],
        )
    _check_known(fields, _FIELDS, source)
    listed = fields.get("arrays")
    if not isinstance(listed, list):
        raise Corrupt(
            "field 'arrays' has the wrong form",
            path=source.path,
            expected="list",
            got=type(listed).__name__,
        )
    entries = [_entry(item, source) for item in listed]
    _check_unique(entries, source)
    return Manifest(entries, **of_file(fields, source.path))


def _check_known(fields: dict[str, Any], known: tuple[str, ...], source: Source) -> None:
    """Raise `Corrupt` for fields of later versions: they may change the meaning of the arrays."""
    unknown = [str(name) for name in fields if name not in known]
    if unknown:
        raise Corrupt(
            f"bundle.yaml has an unknown field '{unknown[0][:80]}'",
            path=source.path,
            expected=", ".join(known),
        )


def _entry(item: Any, source: Source) -> Entry:
    """Return an entry of the list of arrays, checked; raises `Corrupt` and `Unsafe`."""
    fields = item if isinstance(item, dict) else {}
    if not all(isinstance(fields.get(key), str) for key in ("name", "file")):
        raise Corrupt(
            "an entry of 'arrays' has the wrong form",
            path=source.path,
            expected="a name and a file",
            got=repr(item)[:80],
        )
    _check_known(fields, Entry._fields, source)
    order = item.get("index_order")
    if order not in (None, "C", "F"):
        raise Corrupt(
            f"array '{item['name']}' has an unknown index order",
            path=source.path,
            expected="C or F",
            got=repr(order)[:80],
        )
    if not is_inside(item["file"]):
        raise Unsafe(
            f"array '{item['name']}' is said to lie outside the bundle",
            path=source.path,
            expected="a path below the folder, without '..'",
            got=repr(item["file"])[:80],
        )
    return Entry(item["name"], item["file"], order)


def _check_unique(entries: list[Entry], source: Source) -> None:
    """Raise `Corrupt` for a name or a file that two entries have."""
    for field in ("name", "file"):
        seen: set[str] = set()
        for entry in entries:
            value = getattr(entry, field)
            if value in seen:
                raise Corrupt(f"lists the {field} '{value}' twice", path=source.path)
            seen.add(value)
