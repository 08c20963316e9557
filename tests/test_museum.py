"""Each exhibit of the museum loses what its page says, in silence, and raconvert does not."""

from __future__ import annotations

import os
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

from docs.museum import Exhibit, gather, same, shown, verdict
from docs.museum.__main__ import PAGE, page

IN_CI = bool(os.environ.get("CI"))
EXHIBITS = gather()


def test_the_page_is_that_of_the_programs() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(EXHIBITS), "python -m docs.museum --page"
    assert len(EXHIBITS) >= 25
    assert len({exhibit.library for exhibit in EXHIBITS}) >= 10


def test_other_pages_count_them_right() -> None:
    root = PAGE.parents[1]
    libraries = len({exhibit.library for exhibit in EXHIBITS})
    start = " ".join((root / "docs" / "index.md").read_text(encoding="utf-8").split())

    assert f"{len(EXHIBITS)} programs show" in (root / "README.md").read_text(encoding="utf-8")
    assert f"[{len(EXHIBITS)} programs](museum.md) show what {libraries} well-known" in start


@pytest.mark.parametrize(
    "exhibit", EXHIBITS, ids=lambda exhibit: f"{exhibit.library}-{exhibit.name}"
)
def test_a_library_loses_in_silence_and_raconvert_does_not(
    exhibit: Exhibit, tmp_path: Path
) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        before, after, ours = exhibit.run(tmp_path)

    assert verdict(before, ours) == exhibit.ours
    assert not exhibit.ours.startswith("SILENT")
    if not IN_CI and (told or same(before, after)):
        pytest.skip(f"{exhibit.library} {version(exhibit.library)} keeps it or says it")
    assert not told, "the library says it now: the exhibit leaves the museum"
    assert not same(before, after), "the library keeps it now: the exhibit leaves the museum"
    assert (shown(before), shown(after)) == (exhibit.before, exhibit.after)
