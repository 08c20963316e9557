"""Each exhibit of the museum loses what its page says, in silence, and raconvert does not."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.museum import (
    ROOMS,
    Exhibit,
    Outcome,
    gather,
    missing,
    parsed,
    paste,
    run,
    same,
    text_of,
    verdict,
    versions,
)
from docs.museum.__main__ import PAGE, page, results, section, sections_of

IN_CI = bool(os.environ.get("CI"))
HEAVY = {"opencv-python-headless": "60 MB for one exhibit"}  # in no extra
EXHIBITS = gather()
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = sections_of(TEXT)
every_exhibit = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.anchor)


def bare(text: str) -> str:
    """A section without the versions and without what came out."""
    text = re.sub(r"^Seen with .*?\. (?=[`\[])", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^\| (given|comes back|the safe way|raconvert) .*\n", "", text, flags=re.MULTILINE
    )


def library(exhibit: Exhibit) -> None:
    """Skip, by its name, an exhibit whose library is not installed; in CI only a heavy one."""
    if name := missing(exhibit):
        assert name in HEAVY or not IN_CI, f"{name} is not installed"
        pytest.skip(f"{name} is not installed" + (f" ({HEAVY[name]})" if name in HEAVY else ""))


def test_the_page_is_that_of_the_programs() -> None:
    assert page(SECTIONS, EXHIBITS) == TEXT, "python -m docs.museum --page"
    assert len(EXHIBITS) >= 40
    assert len({exhibit.library for exhibit in EXHIBITS}) >= 13
    assert {exhibit.room for exhibit in EXHIBITS} == set(ROOMS)
    assert SECTIONS.keys() == {exhibit.anchor for exhibit in EXHIBITS}


def test_other_pages_count_them_right() -> None:
    root = PAGE.parents[1]
    libraries = len({exhibit.library for exhibit in EXHIBITS})
    start = " ".join((root / "docs" / "index.md").read_text(encoding="utf-8").split())

    assert f"{len(EXHIBITS)} programs show" in (root / "README.md").read_text(encoding="utf-8")
    assert f"[{len(EXHIBITS)} programs](museum.md) show what {libraries} well-known" in start


@every_exhibit
def test_an_exhibit_is_whole(exhibit: Exhibit) -> None:
    """It cites something, has the safe way or says why not, and its last part is raconvert's."""
    library_only = ast.parse(exhibit.parts["loss"])

    assert exhibit.manual or exhibit.links
    assert all(url.startswith("https://") and said for url, said in exhibit.links)
    assert ("safe" in exhibit.parts) != bool(exhibit.unsafe)
    assert "raconvert" not in exhibit.parts["loss"] + exhibit.parts.get("safe", "")
    assert "import raconvert" in exhibit.parts["ours"]
    assert library_only.body


@every_exhibit
def test_the_manual_says_what_is_cited(exhibit: Exhibit) -> None:
    """In the installed version; links lead to what no package has."""
    if not exhibit.manual:
        return
    library(exhibit)
    for name, said in exhibit.manual:
        assert said in text_of(name), name


@every_exhibit
def test_a_library_loses_in_silence_and_raconvert_does_not(
    exhibit: Exhibit, tmp_path: Path
) -> None:
    library(exhibit)
    found = run(exhibit, tmp_path)
    made, there = section(exhibit, found), SECTIONS[exhibit.anchor]

    assert bare(made) == bare(there), "python -m docs.museum --page"
    assert results(made)[-1] == results(there)[-1]  # what raconvert does
    assert not verdict(found).startswith("SILENT")
    if not IN_CI and (found.said or same(found.given, found.back)):
        pytest.skip(f"{versions(exhibit)} keeps it or says it")
    assert not found.said, "the library says it now: the exhibit leaves the museum"
    assert not same(found.given, found.back), "the library keeps it: the exhibit leaves the museum"
    assert results(made) == results(there)


@every_exhibit
def test_the_safe_way_is_safe(exhibit: Exhibit, tmp_path: Path) -> None:
    """It gives what was given, all of it in another shape, or an error."""
    if "safe" not in exhibit.parts:
        return
    library(exhibit)
    found = run(exhibit, tmp_path)

    if not isinstance(found.safe, TypeError | AssertionError):
        if exhibit.anchor == "tifffile-ome":  # with the axes of OME-TIFF
            assert found.safe.shape == (1, 1, *found.given.shape)
            assert (found.safe == found.given).all()
        else:
            assert same(found.given, found.safe)


def test_a_program_of_the_page_runs_as_a_file(tmp_path: Path) -> None:
    """One that keeps its values: as a script, it ends without an error."""
    (exhibit,) = (one for one in EXHIBITS if one.anchor == "numpy-savetxt")
    assert exhibit.path.read_text(encoding="utf-8").count(exhibit.parts["loss"]) == 1
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(exhibit.parts.values())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_prompt_finds_what_a_file_would_hide(tmp_path: Path) -> None:
    """A block without an empty line after it is no program for the prompt; errors end it."""
    names: dict[str, object] = {}

    assert isinstance(paste("if True:\n    x = 1\ny = 2", names), SyntaxError)
    assert paste("if True:\n    x = 1\n\ny = 2", names) is None
    assert names["y"] == 2
    assert isinstance(paste("1 / 0\nz = 3", names), ZeroDivisionError)
    assert "z" not in names


def test_a_silent_answer_and_a_missing_sentence_are_found(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        '"""It loses.\n\nlibrary: numpy\nmanual: numpy.savez | words that are nowhere\nunsafe: none\n"""\n'
        "given, back = 1, 2\n\n# raconvert\nimport raconvert\n\nours = 2\n"
    )
    exhibit = parsed(file)
    found = run(exhibit, tmp_path)

    assert isinstance(found, Outcome)
    assert verdict(found) == "SILENT: 2"
    assert exhibit.manual[0][1] not in text_of("numpy.savez")
