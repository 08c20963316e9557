"""Ends that come from outside: signals at bad moments, standard streams that are closed or full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
CLI = f"{sys.executable} -m raconvert"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


# Signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0, 0.001, 0.004, 0.01], ids=lambda gap: f"{gap * 1000:g} ms")
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_second_signal_leaves_no_temporary_file(
    tmp_path: Path, out: Path, gap: float, second: signal.Signals
) -> None:
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.integers(0, 99, (60, 1000, 1000), "u1"))
    words = [str(tmp_path / "x.npy"), "-o", str(out / "x.npz"), "--out-opt", "compress=deflate"]
    run = subprocess.Popen(
        [sys.executable, "-m", "raconvert", *words],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not os.listdir(out) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert os.listdir(out), "the run never began to write"
    run.send_signal(signal.SIGINT)
    time.sleep(gap)
    run.send_signal(second)
    told = run.communicate(timeout=60)[1]
    assert run.returncode == 130, told
    assert "interrupted" in told
    assert "Traceback" not in told
    assert os.listdir(out) == []


# Presses Ctrl-C when a module is imported, in the middle of what imports it.
PRESSES = """
import importlib.abc, os, signal, sys

class Press(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            sys.argv[1] = ""
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Press())
from raconvert.cli import main
name = sys.argv.pop(1)
sys.argv.insert(1, name)
words = sys.argv[2:]
code = main(words)
print(sys.argv[1] == "", file=sys.stdout)
sys.exit(code)
"""


@pytest.mark.parametrize(
    "module",
    [
        "raconvert.cli.parser",
        "argparse",
        "numpy",
        "numpy._core.multiarray",
        "raconvert.plugins.npz",
    ],
)
@pytest.mark.parametrize("verb", ["info", "verify", "digest", "convert"])
def test_ctrl_c_during_imports_is_one_line(
    tmp_path: Path, out: Path, module: str, verb: str
) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(9.0))
    more = ["-o", str(out / "x.ra"), "--dtype", "float32"] if verb == "convert" else []
    done = subprocess.run(
        [sys.executable, "-c", PRESSES, module, verb, str(tmp_path / "x.npz"), *more],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    pressed = done.stdout.splitlines()[-1] == "True"
    if not pressed:
        assert done.returncode == 0, done.stderr  # this verb does without it
        return
    assert (done.returncode, done.stderr) == (130, "raconvert: interrupted\n")
    assert os.listdir(out) == []


# Standard streams --------------------------------------------------------------------------------


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("suffix", ["ra", "npz", "h5", "mat", "nhdr"])
def test_a_conversion_needs_no_standard_streams(tmp_path: Path, closed: str, suffix: str) -> None:
    np.save(tmp_path / "x.npy", np.arange(24.0).reshape(4, 6))
    usual = shell(f"{CLI} x.npy -o usual.{suffix}", tmp_path)
    assert usual.returncode == 0, usual.stderr
    done = shell(f"{CLI} x.npy -o x.{suffix} {closed}", tmp_path)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    if suffix == "nhdr":
        expected = (tmp_path / "usual.raw").read_bytes()
        assert (tmp_path / "x.raw").read_bytes() == expected
    else:
        same = shell(f"{CLI} diff x.{suffix} usual.{suffix}", tmp_path)
        assert same.returncode == 0, same.stdout + same.stderr


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
@pytest.mark.parametrize(
    "command", ["info x.npy", "digest x.npy", "formats", "x.npy --to ra -o -", "--version"]
)
def test_a_result_that_nobody_gets_is_an_error(tmp_path: Path, command: str, where: str) -> None:
    if where == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    np.save(tmp_path / "x.npy", np.arange(24.0))
    done = shell(f"{CLI} {command} {where}", tmp_path)
    assert done.returncode == 1
    assert "the standard output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("x.npy -o x.ra", 0),
        ("x.npy -v -o x.ra", 0),
        ("info nothing", 1),
        ("x.npy -o old.ra", 5),
        ("", 2),
    ],
)
def test_an_error_that_nobody_reads_keeps_its_code(
    tmp_path: Path, command: str, code: int, where: str
) -> None:
    np.save(tmp_path / "x.npy", np.arange(24.0))
    (tmp_path / "old.ra").write_bytes(b"old")
    usual = shell(f"{CLI} {command}", tmp_path).returncode
    (tmp_path / "x.ra").unlink(missing_ok=True)
    assert usual == code
    assert shell(f"{CLI} {command} {where}", tmp_path).returncode == code
    assert (tmp_path / "old.ra").read_bytes() == b"old"
