"""The metadata of arrays and of the file: axes, scale, start, and facts about people.

The texts about patient and recording stay behind unless they are asked for; `left_out` names the
kinds of these facts.
"""

from __future__ import annotations

import re
from fractions import Fraction

from raconvert.errors import UsageError, listed
from raconvert.plugin import Axis, Metadata

from .tables import KINDS, MONTHS, NAMESPACE, OF_PATIENT, OF_RECORDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .header import Header, Signal

_DATE = re.compile(r"([0-9]{2})[^0-9]([0-9]{2})[^0-9]([0-9]{2}|yy)")
_TIME = re.compile(r"([0-9]{2})[^0-9]([0-9]{2})[^0-9]([0-9]{2})")
_START = re.compile(r"Startdate ([0-9]{2})-([A-Z]{3})-([0-9]{4})(?: |$)")
_UNKNOWN = ("", "X")


# Axes and scales ----------------------------------------------------------------------------------


def time_axis(header: Header, samples: int, origin: float | None) -> Axis:
    """Return the axis along the samples of a signal, in seconds."""
    if not samples or not header.duration:
        return Axis("time", kind="time")
    step = float(header.duration / samples)
    return Axis("time", kind="time", units="s", spacing=step, origin=origin)


def scale_of(signal: Signal) -> tuple[Fraction, Fraction] | None:
    """Return slope and intercept of physical values; None if the ranges give no scale."""
    if signal.physical is None or signal.digital is None:
        return None
    (low, high), (first, last) = signal.physical, signal.digital
    if low == high or first == last:
        return None
    slope = (high - low) / (last - first)
    return slope, low - slope * first


def signal_metadata(signal: Signal, axes: Sequence[Axis], *, name: str) -> Metadata:
    """Return the metadata of the array of one signal, called `name`.

    Without a scale the unit is an attribute: the stored integers are not in it.
    """
    attributes: dict[str, Any] = {} if name == signal.label else {"label": signal.label}
    scale = scale_of(signal)
    if scale is None:
        attributes |= _texts(signal) | ({"unit": signal.unit} if signal.unit else {})
        return Metadata(attributes=attributes, axes=axes)
    attributes |= _factors(*scale) | _texts(signal)
    return Metadata(units=signal.unit or None, attributes=attributes, axes=axes)


def _factors(slope: Fraction, intercept: Fraction) -> dict[str, float]:
    """Return the attributes of a scale; a slope of 1 and an intercept of 0 need none."""
    factors = {"scale_factor": float(slope)} if slope != 1 else {}
    return factors | ({"add_offset": float(intercept)} if intercept else {})


def _texts(signal: Signal) -> dict[str, Any]:
    """Return the texts and ranges of a signal as attributes."""
    texts = {"transducer": signal.transducer, "prefilter": signal.prefilter}
    attributes: dict[str, Any] = {key: text for key, text in texts.items() if text}
    for which, ends in (("physical", signal.physical), ("digital", signal.digital)):
        if ends is not None:
            low, high = map(_python_number, ends)
            attributes |= {f"{which}_minimum": low, f"{which}_maximum": high}
    return attributes


def _python_number(number: Fraction) -> int | float:
    """Return an integer as int, any other number as the nearest double."""
    return int(number) if number.denominator == 1 and abs(number) < 1 << 53 else float(number)


def group_metadata(signals: Sequence[Signal], axes: Sequence[Axis]) -> Metadata:
    """Return the metadata of an array of several signals of one unit: lists if they differ."""
    scales = [scale_of(signal) for signal in signals]
    attributes: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if len({*scales}) == 1:
        attributes = _factors(*scales[0]) if scales[0] is not None else {}
    else:
        pairs = [(Fraction(1), Fraction(0)) if scale is None else scale for scale in scales]
        own = {"scl_slope": [float(slope) for slope, _ in pairs],
               "scl_inter": [float(intercept) for _, intercept in pairs]}  # fmt: skip
    by_signal = [_texts(signal) for signal in signals]
    for key in dict.fromkeys(key for texts in by_signal for key in texts):
        values = [texts.get(key, "") for texts in by_signal]
        attributes[key] = values[0] if len({*map(str, values)}) == 1 else values
    units = signals[0].unit or None
    return Metadata(
        units=units, attributes=attributes, axes=axes, formats={NAMESPACE: own} if own else None
    )


# The file -----------------------------------------------------------------------------------------


def start_of(header: Header) -> str | None:
    """Return the start of a file as ISO 8601 has it; None if the header has no date and time.

    Two digits of a year are 1985 to 2084, unless the text of the recording says it in full.
    """
    from datetime import datetime

    date, time = _DATE.fullmatch(header.date), _TIME.fullmatch(header.time)
    full = _START.match(header.recording)
    if date is None or time is None:
        return None
    day, month = int(date[1]), int(date[2])
    short = 0 if date[3] == "yy" else int(date[3])
    year = short + (1900 if short >= 85 else 2000)
    if full is not None and full[2] in MONTHS:
        if (int(full[1]), MONTHS.index(full[2]) + 1) == (day, month):
            year = int(full[3])
    elif date[3] == "yy":
        return None
    try:
        hour, minute, second = map(int, time.groups())
        return datetime(year, month, day, hour, minute, second).isoformat()
    except ValueError:
        return None


def kinds_of(words: str) -> list[str]:
    """Return the kinds of facts that ``keep-tags`` names. Raises `UsageError` for others."""
    kinds = [word.lower() for word in words.replace(",", " ").replace(";", " ").split()]
    for word in kinds:
        if word not in KINDS:
            raise UsageError(
                f"EDF has no fact that is called {word!r}", remedy=f"it has {', '.join(KINDS)}"
            )
    return kinds


def _facts(header: Header) -> dict[str, str]:
    """Return the facts about people and places of a file by their kinds; for EDF+ word by word."""
    facts = {"patient": header.patient, "recording": header.recording}
    if "+" in header.kind:
        patient = header.patient.split(" ", 4)
        recording = _START.sub("", header.recording).removeprefix("Startdate X ").split(" ", 3)
        facts |= dict(zip(OF_PATIENT, patient, strict=False))
        facts |= dict(zip(OF_RECORDING, recording, strict=False))
    return facts


def kept(header: Header, kinds: Sequence[str], notes: list[str]) -> dict[str, str]:
    """Return the facts that were asked for as attributes; note those that are missing."""
    facts, fields = _facts(header), {}
    for kind in kinds:
        if facts.get(kind, "") in _UNKNOWN:
            notes.append(f"no {kind} is there to keep")
        else:
            fields[kind] = facts[kind]
    return fields


def left_out(header: Header, kinds: Sequence[str]) -> str:
    """Return a line about the facts that may say who somebody is and do not leave the file.

    Empty if there are none.
    """
    facts, lost = _facts(header), []
    for kind, parts in (("patient", OF_PATIENT), ("recording", OF_RECORDING)):
        words = _START.sub("", facts[kind]).removeprefix("Startdate ").split()
        if kind in kinds or {*words} <= {"X"}:
            continue
        if "+" not in header.kind:
            lost.append(kind)
            continue
        present = [part for part in parts if facts.get(part, "") not in _UNKNOWN]
        own_words = 2 if kind == "recording" else 0  # "Startdate" and the date
        if len(facts[kind].split(" ")) > len(parts) + own_words:
            present.append("others")
        if not_kept := [part for part in present if part not in kinds]:
            lost.append(f"{kind} ({', '.join(not_kept)})")
    if not lost:
        return ""
    return f"left out of the header: {listed(lost)}; `--in-opt keep-tags=LIST` keeps some"
