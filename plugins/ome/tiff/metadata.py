"""An image of OME-XML as shape and metadata of an array, and back as XML.

Units are those of the schema; names are translated where the core has others (um, us, angstrom).
"""

from __future__ import annotations

from math import prod
from xml.sax.saxutils import escape, quoteattr

from raconvert.declared import Record
from raconvert.metadata import roundtrip
from raconvert.plugin import Metadata

from ...image.tiff.ome import SCHEMA, TYPES
from ..axes import NAMESPACE, Place, axes_from, channels_of, places_of, with_channels
from ..record import record_of
from .xml import CHANNEL_FIELDS, RECORD, number_of, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Array, Source

    from .xml import Document, Pixels

ANY = "reference frame"  # the unit of sizes whose unit is not known
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
    """The form of an image: letters, the lengths of its pages, its plane, samples of a pixel."""

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
    """The form of the array of an image: T, C, Z, Y, X, all of them; samples if there are any."""
    sizes, samples = pixels.sizes, page.samplesperpixel
    sizes["C"] //= samples
    letters = "tcz"
    ours = document.creator == RECORD
    listed = _listed(document, pixels) if ours else None
    if listed is not None:
        hidden = [one for one in letters if one not in listed]
        if sorted(listed) != sorted(set(listed)) or any(sizes[one.upper()] > 1 for one in hidden):
            raise wrong("list of axes", listed, source.path, "those that are longer than 1")
        letters = listed.removesuffix("s")[:-2]
    elif squeeze or ours:
        letters = "".join(one for one in letters if sizes[one.upper()] > 1)
    pages = tuple(sizes[one.upper()] for one in letters)
    text = letters + "yx" + "s" * (samples > 1)
    return Form(text, pages, (sizes["Y"], sizes["X"]), samples)


def _listed(document: Document, pixels: Pixels) -> str | None:
    """The letters that a file of ours lists."""
    text = document.notes.get(f"Annotation:Axes:{pixels.number}") or document.letters
    text = text.lower()
    order = "".join(one for one in text if one in "tcz")
    fits = text.removesuffix("s").endswith("yx") and text.removesuffix("s") == f"{order}yx"
    return text if fits and text else None


def named(document: Document, source: Source) -> list[str]:
    """A name for each image: the place in a plate, its own name, or that of the file."""
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
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[at] = f"{name} ({seen[name]})"
    return names


def stem_of(source: Source) -> str:
    """The natural name of the one image of a file."""
    stem = source.stem
    return stem.removesuffix(".ome") or stem


def metadata_of(
    pixels: Pixels, form: Form, scaled: Form, notes: list[str], level: int = 0
) -> Metadata:
    """The axes, the space and the namespace that OME tells of an image, or of a level of it."""
    fields, places = pixels.fields, []
    starts = _starts(pixels, notes)
    factors = {
        letter: _factor(whole, part, level)
        for letter, whole, part in zip("yx", form.plane, scaled.plane, strict=True)
    }
    for letter in form.letters:
        word = _SIZES.get(letter, "")
        step = number_of(fields.get(word)) if word else None
        unit = fields.get(f"{word}Unit", "s" if letter == "t" else "\N{MICRO SIGN}m")
        known = step is not None and step > 0
        units = _unit(unit) if known else None
        start = starts.get(letter)
        if step is not None and known:
            factor = factors.get(letter, 1.0)
            if start is not None and factor != 1:
                start += step * (factor - 1) / 2
            step *= factor
        places.append(Place(step if known else None, start, units))
    labels, channels = _channels(pixels, form)
    axes, space = axes_from(
        form.letters, places, labels=labels, names=form.letters.upper(), samples=form.samples
    )
    own = with_channels(form.letters, channels)
    return Metadata(axes=axes, space=space, formats={NAMESPACE: own} if own else None)


def _factor(whole: int, part: int, level: int) -> float:
    """The factor by which a level is shorter: a whole number if its length follows from one.

    That is the usual one, half of the level above, wherever it may be.
    """
    for near in (1 << level, round(whole / part)):
        if part in (whole // near, -(-whole // near)):
            return float(near)
    return whole / part


def _unit(word: str) -> str | None:
    return None if word == ANY else _READ.get(word, word)


def _starts(pixels: Pixels, notes: list[str]) -> dict[str, float]:
    """The position of the first plane along the axes; empty if its units are not those of sizes."""
    starts = {}
    for letter in "xyz":
        one = letter.upper()
        start = number_of(pixels.plane.get(f"Position{one}"))
        if start is None:
            continue
        unit = _unit(pixels.plane.get(f"Position{one}Unit", ANY))
        size = number_of(pixels.fields.get(f"PhysicalSize{one}"))
        wanted = _unit(pixels.fields.get(f"PhysicalSize{one}Unit", "\N{MICRO SIGN}m"))
        if unit != (wanted if size else None):
            notes.append(
                f"positions along {one} are left out: they are in {unit or ANY}, sizes in "
                f"{(wanted if size else None) or ANY}"
            )
            return {}
        starts[letter] = start
    return starts


def _channels(pixels: Pixels, form: Form) -> tuple[list[str] | None, list[dict[str, Any]]]:
    """The names of the channels, if all have one, and what else is kept of each."""
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
    """The signed number of a colour RRGGBB or RRGGBBAA; None for anything else."""
    word = text.lstrip("#") if isinstance(text, str) else ""
    if len(word) not in (6, 8) or not all(one in "0123456789abcdefABCDEF" for one in word):
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
    """The OME-XML of images whose planes follow each other in the pages of one file."""
    images, notes, ifd = [], [], 0
    for number, (array, text) in enumerate(zip(arrays, letters, strict=True)):
        sizes = dict(zip(text, array.dims[::-1], strict=True))
        planes = prod(sizes[one] for one in text if one in "tcz")
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
    return (
        f'<CommentAnnotation ID="Annotation:{identity}" Namespace="{RECORD}"><Value>'
        f"{escape(text)}</Value></CommentAnnotation>"
    )


def _image(
    number: int, array: Array, letters: str, sizes: dict[str, int], ifd: int, planes: int
) -> str:
    samples, channels = sizes.get("s", 1), sizes.get("c", 1)
    pages = [one.upper() for one in letters[::-1] if one in "tcz"]
    order = "".join(["XY", *pages, *(one for one in "ZCT" if one not in pages)])
    kind = TYPES[array.element.kind, array.element.nbytes]
    fields = {"ID": f"Pixels:{number}", "DimensionOrder": order, "Type": kind}
    fields |= {f"Size{one}": str(sizes.get(one.lower(), 1)) for one in "XYZCT"}
    fields["SizeC"] = str(samples * channels)
    plane = {}
    for letter, place in zip(letters, places_of(array), strict=True):
        known = sized(letter, place)
        if known is None:
            continue
        word = _SIZES[letter]
        if place.step is not None:
            fields[word] = repr(float(place.step))
            fields[f"{word}Unit"] = _ODD.get(known, known)
        if letter in "xyz" and place.start is not None:
            plane[f"Position{letter.upper()}"] = repr(float(place.start))
            plane[f"Position{letter.upper()}Unit"] = _ODD.get(known, known)
    names, rest = channels_of(array, letters)
    inside = "".join(
        _channel(number, at, samples, names, rest[at] if rest else {}) for at in range(channels)
    )
    said = clean(array.meta.description or "") if array.described else ""
    said = f"<Description>{escape(said, {chr(13): '&#13;'})}</Description>" if said else ""
    first = f'<Plane TheZ="0" TheC="0" TheT="0" {_listed_fields(plane)}/>' if plane else ""
    return (
        f'<Image ID="Image:{number}" Name={quoteattr(clean(array.name))}>{said}'
        f"<Pixels {_listed_fields(fields)}>{inside}"
        f'<TiffData IFD="{ifd}" PlaneCount="{planes}"/>{first}</Pixels></Image>'
    )


def sized(letter: str, place: Place) -> str | None:
    """The unit that is written of a place along an axis; None if it is not written."""
    if letter in "xyz":
        if place.step is None:
            return ANY
        return place.units if place.units in LENGTHS else ANY if place.units is None else None
    if letter == "t":
        return place.units if place.units in TIMES else None
    return None


def _listed_fields(fields: dict[str, str]) -> str:
    return " ".join(f"{key}={quoteattr(value)}" for key, value in fields.items())


def _channel(
    number: int, at: int, samples: int, names: list[str] | None, rest: dict[str, Any]
) -> str:
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
    """The record of an array: what reading its image would not give back."""
    return record_of(array, said_of(number, array, letters, sizes), whole=True)


def said_of(number: int, array: Array, letters: str, sizes: dict[str, int]) -> Metadata:
    """The metadata that reading the image of an array gives."""
    from raconvert.files.limits import DEFAULT

    from .xml import parsed

    text = _image(number, array, letters, sizes, 0, 1)
    pixels = parsed(f'<OME Creator="{RECORD}">{text}</OME>', array.name, DEFAULT).images[0]
    pages = tuple(sizes[one] for one in letters if one in "tcz")
    form = Form(letters, pages, (sizes["y"], sizes["x"]), sizes.get("s", 1))
    said = metadata_of(pixels, form, form, [])
    return said.replace(description=pixels.description or None)


def plate_of(names: Sequence[str], plate: Any) -> str:
    """The plate of images that all lie in wells, A/1/0, as XML; empty for others."""
    from ..zarr.metadata import well_path

    places = [well_path(name) for name in names]
    if not isinstance(plate, dict) or not places:
        return ""
    wells: dict[tuple[int, int], list[str]] = {}
    for number, place in enumerate(places):
        row = _row_number(place[0]) if place else None
        if place is None or row is None or not place[1].isdecimal() or not int(place[1]):
            return ""
        well = wells.setdefault((row, int(place[1]) - 1), [])
        if place[2] != str(len(well)):
            return ""
        well.append(
            f'<WellSample ID="WellSample:{number}" Index="{number}">'
            f'<ImageRef ID="Image:{number}"/></WellSample>'
        )
    title = plate.get("name")
    name = f" Name={quoteattr(clean(title))}" if isinstance(title, str) else ""
    inside = "".join(
        f'<Well ID="Well:{at}" Row="{row}" Column="{column}">{"".join(samples)}</Well>'
        for at, ((row, column), samples) in enumerate(wells.items())
    )
    return f'<Plate ID="Plate:0"{name}>{inside}</Plate>'


def _row_number(letters: str) -> int | None:
    if not letters.isalpha() or not letters.isupper() or len(letters) > 3:
        return None
    number = 0
    for one in letters:
        number = 26 * number + ord(one) - ord("A") + 1
    return number - 1
