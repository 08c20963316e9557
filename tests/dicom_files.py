"""DICOM files made by pydicom: series in any direction, multi-frame objects, broken ones.

No data of a person is in them: pixels are numbers that tell their place, names are made up.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

CT, MR, SC = (
    "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.7"
)  # fmt: skip
ENHANCED_CT, ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.2.1", "1.2.840.10008.5.1.4.1.1.4.1"
EXPLICIT, IMPLICIT = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2"
BIG, DEFLATED = "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99"
DIRECTIONS = {
    "axial": ((1, 0, 0), (0, 1, 0)),
    "sagittal": ((0, 1, 0), (0, 0, -1)),
    "coronal": ((1, 0, 0), (0, 0, -1)),
    "oblique": ((0.8, 0.6, 0.0), (-0.36, 0.48, -0.8)),
    "doubly oblique": ((0.48, 0.6, 0.64), (-0.8, 0.0, 0.6)),
    "upside down": ((-1, 0, 0), (0, 1, 0)),
}
ROOT = "1.2.826.0.1.3680043.8.498"  # of pydicom


def uid(*numbers: int) -> str:
    """A UID of numbers, so that files are the same each time."""
    return ".".join([ROOT, *map(str, numbers)])


def dataset(values: np.ndarray, *, sop: str = MR, number: int = 1, **more: Any) -> Any:
    """A data set with the pixels of one image, or of frames; `more` are elements by keyword."""
    from pydicom.dataset import Dataset

    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID = sop, uid(7, number)
    ds.StudyInstanceUID, ds.SeriesInstanceUID = uid(1), uid(2, 1)
    ds.FrameOfReferenceUID = uid(3)
    ds.Modality = {CT: "CT", ENHANCED_CT: "CT", SC: "OT"}.get(sop, "MR")
    ds.PatientName, ds.PatientID, ds.PatientBirthDate = "Nobody^Made Up", "0000", "19000101"
    ds.StudyDate, ds.StudyTime, ds.InstitutionName = "20000101", "120000", "Nowhere"
    ds.SeriesNumber, ds.InstanceNumber = 3, number
    ds.SeriesDescription = "made up"
    signed = values.dtype.kind == "i"
    samples = values.shape[-1] if values.ndim > 2 and more.get("SamplesPerPixel") == 3 else 1
    frame = values.shape[-3:-1] if samples > 1 else values.shape[-2:]
    ds.Rows, ds.Columns, ds.SamplesPerPixel = *frame, samples
    ds.PhotometricInterpretation = "RGB" if samples > 1 else "MONOCHROME2"
    if samples > 1:
        ds.PlanarConfiguration = 0
    ds.BitsAllocated = ds.BitsStored = 8 * values.dtype.itemsize
    ds.HighBit, ds.PixelRepresentation = ds.BitsStored - 1, int(signed)
    for keyword, value in more.items():
        setattr(ds, keyword, value)
    ds.PixelData = np.ascontiguousarray(values).tobytes() + b"\0" * (values.nbytes % 2)
    return ds


def save(ds: Any, path: Path, syntax: str = EXPLICIT, *, bare: bool = False) -> Path:
    """Write a data set to a file; `bare`: without preamble and group 0002."""
    from pydicom.dataset import FileMetaDataset

    implicit, little = syntax == IMPLICIT, syntax != BIG
    path.parent.mkdir(parents=True, exist_ok=True)
    if bare:
        ds.save_as(path, implicit_vr=implicit, little_endian=little)
        return path
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    if not little:  # pydicom writes pixels as they are
        width = max(2, ds.BitsAllocated // 8)  # bytes lie in words of 16 bits
        ds.PixelData = np.frombuffer(ds.PixelData, f"u{width}").byteswap().tobytes()
    ds["PixelData"].VR = "OW"
    ds.save_as(path, enforce_file_format=True)
    return path


def places(
    direction: str, count: int, *, gap: float = 2.5, origin: Any = (-11.5, 7.25, 30.0)
) -> tuple[list[float], np.ndarray]:
    """Direction cosines, and the position of each slice along the normal."""
    row, column = (np.array(one, float) for one in DIRECTIONS[direction])
    normal = np.cross(row, column)
    positions = np.array(origin) + gap * np.arange(count)[:, None] * normal
    return [*row, *column], positions


def volume(shape: tuple[int, ...], dtype: str, bits: int | None = None, seed: int = 0) -> Any:
    """Numbers over the whole range of a type, or of the bits of it that are used."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    bits = bits or 8 * kind.itemsize
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.kind == "i" else (0, (1 << bits) - 1)
    )
    values = rng.integers(low, high, shape, dtype=np.int64, endpoint=True)
    values.flat[0], values.flat[-1] = low, high
    return values.astype(kind)


def series(
    folder: Path, values: np.ndarray, direction: str = "axial", *, sop: str = MR,
    order: Any = None, syntax: str = EXPLICIT, gap: float = 2.5, each: Any = None, start: int = 1,
    **more: Any,
) -> list[Path]:  # fmt: skip
    """Write a series of slices and return the files, whose names and numbers are in `order`.

    `each` is a function from the number of a slice to elements of its own.
    """
    cosines, positions = places(direction, len(values), gap=gap)
    paths = []
    for number, slice_ in enumerate(np.arange(len(values)) if order is None else order):
        own = each(int(slice_)) if each else {}
        spacing = {"PixelSpacing": [0.75, 1.25], "SliceThickness": gap}
        place = {"ImagePositionPatient": [*map(float, positions[slice_].round(10))],
                 "ImageOrientationPatient": cosines}  # fmt: skip
        ds = dataset(values[slice_], sop=sop, number=start + number,
                     **{**spacing, **place, **more, **own})  # fmt: skip
        paths.append(save(ds, folder / f"IM{start + number:04}", syntax))
    return paths


def enhanced(path: Path, values: np.ndarray, direction: str = "axial", **more: Any) -> Path:
    """An enhanced object: a functional group for each frame, the others shared."""
    from pydicom.dataset import Dataset

    order = more.pop("order", range(len(values)))
    slopes = more.pop("slopes", [1.0] * len(values))
    cosines, positions = places(direction, len(values))
    ds = dataset(values[list(order)], sop=more.pop("sop", ENHANCED_MR), **more)
    ds.NumberOfFrames = len(values)
    shared, measures, plane = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.75, 1.25], 2.5
    plane.ImageOrientationPatient = cosines
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [plane]
    ds.SharedFunctionalGroupsSequence = [shared]
    groups = []
    for slice_ in order:
        group, place, content, scale = Dataset(), Dataset(), Dataset(), Dataset()
        place.ImagePositionPatient = [*map(float, positions[slice_].round(10))]
        content.StackID, content.InStackPositionNumber = "1", int(slice_) + 1
        scale.RescaleSlope, scale.RescaleIntercept = slopes[slice_], 0.0
        scale.RescaleType = "US"
        group.PlanePositionSequence, group.FrameContentSequence = [place], [content]
        group.PixelValueTransformationSequence = [scale]
        groups.append(group)
    ds.PerFrameFunctionalGroupsSequence = groups
    return save(ds, path)


def csa(**said: list[str]) -> bytes:
    """A private header of Siemens, of the second version."""
    raw = b"SV10" + bytes(4) + len(said).to_bytes(4, "little") + (77).to_bytes(4, "little")
    for name, texts in said.items():
        raw += name.encode().ljust(64, b"\0") + len(texts).to_bytes(4, "little") + b"FD\0\0"
        raw += bytes(4) + len(texts).to_bytes(4, "little") + (77).to_bytes(4, "little")
        for text in texts:
            data = text.encode() + b"\0"
            raw += b"".join(n.to_bytes(4, "little") for n in (0, len(data), 77, 0))
            raw += data + b"\0" * (-len(data) % 4)
    return raw


def mosaic(path: Path, values: np.ndarray, direction: str, private: bytes, **more: Any) -> Path:
    """One file with the slices of a volume as tiles, as Siemens writes it."""
    count, rows, columns = values.shape
    across = int(np.ceil(np.sqrt(count)))
    whole = np.zeros((across * rows, across * columns), values.dtype)
    for number, slice_ in enumerate(values):
        top, left = divmod(number, across)
        whole[top * rows : (top + 1) * rows, left * columns : (left + 1) * columns] = slice_
    cosines, positions = places(direction, count)
    right, down = np.array(cosines[:3]), np.array(cosines[3:])
    centre = positions[0] - right * 1.25 * (across - 1) * columns / 2
    centre -= down * 0.75 * (across - 1) * rows / 2
    ds = dataset(
        whole, ImageType=["ORIGINAL", "PRIMARY", "M", "MOSAIC"], PixelSpacing=[0.75, 1.25],
        SpacingBetweenSlices=2.5, ImageOrientationPatient=cosines,
        ImagePositionPatient=[round(float(one), 8) for one in centre], **more,
    )  # fmt: skip
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x10, "OB", private)
    return save(ds, path)


# Bytes, for files that no library writes ---------------------------------------------------------

UNDEFINED = 0xFFFFFFFF
LONG = (b"OB", b"OW", b"OF", b"OD", b"SQ", b"UN", b"UT", b"OV")


def element(tag: int, vr: bytes, value: bytes, nbytes: int | None = None) -> bytes:
    """An element of explicit representation, little-endian; `nbytes` is what it says it has."""
    nbytes = len(value) if nbytes is None else nbytes
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF) + vr
    return head + struct.pack("<2xI" if vr in LONG else "<H", nbytes) + value


def item(data: bytes, nbytes: int | None = None) -> bytes:
    """An item of a sequence, or a fragment."""
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(data) if nbytes is None else nbytes) + data


def ended(sequence: bool) -> bytes:
    return struct.pack("<HHI", 0xFFFE, 0xE0DD if sequence else 0xE00D, 0)


def short(number: int) -> bytes:
    return struct.pack("<H", number)


IMAGE = {
    0x00080060: (b"CS", b"MR"), 0x00280002: (b"US", short(1)),
    0x00280004: (b"CS", b"MONOCHROME2 "), 0x00280010: (b"US", short(2)),
    0x00280011: (b"US", short(3)), 0x00280100: (b"US", short(16)),
    0x00280101: (b"US", short(16)), 0x00280102: (b"US", short(15)),
    0x00280103: (b"US", short(0)),
}  # fmt: skip


def raw(*more: bytes, pixels: bytes | None = None, syntax: str = EXPLICIT, **changed: Any) -> bytes:
    """A file of two rows and three columns of uint16; `changed` has values by ``x00280010``.

    `more` comes before the pixels, which are an element.
    """
    elements = {**IMAGE}
    for name, value in changed.items():
        tag = int(name[1:], 16)
        elements.pop(tag, None)
        if value is not None:
            vr = IMAGE.get(tag, (b"DS", b""))[0]
            elements[tag] = value if isinstance(value, tuple) else (vr, value)
    uid_ = syntax.encode() + b"\0" * (len(syntax) % 2)
    data = b"".join(element(tag, *elements[tag]) for tag in sorted(elements))
    pixels = element(0x7FE00010, b"OW", bytes(12)) if pixels is None else pixels
    return bytes(128) + b"DICM" + element(0x00020010, b"UI", uid_) + data + b"".join(more) + pixels


def fragments(*data: bytes, table: bytes = b"") -> bytes:
    """The element of encoded pixels."""
    return element(0x7FE00010, b"OB", b"".join(map(item, (table, *data))), UNDEFINED) + ended(True)


def deflated(dataset: bytes) -> bytes:
    """A file whose data set is deflated."""
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    uid_ = DEFLATED.encode()
    head = bytes(128) + b"DICM" + element(0x00020010, b"UI", uid_ + b"\0" * (len(uid_) % 2))
    return head + press.compress(dataset) + press.flush()
