"""Programs and libraries from outside: what does not work counts as missing, and is asked for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is searched for programs before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "works"), [("echo 1.0", True), ("exit 1", False), ("exec /no/such/loader", False)]
)
def test_a_program_counts_if_it_prints_its_version(path: Path, text: str, works: bool) -> None:
    script(path / "octave-cli", text)

    found = needs.program.__wrapped__("octave-cli")

    assert found == (str(path / "octave-cli") if works else None)
    assert needs.program.__wrapped__("no-such-program") is None


def test_a_compiler_without_headers_counts_for_nothing(
    path: Path, tool: Callable[..., str]
) -> None:
    script(path / "gcc", f'exec "{tool("gcc")}" -nostdinc "$@"')

    assert needs.program.__wrapped__("gcc") is None
    assert [name for name in needs.LIBRARIES if needs.library.__wrapped__(name)] == []


def test_a_program_from_outside_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="octave-cli is not on every system"):
        subprocess.run(["octave-cli", "--version"], check=False)
    with pytest.raises(FileNotFoundError):
        subprocess.run([tmp_path / "made"], check=False)
    assert subprocess.run(["sh", "-c", "exit 3"], check=False).returncode == 3


def test_a_test_that_asks_may_start_it(tool: Callable[..., str]) -> None:
    subprocess.run([tool("bash"), "-c", "true"], check=True)


def test_nothing_else_looks_for_programs() -> None:
    """Each place of its own would have a probe of its own, which is how headers were forgotten."""
    pattern = re.compile(r"\bshutil\.which\b|\bfind_executable\b|\bcommand -v\b")
    places = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }

    assert places == {"tests/needs.py"}
