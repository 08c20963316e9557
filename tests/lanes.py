"""The fast lane beside the usual way, for the suites: the same file, the same report, no sidecar."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.catalogue import ROWS
from raconvert.conversion.lane import Expected, Folders, Lane, Made, _report
from raconvert.conversion.options import Settings
from raconvert.conversion.report import Report
from raconvert.files import small
from raconvert.metadata import SUFFIX


def formats() -> set[str]:
    """The formats that the lane leads to, as their plans say."""
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
    """Whether the lane takes a file that the usual way has made `target` of, with this report.

    What it makes is compared. `folder` is empty, and for what it makes.
    """
    row = registry.by_name(report.target_format)
    lane = Lane(row, Settings(to=row.name, sync=False))
    with Folders(str(source.parent), str(target.parent)) as folders:
        expected = lane.tried(folders, source.name, target.name)
    if expected is None:
        return False
    assert isinstance(expected, Expected), "the first file of a kind goes the usual way"
    assert not report.says_something, f"the lane would not say {report.notes or report.equivalent}"
    assert not os.path.lexists(f"{target}{SUFFIX}"), "the lane would make no sidecar"
    assert expected.content == target.read_bytes(), "the lane would make other bytes"
    lane.learn(expected)
    with Folders(str(source.parent), str(folder)) as folders:
        made = lane.tried(folders, source.name, target.name)
    assert isinstance(made, Made), "what is proven is not made"
    (result,) = folder.iterdir()
    assert result.read_bytes() == target.read_bytes() == made.content, "the lane makes other bytes"
    assert result.stat().st_mode == target.stat().st_mode, "the lane gives another mode"
    said, usual = _report(str(source), str(target), made).to_plain(), report.to_plain()
    assert said == usual, f"the lane reports {said}, and not {usual}"
    result.unlink()
    return True


POSSIBLE = small.POSSIBLE
