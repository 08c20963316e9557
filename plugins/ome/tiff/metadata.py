"""An image of OME-XML as shape and metadata of an array, and back as XML.

Units are those of the schema; um, us and angstrom have other names in the core.
"""

from __future__ import annotations

from math import prod
from xml.sax.saxutils import escape, quoteattr

from raconvert.declared import Record
from raconvert.metadata import roundtrip
from raconvert.plugin import Metadata

from ...image.tiff.ome import SCHEMA, TYPES
from ..axes import NAMESPACE, Sampling, axes_from, channels_of, samplings_of, with_channels
from ..record import record_of
from .xml import CHANNEL_FIELDS, RECORD, number_of, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Array, Source

    from .xml import Document, Pixels

ANY = "reference frame"  # the unit of sizes without a known unit
_ODD = {
    "um": "\N{MICRO SIGN}m", "us": "\N{MICRO SIGN}s",
    "angstrom": "\N{LATIN CAPITAL LETTER A WITH RING ABOVE}",
}  # fmt: skip
_READ = {
    "\N{MICRO SIGN}m": "um", "\N{GREEK SMALL LETTER MU}m": "um", "\N{MICRO SIGN}s": "us",
    "\N{GREEK SMALL LETTER MU}s": "us", "\N{ANGSTROM SIGN}": "angstrom",
    "\N{LATIN CAPITAL LETTER A WITH RING ABOVE}": "angstrom",
}  # fmt: skip
LENGTHS = frozenset({
    "Ym", "Zm", "Em", "Pm", "Tm", "Gm", "Mm", "km", "hm", "dam", "m", "dm", "cm", "mm", "um", "nm",
    "pm", "fm", "am", "zm", "ym", "angstrom", "thou", "li", "in", "ft", "yd", "mi", "ua", "ly",
    "pc", "pt", "pixel",
})  # fmt: skip
TIMES = frozenset({
    "Ys", "Zs", "Es", "Ps", "Ts", "Gs", "Ms", "ks", "hs", "das", "s", "ds", "cs", "ms", "us", "ns",
    "ps", "fs", "as", "zs", "ys", "min", "h", "d",
})  # fmt: skip
_SIZES = {"x": "PhysicalSizeX", "y": "PhysicalSizeY", "z": "PhysicalSizeZ", "t": "TimeIncrement"}
_NO_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF))


class Form(Record):
    """The form of an image: letters, lengths of the axes of pages, of the plane, and samples."""

    letters: str
    pages: tuple[int, ...]
    plane: tuple[int, int]
    samples: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return (*self.pages, *self.plane, *[self.samples] * (self.samples > 1))


def form_of(
    pixels: Pixels, document: Document, page: Any, source: Source, *, squeeze: bool
) -> Form:
    """The form of the array of an image: T, C, Z, Y, X, and samples if there are any.

    With `squeeze`, T, C and Z of length 1 are left out. Raises `Corrupt` for a wrong list of axes.
    """
    sizes, samples = pixels.sizes, page.samplesperpixel
    sizes["C"] //= samples
    letters = "tcz"
    ours = document.creator == RECORD
    listed = _listed(document, pixels) if ours else None
    if listed is not None:
        hidden = [letter for letter in letters if letter not in listed]
        twice = len(listed) != len(set(listed))
        if twice or any(sizes[letter.upper()] > 1 for letter in hidden):
            raise wrong("list of axes", listed, source.path, "those that are longer than 1")
        letters = listed.removesuffix("s")[:-2]
    elif squeeze or ours:
        letters = "".join(letter for letter in letters if sizes[letter.upper()] > 1)
    pages = tuple(sizes[letter.upper()] for letter in letters)
    text = letters + "yx" + "s" * (samples > 1)
    return Form(text, pages, (sizes["Y"], sizes["X"]), samples)


def _listed(document: Document, pixels: Pixels) -> str | None:
    """The letters of the axes that a file of ours lists, or None."""
    text = document.notes.get(f"Annotation:Axes:{pixels.number}") or document.letters
    text = text.lower()
    pages = "".join(letter for letter in text if letter in "tcz")
    return text if text.removesuffix("s") == f"{pages}yx" else None


def named(document: Document, source: Source) -> list[str]:
    """A name for each image: its well and field in a plate, its own name, or that of the file."""
    images = document.images
    if len(images) == 1 and images[0].identity not in document.wells:
        own = images[0].name if document.creator == RECORD else ""
        return [own or stem_of(source)]
    names = []
    for pixels in images:
        name = pixels.name if len(pixels.name) <= source.limits.name_bytes else ""
        if pixels.identity in document.wells:
            plate, row, column, field = document.wells[pixels.identity]
            above = f"plate{plate}/" if len(document.plates) > 1 else ""
            name = f"{above}{row}/{column}/{field}"
        names.append(name or f"image{pixels.number}")
    numbers: dict[str, int] = {}
    taken: set[str] = set()
    for at, name in enumerate(names):
        free, number = name, numbers.get(name, 1)
        while free in taken:
            number += 1
            free = f"{name} ({number})"
        numbers[name] = number
        taken.add(free)
        names[at] = free
    return names


def stem_of(source: Source) -> str:
    """The name of the file without its suffixes."""
    stem = source.stem
    return stem.removesuffix(".ome") or stem


def metadata_of(
    pixels: Pixels, form: Form, scaled: Form, notes: list[str], level: int = 0
) -> Metadata:
    """The axes, the space and the namespace of an image, or of one of its lower levels."""
    fields, samplings = pixels.fields, []
    starts = _starts(pixels, notes)
    factors = {
        letter: _factor(whole, part, level)
        for letter, whole, part in zip("yx", form.plane, scaled.plane, strict=True)
    }
    for letter in form.letters:
        word = _SIZES.get(letter, "")
        step = number_of(fields.get(word)) if word else None
        unit = fields.get(f"{word}Unit", "s" if letter == "t" else "\N{MICRO SIGN}m")
        step = step if step is not None and step > 0 else None
        units = _unit(unit) if step is not None else None
        start = starts.get(letter)
        if step is not None:
            factor = factors.get(letter, 1.0)
            if start is not None and factor != 1:
                start += step * (factor - 1) / 2
            step *= factor
        samplings.append(Sampling(step, start, units))
    labels, channels = _channels(pixels, form)
    axes, space = axes_from(
        form.letters, samplings, labels=labels, names=form.letters.upper(), samples=form.samples
    )
    own = with_channels(form.letters, channels)
    return Metadata(axes=axes, space=space, formats={NAMESPACE: own} if own else None)


def _factor(whole: int, part: int, level: int) -> float:
    """The factor by which a level is shorter, as a whole number if one gives its length.

    Halving level after level is tried first.
    """
    for near in (1 << level, round(whole / part)):
        if part in (whole // near, -(-whole // near)):
            return float(near)
    return whole / part


def _unit(word: str) -> str | None:
    """The unit of the core for a unit of OME; None for the reference frame."""
    return None if word == ANY else _READ.get(word, word)


def _starts(pixels: Pixels, notes: list[str]) -> dict[str, float]:
    """The position of the first plane along x, y, z; empty, with a note, if units differ."""
    starts = {}
    for letter in "xyz":
        axis = letter.upper()
        start = number_of(pixels.plane.get(f"Position{axis}"))
        if start is None:
            continue
        unit = _unit(pixels.plane.get(f"Position{axis}Unit", ANY))
        size = number_of(pixels.fields.get(f"PhysicalSize{axis}"))
        size_unit = _unit(pixels.fields.get(f"PhysicalSize{axis}Unit", "\N{MICRO SIGN}m"))
        size_unit = size_unit if size else None
        if unit != size_unit:
            notes.append(
                f"positions along {axis} are left out: they are in {unit or ANY}, sizes in "
                f"{size_unit or ANY}"
            )
            return {}
        starts[letter] = start
    return starts


def _channels(pixels: Pixels, form: Form) -> tuple[list[str] | None, list[dict[str, Any]]]:
    """The names of the channels, if all have one, and the other fields of each."""
    if "c" not in form.letters:
        return None, []
    count = form.pages[form.letters.index("c")]
    if len(pixels.channels) != count:
        return None, []
    names = [channel.get("Name", "") for channel in pixels.channels]
    rest: list[dict[str, Any]] = [
        {key: channel[key] for key in CHANNEL_FIELDS if key in channel}
        for channel in pixels.channels
    ]
    for entry in rest:
        if "Color" in entry:
            entry["color"] = _hex(entry.pop("Color"))
    return (names if all(names) else None), rest


def _hex(text: str) -> str:
    """A colour of OME-XML, a signed number RGBA, as RRGGBB; with AA unless it is opaque."""
    try:
        number = int(text) & 0xFFFFFFFF
    except ValueError:
        return "FFFFFF"
    word = f"{number:08X}"
    return word[:6] if word.endswith("FF") else word


def colour_of(text: Any) -> int | None:
    """The signed number of a colour RRGGBB or RRGGBBAA; None for other values."""
    word = text.lstrip("#") if isinstance(text, str) else ""
    if len(word) not in (6, 8) or not all(digit in "0123456789abcdefABCDEF" for digit in word):
        return None
    number = int(word.ljust(8, "F"), 16)
    return number - (1 << 32) if number >= 1 << 31 else number


# Writing ------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return text.translate(_NO_XML).encode("utf-8", "replace").decode()


def is_clean(text: str) -> bool:
    """True if XML can have all characters of a text."""
    return clean(text) == text and "\r" not in text


def document_of(arrays: Sequence[Array], letters: Sequence[str], plate: Any) -> str:
    """The OME-XML of images whose planes are consecutive pages of one file."""
    images, notes, ifd = [], [], 0
    for number, (array, text) in enumerate(zip(arrays, letters, strict=True)):
        sizes = dict(zip(text, array.dims[::-1], strict=True))
        planes = prod(sizes[letter] for letter in text if letter in "tcz")
        images.append(_image(number, array, text, sizes, ifd, planes))
        notes.append(_note(f"Axes:{number}", text))
        record = _record(number, array, text, sizes)
        notes += [_note(f"Record:{number}", roundtrip.text_of(record))] if record else []
        ifd += planes
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><OME xmlns="{SCHEMA}" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{SCHEMA} {SCHEMA}/ome.xsd" Creator="{RECORD}">'
        f"{plate}{''.join(images)}<StructuredAnnotations>{''.join(notes)}"
        "</StructuredAnnotations></OME>"
    )


def _note(identity: str, text: str) -> str:
    """An annotation of ours as XML."""
    return (
        f'<CommentAnnotation ID="Annotation:{identity}" Namespace="{RECORD}"><Value>'
        f"{escape(text)}</Value></CommentAnnotation>"
    )


def _image(
    number: int, array: Array, letters: str, sizes: dict[str, int], ifd: int, planes: int
) -> str:
    """An image as XML; its planes are the pages from `ifd` on."""
    samples, channels = sizes.get("s", 1), sizes.get("c", 1)
    pages = [letter.upper() for letter in letters[::-1] if letter in "tcz"]
    order = "".join(["XY", *pages, *(axis for axis in "ZCT" if axis not in pages)])
    kind = TYPES[array.element.kind, array.element.nbytes]
    fields = {"ID": f"Pixels:{number}", "DimensionOrder": order, "Type": kind}
    fields |= {f"Size{axis}": str(sizes.get(axis.lower(), 1)) for axis in "XYZCT"}
    fields["SizeC"] = str(samples * channels)
    plane = {}
    for letter, sampling in zip(letters, samplings_of(array), strict=True):
        unit = unit_of(letter, sampling)
        if unit is None:
            continue
        word = _SIZES[letter]
        if sampling.step is not None:
            fields[word] = repr(float(sampling.step))
            fields[f"{word}Unit"] = _ODD.get(unit, unit)
        if letter in "xyz" and sampling.start is not None:
            plane[f"Position{letter.upper()}"] = repr(float(sampling.start))
            plane[f"Position{letter.upper()}Unit"] = _ODD.get(unit, unit)
    names, rest = channels_of(array, letters)
    inside = "".join(
        _channel(number, at, samples, names, rest[at] if rest else {}) for at in range(channels)
    )
    text = clean(array.meta.description or "") if array.described else ""
    description = f"<Description>{escape(text, {chr(13): '&#13;'})}</Description>" if text else ""
    first = f'<Plane TheZ="0" TheC="0" TheT="0" {_listed_fields(plane)}/>' if plane else ""
    return (
        f'<Image ID="Image:{number}" Name={quoteattr(clean(array.name))}>{description}'
        f"<Pixels {_listed_fields(fields)}>{inside}"
        f'<TiffData IFD="{ifd}" PlaneCount="{planes}"/>{first}</Pixels></Image>'
    )


def unit_of(letter: str, sampling: Sampling) -> str | None:
    """The unit to write for the sampling along an axis; None if that is not written."""
    if letter in "xyz":
        if sampling.step is None or sampling.units is None:
            return ANY
        return sampling.units if sampling.units in LENGTHS else None
    if letter == "t":
        return sampling.units if sampling.units in TIMES else None
    return None


def _listed_fields(fields: dict[str, str]) -> str:
    """The attributes of an element as XML."""
    return " ".join(f"{key}={quoteattr(value)}" for key, value in fields.items())


def _channel(
    number: int, at: int, samples: int, names: list[str] | None, rest: dict[str, Any]
) -> str:
    """A channel as XML."""
    fields = {"ID": f"Channel:{number}:{at}", "SamplesPerPixel": str(samples)}
    if names and clean(names[at]):
        fields["Name"] = clean(names[at])
    colour = colour_of(rest.get("color"))
    if colour is not None:
        fields["Color"] = str(colour)
    fields |= {
        key: clean(rest[key]) for key in CHANNEL_FIELDS if isinstance(rest.get(key), str)
    }  # fmt: skip
    return f"<Channel {_listed_fields(fields)}/>"


def _record(number: int, array: Array, letters: str, sizes: dict[str, int]) -> dict[str, Any]:
    """The record of an array: the metadata that its image does not hold."""
    return record_of(array, metadata_as_read(number, array, letters, sizes), whole=True)


def metadata_as_read(number: int, array: Array, letters: str, sizes: dict[str, int]) -> Metadata:
    """The metadata that reading the image of an array gives."""
    from raconvert.files.limits import DEFAULT

    from .xml import parsed

    text = _image(number, array, letters, sizes, 0, 1)
    pixels = parsed(f'<OME Creator="{RECORD}">{text}</OME>', array.name, DEFAULT).images[0]
    pages = tuple(sizes[letter] for letter in letters if letter in "tcz")
    form = Form(letters, pages, (sizes["y"], sizes["x"]), sizes.get("s", 1))
    meta = metadata_of(pixels, form, form, [])
    return meta.replace(description=pixels.description or None)


def plate_of(names: Sequence[str], plate: Any) -> str:
    """The plate of images that are all in wells, A/1/0, as XML; empty for others."""
    from ..zarr.metadata import well_path

    if not isinstance(plate, dict) or not names:
        return ""
    wells: dict[tuple[int, int], list[str]] = {}
    for number, name in enumerate(names):
        path = well_path(name)
        if path is None:
            return ""
        row_name, column, field = path
        row = _row_number(row_name)
        if row is None or not column.isdecimal() or not int(column):
            return ""
        well = wells.setdefault((row, int(column) - 1), [])
        if field != str(len(well)):
            return ""
        well.append(
            f'<WellSample ID="WellSample:{number}" Index="{number}">'
            f'<ImageRef ID="Image:{number}"/></WellSample>'
        )
    title = plate.get("name")
    attribute = f" Name={quoteattr(clean(title))}" if isinstance(title, str) else ""
    inside = "".join(
        f'<Well ID="Well:{at}" Row="{row}" Column="{column}">{"".join(samples)}</Well>'
        for at, ((row, column), samples) in enumerate(wells.items())
    )
    return f'<Plate ID="Plate:0"{attribute}>{inside}</Plate>'


def _row_number(letters: str) -> int | None:
    """The number of a row, from 0, by its letters A to Z, AA, ...; None for other names."""
    if not letters.isalpha() or not letters.isupper() or len(letters) > 3:
        return None
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1
