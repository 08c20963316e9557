"""Reading of OME-XML: a few elements as plain records, within bounds; all others are counted.

expat reads the text. A document type, and so every entity but the five of XML, is refused; so are
elements nested too deep, and more of them than a document may have values.
"""

from __future__ import annotations

from math import isfinite
from xml.parsers import expat

from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits

    Attributes = dict[str, str]

WHAT = "the OME-XML"
RECORD = "raconvert"  # namespace of annotations of ours
KNOWN = frozenset((
    "OME", "Image", "Description", "Pixels", "Channel", "TiffData", "UUID",
    "Plane", "Plate", "Well", "WellSample", "ImageRef", "StructuredAnnotations", "MapAnnotation",
    "CommentAnnotation", "Value", "M", "LightPath", "BinData", "MetadataOnly", "BinaryOnly",
))  # fmt: skip
DIMENSIONS = "ZCT"
CHANNEL_FIELDS = (
    "Color", "Fluor", "EmissionWavelength", "EmissionWavelengthUnit", "ExcitationWavelength",
    "ExcitationWavelengthUnit", "PinholeSize", "PinholeSizeUnit", "AcquisitionMode",
    "ContrastMethod", "IlluminationType", "NDFilter",
)  # fmt: skip
# Attributes that are read, or that only describe the storage.
_READ = {
    "Pixels": {"ID", "DimensionOrder", "Type", "TimeIncrement", "TimeIncrementUnit", "BigEndian",
               "Interleaved", *(f"Size{one}" for one in "XYZCT"),
               *(f"PhysicalSize{one}{unit}" for one in "XYZ" for unit in ("", "Unit"))},
    "Channel": {"ID", "Name", "SamplesPerPixel", *CHANNEL_FIELDS},
    "Plane": {"TheZ", "TheC", "TheT"},
}  # fmt: skip
_POSITIONS = {f"Position{one}{unit}" for one in "XYZ" for unit in ("", "Unit")}


class Block(Record):
    """A TiffData: its first directory, the first plane, and the number of both; None if absent."""

    ifd: int | None
    first: dict[str, int]
    number: int | None
    file: str
    uuid: str


class Pixels(Record):
    """An image: its attributes, those of its channels and first plane, and its blocks of planes."""

    number: int
    identity: str
    name: str
    description: str
    fields: Attributes
    channels: list[Attributes]
    blocks: list[Block]
    plane: Attributes  # of the first plane of all
    external: bool  # its elements are not in TIFF files

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths of the axes X, Y, Z, C and T."""
        return {axis: int(self.fields[f"Size{axis}"]) for axis in "XYZCT"}


class Document(Record):
    """The content of OME-XML: images, wells by image, records of ours, elements left out."""

    uuid: str
    creator: str
    images: list[Pixels]
    plates: list[Attributes]
    wells: dict[str, tuple[int, str, str, int]]  # image: plate, row, column, field
    notes: dict[str, str]  # of ours, by image
    letters: str  # of ours
    left_out: dict[str, int]


class _Reader:
    """The handlers of expat, and the elements that they have parsed."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.path, self.limits = path, limits
        self.stack: list[str] = []
        self.count = 0
        self.root: Attributes = {}
        self.images: list[dict[str, Any]] = []
        self.plates: list[Attributes] = []
        self.wells: dict[str, tuple[int, str, str, int]] = {}
        self.well: tuple[str, str] = ("", "")
        self.sample = 0
        self.annotation: tuple[str, str] = ("", "")
        self.key = ""
        self.texts: dict[tuple[str, str, str], str] = {}  # annotation: its kind, identity, key
        self.left_out: dict[str, int] = {}
        self.text: list[str] | None = None

    def start(self, name: str, fields: Attributes) -> None:
        """Handle the begin of an element. Raises `TooLarge`."""
        name = name.rpartition(":")[2]
        self.stack.append(name)
        self.count += 1
        if len(self.stack) > self.limits.nesting_levels:
            raise TooLarge(
                f"{WHAT} is nested too deep", path=self.path,
                expected=f"at most {self.limits.nesting_levels} levels",
            )  # fmt: skip
        if self.count > self.limits.document_values:
            raise TooLarge(
                f"{WHAT} has too many elements", path=self.path,
                expected=f"at most {self.limits.document_values}",
            )  # fmt: skip
        if name not in KNOWN:
            if all(above in KNOWN for above in self.stack[:-1]):
                self.left_out[name] = self.left_out.get(name, 0) + 1
            return
        handler = getattr(self, f"_{name.lower()}", None)
        if handler is not None:
            handler(fields)

    def end(self, _: str) -> None:
        """Handle the end of an element, whose text is complete."""
        name = self.stack.pop()
        text = "".join(self.text) if self.text is not None else ""
        if name == "Description" and self.stack[-1:] == ["Image"] and self.images:
            self.images[-1]["description"] = text
        if name == "UUID" and self.stack[-1:] == ["TiffData"] and self.images:
            blocks = self.images[-1]["blocks"]
            if blocks:
                blocks[-1] = blocks[-1]._replace(uuid=text.strip())
        if name in ("Value", "M") and self.annotation[1] and self.text is not None:
            self.texts[(*self.annotation, self.key)] = text
        if name in ("Description", "UUID", "Value", "M"):
            self.text = None

    def data(self, text: str) -> None:
        """Collect text, if the element is one whose text is read."""
        if self.text is not None:
            self.text.append(text)

    def _ome(self, fields: Attributes) -> None:
        if len(self.stack) == 1:
            self.root = fields

    def _image(self, fields: Attributes) -> None:
        if len(self.images) >= self.limits.nodes:
            raise TooLarge(f"{WHAT} has too many images", path=self.path)
        self.images.append({
            "identity": fields.get("ID", ""), "name": fields.get("Name", ""), "description": "",
            "fields": None, "channels": [], "blocks": [], "plane": None, "external": False,
        })  # fmt: skip

    def _pixels(self, fields: Attributes) -> None:
        if self.images and self.stack[-2:-1] == ["Image"]:
            self.images[-1]["fields"] = fields
            self._leave_out("Pixels", fields)

    def _leave_out(self, name: str, fields: Attributes, read: frozenset[str] = frozenset()) -> None:
        """Count the attributes of an element that are left out; `read` are read besides."""
        for field in fields.keys() - _READ[name] - read:
            if not field.endswith("Unit"):
                word = f"{field} of {name}"
                self.left_out[word] = self.left_out.get(word, 0) + 1

    def _channel(self, fields: Attributes) -> None:
        if self.images and self.stack[-2:-1] == ["Pixels"]:
            self.images[-1]["channels"].append(fields)
            self._leave_out("Channel", fields)

    def _metadataonly(self, _: Attributes) -> None:
        if self.images:
            self.images[-1]["external"] = True

    def _tiffdata(self, fields: Attributes) -> None:
        if not self.images:
            return
        first = {one: self._number(fields, f"First{one}", 0) or 0 for one in DIMENSIONS}
        ifd, count = self._number(fields, "IFD", None), self._number(fields, "PlaneCount", None)
        self.images[-1]["blocks"].append(Block(ifd, first, count, "", ""))

    def _uuid(self, fields: Attributes) -> None:
        blocks = self.images[-1]["blocks"] if self.images else []
        if blocks and self.stack[-2:-1] == ["TiffData"]:
            blocks[-1] = blocks[-1]._replace(file=fields.get("FileName", ""))
            self.text = []

    def _plane(self, fields: Attributes) -> None:
        if not self.images or self.stack[-2:-1] != ["Pixels"]:
            return
        first = not any(self._number(fields, f"The{one}", 0) for one in DIMENSIONS)
        if first:
            self.images[-1]["plane"] = fields
        self._leave_out("Plane", fields, frozenset(_POSITIONS) if first else frozenset())

    def _description(self, _: Attributes) -> None:
        self.text = []

    def _plate(self, fields: Attributes) -> None:
        self.plates.append(fields)

    def _well(self, fields: Attributes) -> None:
        row, column = (self._number(fields, one, 0) or 0 for one in ("Row", "Column"))
        self.well, self.sample = (_row(row), str(column + 1)), 0

    def _wellsample(self, _: Attributes) -> None:
        self.sample += 1

    def _imageref(self, fields: Attributes) -> None:
        if self.stack[-2:-1] == ["WellSample"]:
            place = (len(self.plates), *self.well, self.sample - 1)
            self.wells.setdefault(fields.get("ID", ""), place)

    def _mapannotation(self, fields: Attributes) -> None:
        self._any_annotation(fields)

    def _commentannotation(self, fields: Attributes) -> None:
        self._any_annotation(fields)

    def _any_annotation(self, fields: Attributes) -> None:
        ours = fields.get("Namespace") == RECORD
        self.annotation = (RECORD, fields.get("ID", "")) if ours else ("", "")
        self.key = ""
        if not ours:
            name = self.stack[-1]
            self.left_out[name] = self.left_out.get(name, 0) + 1

    def _value(self, _: Attributes) -> None:
        self.text = [] if self.annotation[1] else None

    def _m(self, fields: Attributes) -> None:
        self.key = fields.get("K", "")
        self.text = [] if self.annotation[1] else None

    def _number(self, fields: Attributes, name: str, default: int | None) -> int | None:
        """The number in an attribute, or `default` without it. Raises `Corrupt`."""
        text = fields.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise wrong(name, text, self.path)
        return int(text)


def wrong(name: str, got: str, path: str, expected: str = "a number") -> Corrupt:
    """The error for a field of OME-XML."""
    return Corrupt(
        f"{WHAT} has a wrong {name}", path=path, expected=expected, got=repr(got)[:80],
        remedy="read its pages as those of any TIFF, with `--from tiff`",
    )  # fmt: skip


def _row(number: int) -> str:
    """The letters of a row of a plate: A to Z, AA, ..."""
    text, number = "", number + 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def parsed(text: str, path: str, limits: Limits) -> Document:
    """Parse OME-XML. Raises `Unsafe` for a document type, `TooLarge`, else `Corrupt`."""
    if len(text) > limits.document_bytes:
        raise TooLarge(
            f"{WHAT} is too long", path=path, expected=f"at most {limits.document_bytes} bytes",
            got=len(text),
        )  # fmt: skip
    reader = _Reader(path, limits)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data

    def refuse(*_: Any) -> None:
        raise Unsafe(
            f"{WHAT} has a document type, which could define entities", path=path,
            remedy="read its pages as those of any TIFF, with `--from tiff`",
        )  # fmt: skip

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except (expat.ExpatError, ValueError) as error:
        raise Corrupt(
            f"{WHAT} is damaged ({error})", path=path,
            remedy="read its pages as those of any TIFF, with `--from tiff`",
        ) from error  # fmt: skip
    return _document(reader, path)


def _document(reader: _Reader, path: str) -> Document:
    images = []
    for number, fields in enumerate(reader.images):
        if fields["fields"] is None:
            raise Corrupt(f"{WHAT} has an image without pixels", path=path)
        fields["plane"] = fields["plane"] or {}
        images.append(_checked(Pixels(number, **fields), path))
    if not images:
        raise Corrupt(
            f"{WHAT} has no image in this file", path=path,
            remedy="name the file that has it, or read its pages with `--from tiff`",
        )  # fmt: skip
    notes = {key[1]: text for key, text in reader.texts.items() if key[2] == ""}
    letters = next((text for key, text in reader.texts.items() if key[2] == "axes"), "")
    return Document(
        reader.root.get("UUID", ""), reader.root.get("Creator", ""), images, reader.plates,
        reader.wells, notes, letters, reader.left_out,
    )  # fmt: skip


def _checked(pixels: Pixels, path: str) -> Pixels:
    """The image itself. Raises `Corrupt` for a size that is not a number, or a wrong order."""
    for axis in "XYZCT":
        text = pixels.fields.get(f"Size{axis}", "")
        if not (text.isascii() and text.isdecimal() and 0 < len(text) < 11 and int(text)):
            raise wrong(f"Size{axis}", text, path, "a number above 0")
    order = pixels.fields.get("DimensionOrder", "XYCZT")
    if order[:2] != "XY" or sorted(order[2:]) != sorted(DIMENSIONS):
        raise wrong("DimensionOrder", order, path, "XY, then Z, C and T in any order")
    return pixels


def number_of(text: str | None) -> float | None:
    """The finite number in a text; None for other texts."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) and abs(value) < 1e300 else None
