"""The manual pages, as `man` shows them, have what `--help` has."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from raconvert.cli import VERBS, main

PAGES = Path(__file__).resolve().parents[1] / "docs" / "man"
OPTION = r"(?<![\w-])--?[A-Za-z0-9][\w-]*"


@pytest.fixture(scope="module")
def shown(tool: Callable[..., str]) -> Callable[[str], str]:
    """Return what gives the text of a page without layout; a warning of roff fails the test."""
    man = tool("man")

    def show(name: str) -> str:
        page = PAGES / f"{name}.1"
        done = subprocess.run(
            [man, "--warnings=w", "-l", page],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "200", "MAN_KEEP_FORMATTING": ""},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return show


def words(text: str) -> str:
    """A text without what line breaks and justification do to it."""
    return re.sub(r"\s+", " ", text.replace("\u2010\n", ""))


@pytest.mark.parametrize("verb", VERBS)
def test_a_page_has_what_help_has(
    verb: str,
    shown: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([verb, "--help"]) == 0
    told = capsys.readouterr().out
    page = shown(f"raconvert-{verb}")
    heads = re.findall(rf"^  (?:{OPTION}.*)$", told, re.MULTILINE)
    options = {name for line in heads for name in re.findall(OPTION, line.strip().split("  ")[0])}
    paragraphs = page.partition("\nOPTIONS\n")[2].partition("\nEXIT STATUS\n")[0]
    listed = re.findall(rf"^ {{7}}({OPTION}.*)$", paragraphs, re.MULTILINE)

    assert {n for line in listed for n in re.findall(OPTION, line.split("  ")[0])} == options
    assert len(options) >= 3
    assert words(VERBS[verb]) in words(page)
    for sentence in re.findall(r"^ {26}(\S.*)$", told, re.MULTILINE):
        for word in sentence.split():
            assert word in page, f"{word!r} of: {sentence}"


def test_the_page_of_the_command(shown: Callable[[str], str]) -> None:
    page = shown("raconvert")

    for verb, summary in VERBS.items():
        assert f"raconvert-{verb}(1)" in page
        assert words(summary) in words(page)
    assert "raconvert 'mnist/*.png' -o mnist.ra" in page
    assert {path.stem for path in PAGES.iterdir()} == {
        "raconvert",
        *(f"raconvert-{v}" for v in VERBS),
    }


def test_exit_codes_are_those_of_the_errors(shown: Callable[[str], str]) -> None:
    from raconvert import errors

    codes = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    section = shown("raconvert").partition("\nEXIT STATUS\n")[2].partition("\nENVIRONMENT\n")[0]

    assert {int(code) for code in re.findall(r"^ {7}(\d+)", section, re.MULTILINE)} == codes | {
        0,
        130,
    }


def test_the_pages_are_found_where_they_are_installed(
    tool: Callable[..., str], tmp_path: Path
) -> None:
    """`share/man` beside the `bin` that is on PATH is where man looks."""
    place = tmp_path / "share" / "man" / "man1"
    place.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for page in PAGES.iterdir():
        (place / page.name).write_bytes(page.read_bytes())
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    environment.pop("MANPATH", None)
    done = subprocess.run(
        [tool("man"), "-w", "raconvert-info"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert done.stdout.strip() == str(place / "raconvert-info.1"), done.stderr
