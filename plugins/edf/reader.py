"""From a file to a bundle: an array for each signal, or each group of them, and annotations."""

from __future__ import annotations

from math import isnan, nan

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, counted, listed, worded
from raconvert.plugin import Array, Axis, Bundle, Element, Metadata, element

from .annotations import Annotations, read_annotations
from .header import Header, Signal, read_header
from .metadata import (
    group_metadata,
    kept,
    kinds_of,
    left_out,
    scale_of,
    signal_metadata,
    start_of,
    time_axis,
)
from .tables import NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.files.source import Source

__all__ = ["read"]

GROUP = "annotations"
RECORDS = "records/onset"
TAKEN = ("annotations", "records")  # names of groups, which no signal has


def read(
    source: Source, *, layout: str = "signals", records: str = "said", keep_tags: str = ""
) -> Bundle:
    """Read the signals, lazily, and the annotations.

    Raises `Corrupt`, `TooLarge`, `Unsupported`, and `UsageError` for a wrong option.
    """
    kinds = kinds_of(keep_tags)
    header = read_header(source, records)
    listed, problem = _annotations(source, header)
    timing = _Timing(source, header, listed)
    make = _groups if layout == "channels" else _signals
    arrays = [*make(source, header, timing)]
    if timing.by_record:
        arrays.append(_numbers(RECORDS, timing.starts, Metadata(units="s", axes=[Axis("record")])))
    if problem is not None:
        arrays.append(Array.unreadable(GROUP, problem))
    elif listed is not None and listed.texts:
        arrays += _annotated(source, listed)
    if not arrays:
        raise Unsupported("holds neither signals nor annotations", path=source.path)
    attributes: dict[str, Any] = {}
    notes = [*header.notes, *timing.notes, *(listed.notes() if listed is not None else [])]
    start = start_of(header)
    if start is None:
        notes.append(f"start is not a date and time: {f'{header.date} {header.time}'!r}")
    else:
        attributes["start"] = start
    attributes |= kept(header, kinds, notes)
    if line := left_out(header, kinds):
        notes.append(worded(line))
    notes += _ranges(header)
    return Bundle(
        some_sound(arrays), attributes=attributes, notes=notes,
        formats={NAMESPACE: {"type": header.kind, "record_duration": float(header.duration)}},
    )  # fmt: skip


def _annotations(
    source: Source, header: Header
) -> tuple[Annotations | None, RaconvertError | None]:
    """Return the annotations and None, or None and the error because of which they are left out.

    The error is raised if the file is discontinuous, since only they say when its records begin.
    """
    try:
        return read_annotations(source, header), None
    except RaconvertError as error:
        if header.is_discontinuous or not isinstance(error, Corrupt | TooLarge):
            raise
        return None, error


# When records begin ------------------------------------------------------------------------------


class _Timing:
    """The onsets of records.

    `by_record` is True if records do not follow each other; else `origin` is the first onset.
    """

    def __init__(self, source: Source, header: Header, listed: Annotations | None) -> None:
        self.starts: Sequence[float] = listed.starts if listed is not None else []
        self.path = source.path
        self.by_record = False
        self.notes: list[str] = []
        first = self.starts[0] if self.starts else nan
        self.origin = None if isnan(first) or not first else first
        gap = self._gap(header)
        if header.is_discontinuous:
            self._discontinuous(header, gap)
        elif gap is not None:
            self.notes.append(
                f"records follow each other, as the header says, but record {gap + 1} says that it "
                f"begins at {self.starts[gap]:g} s"
            )

    def _gap(self, header: Header) -> int | None:
        """Return the first record that does not begin where the one before it ends, or None."""
        samples = [signal.samples for signal in header.signals if not signal.is_annotations]
        step = float(header.duration)
        near = step / max([1, *samples]) / 2  # half the time between two samples
        for number, start in enumerate(self.starts):
            if not isnan(start) and abs(start - self.starts[0] - number * step) > near:
                return number
        return None

    def _discontinuous(self, header: Header, gap: int | None) -> None:
        """Set `by_record` for EDF+D with a gap. Raises `Corrupt` for a record without an onset."""
        missing = next((n for n, start in enumerate(self.starts) if isnan(start)), None)
        if header.records and (missing is not None or not self.starts):
            raise Corrupt(
                "records of EDF+D do not say when they begin", path=self.path,
                expected="an onset in each record", got=f"none in record {(missing or 0) + 1}",
            )  # fmt: skip
        if gap is None:
            return
        self.by_record = True
        self.origin = None
        self.notes.append(
            f"records do not follow each other (record {gap + 1} begins at {self.starts[gap]:g} "
            f"s): signals are (record, time), '{RECORDS}' says when each begins"
        )

    def axes(self, header: Header, samples: int, most_labels: int) -> list[Axis]:
        """Return the axes of a signal; onsets of at most `most_labels` records are labels."""
        axis = time_axis(header, samples, self.origin)
        if not self.by_record:
            return [axis]
        labels = [*self.starts] if len(self.starts) <= most_labels else None
        return [Axis("record", units="s", labels=labels), axis]


# Signals -----------------------------------------------------------------------------------------


def _signals(source: Source, header: Header, timing: _Timing) -> Iterator[Array]:
    """Yield an array for each signal."""
    signals = [signal for signal in header.signals if not signal.is_annotations]
    names = _names([signal.label or "signal" for signal in signals])
    pairs = zip(names, signals, strict=True)
    if changed := [name for name, signal in pairs if name != signal.label]:
        what = "labels that cannot be names of arrays, or are there twice"
        header.notes.append(f"{what}: {listed(changed)}")
    for name, signal in zip(names, signals, strict=True):
        axes = timing.axes(header, signal.samples, source.limits.axis_labels)
        yield _array(source, header, [signal], name, signal_metadata(signal, axes, name=name),
                     timing.by_record)  # fmt: skip


def _groups(source: Source, header: Header, timing: _Timing) -> Iterator[Array]:
    """Yield an array (channel, time) for the signals of each rate and unit."""
    groups: dict[tuple[int, str, bool], list[Signal]] = {}
    for signal in header.signals:
        if not signal.is_annotations:
            key = signal.samples, signal.unit, scale_of(signal) is None
            groups.setdefault(key, []).append(signal)
    titles = ["channels"] if len(groups) == 1 else [_title(header, *key) for key in groups]
    for name, signals in zip(_names(titles), groups.values(), strict=True):
        axes = timing.axes(header, signals[0].samples, source.limits.axis_labels)
        axes = [Axis("channel", labels=[signal.label for signal in signals]), *axes]
        yield _array(source, header, signals, name, group_metadata(signals, axes),
                     timing.by_record, by_channel=True)  # fmt: skip


def _title(header: Header, samples: int, unit: str, raw: bool) -> str:
    """Return the name of a group of channels, by what they have in common."""
    rate = f"{float(samples / header.duration):g} Hz" if header.duration else f"{samples} samples"
    return " ".join(filter(None, ["channels", rate, unit, "without a scale" * raw]))


def _names(labels: Sequence[str]) -> list[str]:
    """Return a name of its own for each label: a number is added to one that is taken.

    >>> _names(["Fp1", "C3/A2", "Fp1"])
    ['Fp1', 'C3_A2', 'Fp1 2']
    """
    taken, numbers, names = {*TAKEN}, dict[str, int](), []
    for label in labels:
        base = label.replace("/", "_")
        name = base
        while name in taken:
            numbers[base] = numbers.get(base, 1) + 1
            name = f"{base} {numbers[base]}"
        taken.add(name)
        names.append(name)
    return names


def _array(
    source: Source, header: Header, signals: Sequence[Signal], name: str, meta: Metadata,
    by_record: bool, *, by_channel: bool = False,
) -> Array:  # fmt: skip
    """Return the array of signals of one length; an extent if its samples are contiguous."""
    samples = signals[0].samples
    shape: tuple[int, ...] = (header.records * samples,)
    if by_record:
        shape = (header.records, samples)
    if by_channel:
        shape = (len(signals), *shape)
    kind = element("int", 2 if header.width == 2 else 4)
    fields: dict[str, Any] = {"name": name, "meta": meta, "index_order": "C"}
    is_mapped = header.width == 2 and len(signals) == 1
    is_contiguous = samples * header.width == header.record_bytes or header.records == 1
    if is_mapped and is_contiguous:
        nbytes = header.records * samples * header.width
        fields["extent"] = source.extent(header.begin + signals[0].offset, nbytes)
    else:
        fields["data"] = lambda: _samples(source, header, signals, by_channel, by_record)
    array = Array(kind, shape[::-1], **fields)
    array.storage["records"] = header.records
    return array


def _samples(
    source: Source, header: Header, signals: Sequence[Signal], by_channel: bool, by_record: bool
) -> Any:
    from .values import Samples

    return Samples(source, header, signals, by_channel=by_channel, by_record=by_record)


def _ranges(header: Header) -> list[str]:
    """Return notes on ranges that give no scale, or an odd one."""
    signals = [signal for signal in header.signals if not signal.is_annotations]
    unscaled = [repr(signal.label) for signal in signals if scale_of(signal) is None]
    turned = [repr(signal.label) for signal in signals
              if signal.digital is not None and signal.digital[0] > signal.digital[1]]  # fmt: skip
    lines = []
    if unscaled:
        lines.append(f"{counted(len(unscaled), 'signal')} without a physical or digital range, so "
                     f"that values have no scale: {listed(unscaled)}")  # fmt: skip
    if turned:
        lines.append(f"digital minimum above the maximum, taken as it stands: {listed(turned)}")
    return lines


# Annotations -------------------------------------------------------------------------------------


def _numbers(name: str, values: Sequence[float], meta: Metadata) -> Array:
    """Return an array of float64."""
    import numpy as np

    return Array(
        element("float", 8), (len(values),), name=name, index_order="C", meta=meta,
        data=lambda: np.array(values, "<f8"),
    )  # fmt: skip


def _annotated(source: Source, listed: Annotations) -> list[Array]:
    """Return the arrays of onset, duration and text of the annotations."""
    axes = [Axis("annotation")]
    seconds = Metadata(units="s", axes=axes)
    width = max(map(len, listed.texts)) or 1
    text = Array(
        Element("user", width, "|", f"|S{width}"), (len(listed.texts),), name=f"{GROUP}/text",
        index_order="C", meta=Metadata(axes=axes, encoding="utf-8"),
        data=lambda: _texts(source, listed.texts, width),
    )  # fmt: skip
    return [_numbers(f"{GROUP}/onset", listed.onsets, seconds),
            _numbers(f"{GROUP}/duration", listed.durations, seconds), text]  # fmt: skip


def _texts(source: Source, texts: list[bytes], width: int) -> Any:
    """Return the array source of the texts of annotations, of `width` bytes each."""
    import numpy as np

    from raconvert.arrays.sources import Decoded

    class Texts(Decoded):
        def stream(self, max_bytes: int) -> Iterator[Any]:
            step = max(1, max_bytes // width)
            for first in range(0, len(texts), step):
                yield np.array(texts[first : first + step], self.dtype)

    return Texts(
        (len(texts),), np.dtype(f"|S{width}"), what=f"'{source.path}': texts of annotations",
        max_memory=source.max_memory,
    )  # fmt: skip
