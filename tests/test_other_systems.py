"""What Linux has and others lack is taken away, and the conversions that would use it still work.

`tests/other_systems.py` is the program; it runs once, and each test looks at one system of it. That
the missing was asked for shows that the conversion would have used it.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import other_systems
import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="takes away from Linux what others lack"),
    pytest.mark.xdist_group("other systems"),
]

# What is taken away -> the conversions that would use it.
CALLS = {
    "os.O_TMPFILE": "bundled",
    "os.O_CLOEXEC": "small",
    "os.O_DIRECTORY": "bundled",
    "os.O_NOFOLLOW": "locked",
    "os.O_NONBLOCK": "small",
    "os.SEEK_DATA": "sparse",
    "os.fchmod": "fast,small",
    "os.fork": "stacked,looked_at",
    "os.fstatvfs": "stacked",
    "os.link": "bundled,small",
    "os.major": "large",
    "os.posix_fallocate": "large",
    "os.pread": "small,chunked",
    "os.preadv": "large",
    "os.pwrite": "large",
    "os.statvfs": "tree",
    "os.sysconf": "stacked",
    "os.writev": "fast",
    "os.sched_getaffinity": "locked",
    "fcntl": "stacked",
    "fcntl.F_SETPIPE_SZ": "looked_at,tree",
    "ctypes": "bundled,looked_at,huge",
    "ctypes.renameat2": "bundled",
    "ctypes.sync_file_range": "huge",
    "ctypes.syncfs": "bundled",
    "/proc": "small,looked_at",
    "raconvert.files._small": "bundled,locked",
    "raconvert.files._swap": "large",
    "raconvert.plugins.png._fast": "stacked",
}
# Whole systems, which run everything -> some of what must have been asked for.
WHOLE = {
    "macos": {"/proc", "os.O_TMPFILE", "os.posix_fallocate", "raconvert.files._small"},
    "windows": {
        "os.fork", "os.pread", "os.preadv", "os.pwrite", "os.writev", "os.fchmod",
        "windows: replace", "windows: rename", "windows: unlink", "windows: locking",
        *other_systems.COMPILED,
    },
    "plain disk": {"plain disk: link", "plain disk: O_TMPFILE", "ctypes.renameat2"},
}  # fmt: skip


@pytest.fixture(scope="module")
def found(disk: Path) -> dict[str, dict[str, Any]]:
    """What happened on each system."""
    folder = disk / "other-systems"
    folder.mkdir()
    systems = [*WHOLE, *(f"{call}={jobs}" for call, jobs in CALLS.items())]
    program = [sys.executable, ROOT / "tests" / "other_systems.py", folder, *systems]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {answer["system"]: answer for answer in answers}


@pytest.mark.parametrize("call", CALLS)
def test_without_a_call(found: dict[str, dict[str, Any]], call: str) -> None:
    assert not found[call]["failed"], "\n".join(found[call]["failed"].values())
    assert call in found[call]["asked"], f"{CALLS[call]} would not use {call}"
    assert not found[call]["left"]


@pytest.mark.parametrize("system", WHOLE)
def test_a_whole_system(found: dict[str, dict[str, Any]], system: str) -> None:
    answer = found[system]

    assert not answer["failed"], "\n".join(answer["failed"].values())
    assert set(answer["asked"]) >= WHOLE[system]
    assert not [word for word in answer["asked"] if word.startswith("text mode")]
    assert not answer["left"]


# Of these, what is not there is never asked for where it is not: they follow a check of the system,
# or of another name of the table.
BEHIND_A_CHECK = {"os.WNOHANG", "os.SEEK_HOLE", "os.minor"}


def test_every_call_that_a_system_lacks_is_in_the_table() -> None:
    """A new use of a name that Windows or macOS lack gets a row."""
    lacking = other_systems.NOT_ON_WINDOWS | other_systems.NOT_ON_MACOS
    used = set()
    for path in [*(ROOT / "raconvert").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(f"{node.value.id}.{node.attr}")
    used = {name for name in used if name.startswith("os.")}

    assert used & lacking <= {*CALLS, *BEHIND_A_CHECK}
    assert {name for name in used if not hasattr(os, name.removeprefix("os."))} == set()
