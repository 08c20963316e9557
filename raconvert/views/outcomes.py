"""Outcomes of writing a file in every format: the plans, and nothing else.

No element is read and nothing is written: it is what a dry run says, once for each format.
"""

from __future__ import annotations

import os
import tempfile
from uuid import uuid4

from raconvert import registry
from raconvert.conversion.options import Settings
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import plan_bundle
from raconvert.declared import Record
from raconvert.errors import MissingDependency, RaconvertError, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.catalogue import Row
    from raconvert.conversion.read import Opened


EXACT, EQUIVALENT, REFUSED, UNKNOWN = "exact", "equivalent", "refused", "not known"
_MOST = 4  # reasons listed per format
_MOST_ARRAYS = 300  # up to so many, a container is planned as a whole
_LAST = "nothing was written"  # the last line of a refusal, left out here


class Visa(Record):
    """The outcome of writing a file in one format: what it is, why, and what would allow it."""

    format: str
    title: str
    suffix: str
    outcome: str
    reasons: tuple[str, ...]
    flags: tuple[str, ...]


def passport(opened: Opened, chosen: Array | None) -> list[Visa]:
    """One visa for each format that is written; those of one array are about the chosen one.

    Raises nothing for what a format cannot hold.
    """
    settings = Settings(dry_run=True, allow=("all",))
    folder = os.path.join(tempfile.gettempdir(), f"raconvert-{uuid4().hex}")  # which nobody has
    count = len(opened.bundle.arrays)
    alone, about = opened.bundle, ""
    if count > 1 and chosen is not None:
        alone, about = opened.bundle.like([chosen]), f"; this is about '{chosen.name}'"
    visas = []
    for row in registry.rows():
        if not row.writes:
            continue
        bundle, reasons = opened.bundle, []
        if about and (not row.many or count > _MOST_ARRAYS):
            first = f"one of {count} arrays" if row.many else "one array in a file"
            bundle, reasons = alone, [first + about]
        visas.append(_visa(opened, bundle, row, settings, folder, reasons))
    return visas


def _visa(
    opened: Opened, bundle: Bundle, row: Row, settings: Settings, folder: str, reasons: list[str]
) -> Visa:
    suffix = row.suffixes[0] if row.suffixes else ""
    path = os.path.join(folder, f"x{suffix}")
    report = Report([])
    outcome, flags = EXACT, []
    try:
        plan_bundle(Conversion(path, row, settings, report, opened=opened), bundle)
    except WouldLose as error:
        outcome = REFUSED
        reasons += [line for line in (error.remedy or "").splitlines() if line.strip() != _LAST]
    except MissingDependency as error:
        outcome = UNKNOWN
        reasons += [part for part in (error.what, error.remedy) if part]
    except RaconvertError as error:
        outcome = REFUSED
        reasons += [part for part in (error.what, error.remedy) if part]
    else:
        reasons += [str(fit) for fit in (*report.allowed, *report.equivalent)]
        reasons += report.notes
        flags = list(dict.fromkeys(fit.flag for fit in report.allowed if fit.flag))
        outcome = REFUSED if report.allowed else EQUIVALENT if report.equivalent else EXACT
    reasons = [*map(str.strip, reasons)]
    if len(reasons) > _MOST:
        reasons = [*reasons[:_MOST], f"and {len(reasons) - _MOST} more"]
    return Visa(row.name, row.title, suffix, outcome, tuple(reasons), tuple(flags))
