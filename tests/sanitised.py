"""Compiled modules under the address and undefined-behaviour sanitisers, for the tests of them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import SANITIZERS

ROOT = Path(__file__).resolve().parents[1]
SHIM = ROOT / "tests" / "faults" / "shim.c"
FLAGS = ["-O1", "-g", "-shared", "-fPIC", "-fno-omit-frame-pointer", *SANITIZERS]


def built(
    source: Path,
    folder: Path,
    library: Callable[..., tuple[str, list[str]]],
    *,
    shim: bool = True,
) -> tuple[Path, str]:
    """A compiled module, and what must be loaded before everything else.

    The fixture `library` skips where a module of Python or the sanitisers cannot be compiled. With
    the `shim` system calls can be made to fail, which needs Linux.
    """
    if shim and sys.platform != "linux":
        pytest.skip("the calls are those of Linux")
    library("python")
    compiler, _ = library("sanitizers")
    asked = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    runtime = asked.stdout.strip()
    module = folder / f"{source.stem}.so"
    compiled(source, module)
    before = [os.path.realpath(runtime)]
    if shim:
        before.append(str(folder / "shim.so"))
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", before[1], SHIM, "-ldl"]
        subprocess.run(command, check=True)
    return module, " ".join(before)


def compiled(source: Path, module: Path) -> None:
    """Compile C source to a module of Python."""
    include = sysconfig.get_paths()["include"]
    subprocess.run(["gcc", *FLAGS, f"-I{include}", source, "-o", module], check=True)


def spoiled(source: Path, good: str, bad: str, folder: Path) -> Path:
    """A module with a fault put in: `bad` in place of the one `good`."""
    text = source.read_text()
    assert text.count(good) == 1
    (folder / "bad.c").write_text(text.replace(good, bad))
    compiled(folder / "bad.c", folder / f"{source.stem}.so")
    return folder / f"{source.stem}.so"


def run(module: Path, before: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python that is given the module."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LD_PRELOAD": before,
        "PYTHONMALLOC": "malloc",  # every object by itself, so that the sanitiser sees its end
        "ASAN_OPTIONS": "detect_leaks=0",  # Python's own are many
    }
    return subprocess.run(
        [sys.executable, "-c", program, module],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip


def counts_of(module: Path, before: str, program: str) -> Any:
    """What a program that runs to its end has counted, which it prints as a dict."""
    done = run(module, before, program)
    assert done.returncode == 0, done.stderr[-4000:]
    return eval(done.stdout, {})


def hardened(pattern: str, folder: Path, readelf: str) -> Any:
    """What `readelf` says, by its options, of a module as setup.py builds it.

    All symbols are resolved at the start, and then read-only; there is a canary on the stack.
    """
    command = [sys.executable, "setup.py", "-q", "build_ext", "-b", folder, "-t", folder / "t"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    built = next(folder.rglob(pattern))

    def asked(options: str) -> str:
        return subprocess.run(
            [readelf, options, built], capture_output=True, text=True, check=True
        ).stdout

    assert "GNU_RELRO" in asked("-dlW")
    assert "NOW" in asked("-dlW")
    assert "__stack_chk_fail" in asked("-sW")
    return asked
