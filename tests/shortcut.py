"""The shortcut of a `Converter` beside the ordinary way: the same file, the same report."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.catalogue import ROWS
from raconvert.conversion.converter import Converter
from raconvert.conversion.options import Settings
from raconvert.conversion.report import Report
from raconvert.files import small
from raconvert.metadata import SUFFIX


def formats() -> set[str]:
    """The formats that the shortcut leads to, as their plans say."""
    found = set()
    for row in ROWS:
        if row.writes and not row.many and not row.folder:
            grey = Array(
                element("uint", 1), (4, 3), name="x", index_order="C", data=np.ones((3, 4))
            )
            plan = registry.load(row).plan(Bundle([grey]))
            if plan.header is not None or plan.whole is not None:
                found.add(row.name)
    return found


def taken(source: Path, target: Path, report: Report, folder: Path) -> bool:
    """Whether the shortcut takes a file that the ordinary way has made `target` of.

    What it makes and reports is compared. `folder` is empty, and for what it makes.
    """
    row = registry.by_name(report.target_format)
    converter = Converter(Settings(to=row.name, sync=False))
    place = str(folder / target.name)
    first = converter(str(source), place)
    for path in folder.iterdir():
        path.unlink()
    again = converter(str(source), place)
    if not again.by_shortcut:
        return False
    assert not report.says_something, f"it would not say {report.notes or report.equivalent}"
    assert not os.path.lexists(f"{target}{SUFFIX}"), "it would make no sidecar"
    (result,) = folder.iterdir()
    assert result.read_bytes() == target.read_bytes(), "it makes other bytes"
    assert result.stat().st_mode == target.stat().st_mode, "it gives another mode"
    for one in (first, again):
        said = {**one.to_plain(), "written": [str(target)], "target": str(target)}
        assert said == report.to_plain(), f"it reports {said}, and not {report.to_plain()}"
    result.unlink()
    return True


POSSIBLE = small.POSSIBLE
