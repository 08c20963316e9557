"""Pieces made by a thread: order, errors, the number alive at once, and nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from raconvert.files.threads import Threads, ahead

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[1]


def numbers(count: int, log: list[str] | None = None) -> Generator[int, None, None]:
    try:
        yield from range(count)
    finally:
        if log is not None:
            log.append(threading.current_thread().name)


def workers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "raconvert-ahead"]


@pytest.mark.parametrize("alive", [2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_pieces_in_order(count: int, alive: int) -> None:
    log: list[str] = []
    assert list(ahead(numbers(count, log), alive)) == list(range(count))
    assert log == ["raconvert-ahead"]
    assert workers() == []


def test_pieces_may_share_as_many_buffers_as_are_alive() -> None:
    def filled() -> Generator[bytearray, None, None]:
        buffers = [bytearray(1), bytearray(1), bytearray(1)]
        for number in range(100):
            buffers[number % 3][0] = number
            yield buffers[number % 3]

    seen = []
    for piece in ahead(filled(), 3):
        for _ in range(100):  # the thread would overwrite it meanwhile
            threading.Event().wait(0)
        seen.append(piece[0])
    assert seen == list(range(100))


def test_never_more_than_allowed_are_made() -> None:
    made = 0
    idle, more = threading.Event(), threading.Event()

    def counted() -> Generator[int, None, None]:
        nonlocal made
        for number in range(20):
            made += 1
            (idle if made == 3 else more if made == 4 else threading.Event()).set()
            yield number

    pieces = ahead(counted(), 3)
    assert next(pieces) == 0
    assert idle.wait(10)
    assert not more.wait(0.1)
    assert next(pieces) == 1
    assert list(pieces) == list(range(2, 20))


def test_an_error_comes_after_the_pieces_before_it() -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise KeyError("third")

    pieces = ahead(failing(), 4)
    assert [next(pieces), next(pieces)] == [1, 2]
    with pytest.raises(KeyError, match="third"):
        next(pieces)
    assert workers() == []


@pytest.mark.parametrize("used", [0, 1, 5])
def test_leaving_early_closes_the_generator_and_ends_the_thread(used: int) -> None:
    log: list[str] = []
    pieces = ahead(numbers(1000, log), 2)
    for _ in range(used):
        next(pieces)
    pieces.close()
    assert workers() == []
    assert log == (["raconvert-ahead"] if used else [])


def test_an_error_of_the_user_ends_the_thread() -> None:
    log: list[str] = []

    def use() -> None:
        for piece in ahead(numbers(1000, log), 2):
            if piece == 3:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert workers() == []
    assert log == ["raconvert-ahead"]


def test_without_threads_the_pieces_are_made_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(ahead(numbers(9), 2)) == list(range(9))


FAILING_WRITES = """
import os, resource, signal, sys, threading
import raconvert
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
kept = []
for name, option in (
    ("x.ra", ""), ("x.nrrd", "encoding=hex"), ("x.h5", "compress=gzip:1"), ("x.mat", "")
):
    options = dict([option.split("=")] if option else [])
    try:
        raconvert.convert("x.npy", name, axes="1,0", max_memory=64 << 20, out_opts=options)
    except raconvert.errors.WriteFailed as error:
        kept.append(error)  # and with its traceback all that its frames hold
print(len(kept), [t.name for t in threading.enumerate()], os.listdir())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_failed_writes_leave_no_thread(tmp_path: Path) -> None:
    np.save(
        tmp_path / "x.npy", np.arange(20_000_000, dtype="u4").view("u1").reshape((-1, 2), order="F")
    )
    done = subprocess.run(
        [sys.executable, "-c", FAILING_WRITES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout == "4 ['MainThread'] ['x.npy']\n"


def test_an_error_and_its_frames_do_not_keep_each_other() -> None:
    class Large:
        pass

    def failing() -> Generator[Large, None, None]:
        large = Large()
        alive.add(large)
        yield large
        raise KeyError

    alive: weakref.WeakSet[Large] = weakref.WeakSet()
    gc.disable()
    try:
        with contextlib.suppress(KeyError):
            for _ in ahead(failing(), 2):
                pass
        del _
        assert len(alive) == 0
    finally:
        gc.enable()


# Tasks that a few threads carry out --------------------------------------------------------------


@pytest.mark.parametrize("waiting", [1, 2, 7, 100])
@pytest.mark.parametrize("most", [1, 3])
def test_results_come_in_the_order_of_the_tasks(most: int, waiting: int) -> None:
    taken: list[int] = []
    used: list[int] = []

    def tasks() -> Generator[int, None, None]:
        for number in range(20):
            taken.append(number)
            assert number - len(used) <= waiting  # no more of them are in memory at once
            yield number

    with Threads(most) as threads:
        for task, result in threads.results(lambda n: (n, threading.get_ident()), tasks(), waiting):
            assert result[0] == task
            assert result[1] != threading.get_ident()
            used.append(task)

    assert used == taken == list(range(20))


def test_tasks_that_have_not_begun_are_given_up() -> None:
    """After an error or an interruption nobody waits for more than the tasks at hand."""
    begun: list[int] = []
    may_end = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError(number)
        may_end.wait(60)

    def all_of_them() -> None:
        with Threads(1) as threads:
            really = threads._pool.shutdown

            def shutdown(*, wait: bool, cancel_futures: bool) -> None:
                really(wait=False, cancel_futures=cancel_futures)
                may_end.set()
                really(wait=wait)

            threads._pool.shutdown = shutdown  # type: ignore[method-assign]
            threads.run(work, range(50), 50)

    with pytest.raises(ValueError, match="0"):
        all_of_them()
    assert begun in ([0], [0, 1])
