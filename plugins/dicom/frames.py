"""The frames of a file: position, scale, and the keys that distinguish frames of one position.

A file has one frame, or several: frames of enhanced objects have functional groups, those of a dose
an offset along the normal; those of others have no position of their own.
"""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge

from .form import Form, form_of
from .modality import lut_of
from .mosaic import Mosaic, is_mosaic, mosaic_of, positions_of
from .tables import (
    ACQUISITION_DATE_TIME,
    ACQUISITION_NUMBER,
    ACQUISITION_TIME,
    B_VALUE,
    CONTENT_TIME,
    DIFFUSION,
    DOSE_SCALING,
    ECHO,
    ECHO_NUMBER,
    ECHO_TIME,
    EFFECTIVE_ECHO_TIME,
    FRAME_CONTENT,
    FRAME_DATE_TIME,
    FRAME_GROUPS,
    FRAME_OF_REFERENCE,
    FRAME_TYPE,
    GRADIENT,
    GRADIENTS,
    IMAGE_TYPE,
    IMAGER_SPACING,
    INSTANCE_NUMBER,
    INTERCEPT,
    MODALITY,
    MR_FRAME_TYPE,
    OFFSETS,
    ORIENTATION,
    PIXEL_MEASURES,
    PIXEL_SPACING,
    PLANE_ORIENTATION,
    PLANE_POSITION,
    POSITION,
    SEGMENT,
    SEGMENT_ID,
    SERIES,
    SHARED_GROUPS,
    SLICE_THICKNESS,
    SLOPE,
    SPACING_BETWEEN,
    STACK,
    TEMPORAL_INDEX,
    TEMPORAL_POSITION,
    TRANSFORMATION,
    TRIGGER_TIME,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .header import Data, Header
    from .modality import Lut

    Vector = tuple[float, float, float]

NEAR = 1e-3  # tolerance of direction cosines, as a part of a unit vector


class Frame(Record):
    """One frame: the numbers of its file and of its pixels in it.

    `keys` are values by name that may distinguish it from other frames of the same position.
    """

    file: int
    number: int
    position: Vector | None
    directions: tuple[Vector, Vector] | None  # along a row, and along a column
    spacing: tuple[float, float] | None  # of rows, and of columns
    between: float | None  # distance of slices by the header
    slope: float
    intercept: float
    instance: float | None
    stack: str
    keys: dict[str, Any]

    @property
    def normal(self) -> Vector | None:
        """The direction across the frame, or None without directions."""
        return None if self.directions is None else cross(*self.directions)


class File(Record):
    """A file with pixels: its form, its frames, and the properties that decide on its series."""

    header: Header
    form: Form
    frames: list[Frame]
    series: str
    world: str  # the frame of reference of positions
    modality: str
    placed: bool  # has positions
    per_frame: bool  # each frame has its own functional groups
    lut: Lut | None  # its table of the modality


# Keys that distinguish frames of one position, in the order of trying: the name, which
# is that of the axis, the tag, and the functional group that has it.
KEYS: tuple[tuple[str, int, int | None], ...] = (
    ("temporal position", TEMPORAL_POSITION, None),
    ("temporal position", TEMPORAL_INDEX, FRAME_CONTENT),
    ("segment", SEGMENT, SEGMENT_ID),
    ("echo time", ECHO_TIME, None),
    ("echo time", EFFECTIVE_ECHO_TIME, ECHO),
    ("echo", ECHO_NUMBER, None),
    ("b-value", B_VALUE, None),
    ("b-value", B_VALUE, DIFFUSION),
    ("trigger time", TRIGGER_TIME, None),
    ("acquisition", ACQUISITION_NUMBER, None),
)
GRADIENT_KEY, KIND_KEY = "gradient", "image type"  # a direction, and words
TIMES = (
    ("acquisition time", FRAME_DATE_TIME, FRAME_CONTENT),
    ("acquisition time", ACQUISITION_TIME, None),
    ("acquisition time", ACQUISITION_DATE_TIME, None),
    ("content time", CONTENT_TIME, None),
)


def file_of(header: Header, number: int, colours: str) -> File:
    """The file of a header with pixels. Raises `Corrupt`, `Unsupported` and `TooLarge`."""
    form, count = form_of(header, colours)
    _check_count(header, form, count)
    groups = header.items(FRAME_GROUPS)
    if groups and len(groups) != count:
        raise Corrupt(
            "has not a functional group for each frame", path=header.path, expected=count,
            got=len(groups),
        )  # fmt: skip
    frames = [*_frames(header, number, count, groups)]
    mosaic = mosaic_of(header, form) if count == 1 else None
    if mosaic is not None:
        frames = _tiles(mosaic, frames[0], form)
        tiles = mosaic.across
        form = form._replace(rows=form.rows // tiles, columns=form.columns // tiles, across=tiles)
    elif is_mosaic(header):
        frames = [frame._replace(position=None, directions=None) for frame in frames]
    series = header.text(SERIES)
    return File(
        header, form, frames, series, header.text(FRAME_OF_REFERENCE), header.text(MODALITY),
        any(frame.position is not None for frame in frames), bool(groups), lut_of(header, form),
    )  # fmt: skip


def _check_count(header: Header, form: Form, count: int) -> None:
    """Raise `Corrupt` for more frames than the file can hold, `TooLarge` above `Limits.nodes`."""
    pixels, most = header.pixels, header.source.limits.nodes
    if count > most:
        raise TooLarge(
            "has very many frames", path=header.path, got=count, expected=f"at most {most}",
            remedy="let another program cut it into several files",
        )  # fmt: skip
    if pixels is None or pixels.nbytes is None:
        # Each frame is in a fragment of its own, at least.
        if pixels is not None and 8 * count > header.source.size - pixels.offset:
            raise Corrupt(
                "has fewer fragments than frames", path=header.path, expected=count,
                got=f"{max(0, header.source.size - pixels.offset)} bytes",
            )  # fmt: skip
        return
    whole = -(-form.size * count * form.allocated // 8)
    size = header.source.size if header.inflated is None else header.inflated.most
    if whole > pixels.nbytes or pixels.offset + pixels.nbytes > size:
        raise Corrupt(
            "pixels are cut off", path=header.path, where=f"byte {pixels.offset}", expected=whole,
            got=min(pixels.nbytes, max(0, size - pixels.offset)),
            remedy="copy the file again; it is cut off, or its header is wrong",
        )  # fmt: skip


def _frames(header: Header, number: int, count: int, groups: list[Data]) -> Iterator[Frame]:
    """Yield the frames of a file, in the order of their pixels."""
    shared = header.item(SHARED_GROUPS)
    offsets = header.numbers(OFFSETS)
    if not groups and count > 1 and offsets and len(offsets) != count:
        raise header.wrong(
            OFFSETS, "does not have an offset for each frame", len(offsets), str(count)
        )
    frame: Frame | None = None
    for index in range(count):
        if groups or frame is None:
            frame = _frame(_Attributes(header, shared, groups[index] if groups else None), number)
        position, directions = frame.position, frame.directions
        if not groups and count > 1 and position is not None and directions is not None:
            position = _moved(position, directions, offsets[index], offsets[0]) if offsets else None
        yield frame._replace(number=index, position=position)


def _frame(attributes: _Attributes, number: int) -> Frame:
    """The frame with these attributes, as the first one of file `number`."""
    position, directions = attributes.position(), attributes.directions()
    slope, intercept = attributes.scale()
    return Frame(
        number, 0, position if directions is not None else None, directions, attributes.spacing(),
        attributes.between(), slope, intercept, attributes.header.optional_number(INSTANCE_NUMBER),
        attributes.text(STACK, FRAME_CONTENT), attributes.keys(),
    )  # fmt: skip


def _tiles(mosaic: Mosaic, whole: Frame, form: Form) -> list[Frame]:
    """The tiles of an image as frames, with positions if the header has them."""
    positions: list[Vector] | list[None] = [None] * mosaic.tiles
    if whole.position and whole.directions and whole.spacing and whole.between:
        positions = positions_of(
            mosaic, form, whole.position, whole.directions, whole.spacing, whole.between
        )
    return [whole._replace(number=n, position=position) for n, position in enumerate(positions)]


def _moved(start: Vector, directions: tuple[Vector, Vector], offset: float, first: float) -> Vector:
    """The position of a frame of a dose: by an offset along the normal, or an absolute z."""
    normal = cross(*directions)
    step = offset if first == 0 else offset - start[2]
    along = normal if first == 0 else (0.0, 0.0, 1.0)
    return tuple(p + step * n for p, n in zip(start, along, strict=True))  # type: ignore[return-value]


def cross(a: Vector, b: Vector) -> Vector:
    """The cross product of two vectors.

    >>> cross((1, 0, 0), (0, 1, 0))
    (0, 0, 1)
    """
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


class _Attributes:
    """The attributes of one frame: of its functional groups, the shared ones, or the header."""

    def __init__(self, header: Header, shared: Data | None, own: Data | None) -> None:
        self.header = header
        self.groups = [data for data in (own, shared) if data is not None]

    def among(self, group: int | None) -> Iterator[Data]:
        """Yield the data sets that may hold an element of a functional group, its own first."""
        if group is not None:
            for data in self.groups:
                if (item := data.item(group)) is not None:
                    yield item
        yield self.header

    def numbers(self, tag: int, group: int | None, count: int) -> tuple[float, ...] | None:
        """The `count` numbers of an element, or None. Raises `Corrupt` for another count."""
        for data in self.among(group):
            if numbers := data.numbers(tag):
                if len(numbers) != count:
                    raise data.wrong(tag, "has another number of values", len(numbers), str(count))
                return numbers
        return None

    def text(self, tag: int, group: int | None) -> str:
        """The text of an element; empty if there is none."""
        return next(filter(None, (data.text(tag) for data in self.among(group))), "")

    def position(self) -> Vector | None:
        return self.numbers(POSITION, PLANE_POSITION, 3)  # type: ignore[return-value]

    def directions(self) -> tuple[Vector, Vector] | None:
        cosines = self.numbers(ORIENTATION, PLANE_ORIENTATION, 6)
        if cosines is None:
            return None
        row, column = cosines[:3], cosines[3:]
        squares = [sum(cosine * cosine for cosine in vector) for vector in (row, column)]
        across = sum(a * b for a, b in zip(row, column, strict=True))
        if max(abs(square - 1) for square in squares) > 2 * NEAR or abs(across) > NEAR:
            raise self.header.wrong(
                ORIENTATION, "is not two unit vectors at a right angle", list(cosines)
            )
        return row, column  # type: ignore[return-value]

    def spacing(self) -> tuple[float, float] | None:
        lengths = self.numbers(PIXEL_SPACING, PIXEL_MEASURES, 2)
        lengths = lengths or self.numbers(IMAGER_SPACING, None, 2)
        if lengths is not None and min(lengths) <= 0:
            raise self.header.wrong(PIXEL_SPACING, "is not two lengths", list(lengths))
        return lengths  # type: ignore[return-value]

    def between(self) -> float | None:
        for tag in (SPACING_BETWEEN, SLICE_THICKNESS):
            distances = self.numbers(tag, PIXEL_MEASURES, 1)
            if distances and distances[0] > 0:
                return distances[0]
        return None

    def gradient(self) -> tuple[float, ...]:
        """The direction of the diffusion gradient; empty if there is none."""
        for data in self.among(DIFFUSION):
            if gradient := (data.item(GRADIENTS) or data).numbers(GRADIENT):
                return gradient
        return ()

    def scale(self) -> tuple[float, float]:
        """Slope and intercept. Raises `Corrupt` for a slope of zero."""
        if (dose := self.header.number(DOSE_SCALING)) is not None:
            return dose, 0.0
        slope = self.numbers(SLOPE, TRANSFORMATION, 1) or (1.0,)
        intercept = self.numbers(INTERCEPT, TRANSFORMATION, 1) or (0.0,)
        if slope[0] == 0:
            raise self.header.wrong(SLOPE, "is zero", 0)
        return slope[0], intercept[0]

    def keys(self) -> dict[str, Any]:
        """The values of all `KEYS`, of gradient, kind and `TIMES`, if the frame has them."""
        keys: dict[str, Any] = {}
        for name, tag, group in KEYS:
            for data in self.among(group):
                if name not in keys and (value := data.optional_number(tag)) is not None:
                    keys[name] = value
        if "b-value" in keys:
            keys[GRADIENT_KEY] = self.gradient()
        if kind := self.text(FRAME_TYPE, MR_FRAME_TYPE) or self.header.text(IMAGE_TYPE):
            keys[KIND_KEY] = kind.replace("\\", " ")
        for name, tag, group in TIMES:
            for data in self.among(group):
                if name not in keys and (text := data.text(tag)):
                    seconds = seconds_of(text)
                    if seconds is not None:
                        keys[name] = seconds
        return keys


def seconds_of(text: str) -> float | None:
    """The seconds of a time in its day, or of date and time since the year 1; None for other text.

    >>> seconds_of("010203.5")
    3723.5
    """
    text = text.partition("+")[0].replace(":", "")
    whole, _, part = text.partition(".")
    if not whole.isdecimal() or not whole.isascii() or (part and not part.isdecimal()):
        return None
    days = 0
    if len(whole) >= 8:  # a date in front
        from datetime import date

        try:
            days = date(int(whole[:4]), int(whole[4:6]), int(whole[6:8])).toordinal()
        except ValueError:
            return None
        whole = whole[8:]
    hours, minutes, seconds = (int(whole[at : at + 2] or 0) for at in (0, 2, 4))
    whole_seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole_seconds + (float(f"0.{part}") if part else 0.0)
