"""The recipe for S3 and the benchmark, against the S3 server on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from test_docs import ROOT, agrees, blocks

from docs.pages import steps
from tests.remote import s3server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_recipe(s3: s3server.S3Server, tmp_path: Path, tool: Callable[..., str]) -> None:
    s3server.Bucket(s3, "lab")
    (tmp_path / ".bin").mkdir()
    for name, module in (("raconvert", "-m raconvert"), ("python", "")):
        script = tmp_path / ".bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "COLUMNS": "100",
        "PATH": f"{tmp_path / '.bin'}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    (tmp_path / "work").mkdir()
    found = blocks(ROOT / "docs" / "recipes" / "s3.md", "shell-session")
    assert len(found) == 4
    page = "\n".join(f"```console\n{block.strip()}\n```" for block in found)
    for _, command, expected in steps(page):
        done = subprocess.run(
            [tool("bash"), "-c", command], cwd=tmp_path / "work", env=environment, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert agrees(expected, done.stdout), f"$ {command}\n{done.stdout}\nexpected:\n{expected}"


def test_the_benchmark_counts(s3: s3server.S3Server) -> None:
    """The same as for 1 GiB, with less; its exit code says that at most 12 MB passed."""
    command = [sys.executable, str(ROOT / "benchmarks" / "remote.py"), "--mib", "32"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "UploadPartCopy" in done.stdout
