"""Commands of the text files in `tests/cli`: each prints, writes and returns what stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import cli


@pytest.mark.parametrize("path", cli.FILES, ids=lambda path: path.stem)
def test_commands_do_what_the_text_says(path: Path) -> None:
    """`python -m tests.cli --accept` writes what they do now."""
    found = cli.cases(path)
    assert len({case.title for case in found}) == len(found)
    assert cli.text_of([cli.ran(case) for case in found]) == path.read_text(encoding="utf-8")


def test_a_changed_message_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("# a\n$ raconvert info\n! nothing of the kind\n", encoding="utf-8")
    (case,) = cli.cases(path)
    ((_, lines),) = cli.ran(case).commands
    assert lines[0].startswith("! raconvert: ")
    assert lines[-1] == "= 2"
