"""Ends that come from outside: signals at bad moments, standard streams that are closed or full."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest

from raconvert.workers.interrupts import Interruptible
from tests.chaos.trees import eventually, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


# Reads "b.h5" with a library that calls a function of Python, in which a signal arrives. From the
# terminal SIGINT reaches all processes, and SIGTERM the first one. A worker waits to be ended;
# that of a migration is one that converts, not the one that looks at headers before.
CALLED_BACK = """
import ctypes, os, signal, sys, traceback
import h5py
from raconvert.plugins.hdf5 import reader

way, kind, log, *words = sys.argv[1:]
first, real = os.getpid(), reader.read_file

def press(*_):
    if kind == "SIGINT":
        os.killpg(first, signal.SIGINT)
    else:
        os.kill(first, signal.SIGTERM)
    while os.getpid() != first:
        pass

class Pressing:
    def __del__(self):
        press()

def call_back(path):
    if way == "ctypes":
        ctypes.CFUNCTYPE(None)(press)()
    elif way == "deleted":
        Pressing()
    else:
        with h5py.File(path) as file:
            file.visit(press)

def is_meant():
    calls = [frame.filename for frame in traceback.extract_stack()]
    return words[0] != "migrate" or any(name.endswith("migration/pool.py") for name in calls)

def read_file(source, *rest, **more):
    if os.path.basename(source.path) == "b.h5" and is_meant():
        call_back(source.path)
        with open(log, "a") as file:
            print("went on", file=file)
    return real(source, *rest, **more)

reader.read_file = read_file
from raconvert.cli import main
sys.argv[1:] = words
sys.exit(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals need POSIX")
@pytest.mark.parametrize(
    ("way", "kind"), [("ctypes", "SIGINT"), ("deleted", "SIGTERM"), ("h5py", "SIGINT")]
)
@pytest.mark.parametrize("words", [
    "convert in/b.h5 -o out/b.npz", "convert in --each --out-dir out --to npz",
    "migrate in out --to npz --jobs 2", "verify in/a.h5 in/b.h5 in/c.h5", "peek in/b.h5",
])  # fmt: skip
def test_an_interruption_in_a_callback_of_a_library_ends_all_at_once(
    words: str, way: str, kind: str, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name in "abc":
        with h5py.File(tmp_path / "in" / f"{name}.h5", "w") as file:
            file["x"] = np.arange(9.0)

    done = subprocess.Popen(
        [sys.executable, "-c", CALLED_BACK, way, kind, str(tmp_path / "log"), *words.split()],
        cwd=tmp_path, env=ENVIRONMENT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, told = done.communicate(timeout=60)

    assert done.returncode == 130, told
    assert told.splitlines()[-1] == "raconvert: interrupted"
    assert not [line for line in told.splitlines() if "Traceback" in line or "Exception" in line]
    assert not (tmp_path / "log").exists()
    assert not [path for path in out.rglob("*") if "tmp" in path.name or path.name == "b.npz"]
    assert eventually(lambda: is_gone(done.pid))


def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Pressing:
    """Presses Ctrl-C when it is deleted."""

    def __del__(self) -> None:
        _press()


def _as_it_is_deleted() -> None:
    Pressing()


def _as_garbage_is_collected() -> None:
    odd = Pressing()
    odd.itself = odd  # type: ignore[attr-defined]
    del odd
    gc.collect()


def _in_the_callback_of_a_weak_reference() -> None:
    value = Array()
    weakref.finalize(value, _press)
    del value


class Array:
    """Something that weak references refer to."""


def _in_a_callback_of_c() -> None:
    ctypes.CFUNCTYPE(None)(_press)()


def _in_a_generator_that_is_dropped() -> None:
    def pieces() -> Iterator[int]:
        try:
            yield 1
        finally:
            _press()

    next(pieces())


def _where_all_errors_are_swallowed() -> None:
    with contextlib.suppress(BaseException):
        _press()


def _where_all_errors_become_other_ones() -> None:
    with contextlib.suppress(OSError):
        try:
            _press()
        except BaseException:  # noqa: BLE001 - as libraries do
            raise OSError(5, "read failed") from None


LOST = (
    _as_it_is_deleted, _as_garbage_is_collected, _in_the_callback_of_a_weak_reference,
    _in_a_callback_of_c, _in_a_generator_that_is_dropped, _where_all_errors_are_swallowed,
    _where_all_errors_become_other_ones,
)  # fmt: skip


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("lose", LOST)
def test_an_interruption_that_gets_lost_is_raised_again(
    lose: Callable[[], None], times: int, capfd: pytest.CaptureFixture[str]
) -> None:
    begun: list[int] = []

    def work() -> None:
        for time_ in range(times):
            begun.append(time_)
            lose()

    def interruptible() -> None:
        with Interruptible(last=False):
            work()

    usual = signal.getsignal(signal.SIGINT), sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        interruptible()

    assert begun == [0]
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == usual
    assert capfd.readouterr() == ("", "")


def test_other_errors_that_nobody_can_catch_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError("odd")

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(type(args.exc_value)))
    with Interruptible(last=False):
        Failing()

    assert told == [ValueError]


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
