"""The engine of one machine: batches are carried out by worker processes under our supervision.

A worker that dies costs its batch, which is queued again, and in the end cut until one file is
left that no worker survives; a new worker takes its place. Where this process alone is as fast,
because little is to be done, there are no workers.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
from collections import deque
from contextlib import suppress
from itertools import starmap
from math import inf
from time import monotonic, perf_counter, sleep

from raconvert.errors import RaconvertError, ReadFailed
from raconvert.files.threads import processors
from raconvert.migration.batches import carried_out_here, looked_at_seldom
from raconvert.migration.records import FAILED, Batch, Job, Outcome, Outcomes, Unit, text_of
from raconvert.migration.work import Worker
from raconvert.workers.processes import can_fork, clear, death, encoded, fork, how_ended, wide_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from queue import SimpleQueue
    from subprocess import Popen
    from typing import Any, Self

    from raconvert.migration.batches import Batches


# A worker process of the pool: takes batches line by line, and answers with their outcomes -------
# Lines are JSON. To the worker goes ``[number, max_memory, deaths, since, units]``; from it comes
# ``{}`` when it is ready, ``{"within": [done, all]}`` now and then with the bytes of a large
# file, ``{"at": number}`` for each unit of a batch if the job is timed, and for each batch
# ``{"seconds": …, "outcomes": …}``. It ends when its driver closes the pipe or dies, also in the
# middle of a batch, of which it then removes the temporary files.


_NOW_AND_THEN = 0.2  # seconds between two remarks on the file at hand
_BUFFER = 1 << 20
BEFORE = ',"outcomes":'  # what stands before them in an answer
_LIBRARY_PATIENCE = 60  # seconds that a library gets to come back, once the driver is gone


def main(asked: int, answers: int) -> None:
    """Serve in a new process, whose first line is the job; never returns."""
    with os.fdopen(os.dup(asked), "rb", buffering=0) as first:  # nothing of what follows is read
        job = Job(*json.loads(_line(first)))
    end_after(job, asked, answers)


def end_after(job: Job, asked: int, answers: int) -> None:
    """Serve, and end this process; never returns."""
    code = 1
    try:
        _serve(job, _arriving(asked), answers)
    except (KeyboardInterrupt, BrokenPipeError):
        code = 0
    except BaseException:  # noqa: BLE001 - the driver knows it from the exit code
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _line(file: Any) -> bytes:
    """One line, read byte by byte."""
    found = bytearray()
    while (byte := file.read(1)) not in (b"\n", b""):
        found += byte
    return bytes(found)


def _arriving(asked: int) -> SimpleQueue[bytes]:
    """The lines of the driver as they arrive; when there are no more, this process is last to end.

    An interruption from the terminal reaches driver and workers at once: the driver decides.
    """
    import signal
    from queue import SimpleQueue
    from threading import Thread, main_thread

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: what follows is cleaning up
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, interrupt)
    lines: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        from time import sleep

        with open(asked, "rb", buffering=_BUFFER) as file:
            for line in file:
                lines.put(line)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)  # wakes it up
        sleep(_LIBRARY_PATIENCE)
        os._exit(1)

    Thread(target=listen, daemon=True).start()
    return lines


def _serve(job: Job, lines: SimpleQueue[bytes], answers: int) -> None:
    """Carry out batches as they arrive, with as much memory as is said with each."""
    workers: dict[int, Worker] = {}
    last = 0.0

    def within(done: int, total: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last > _NOW_AND_THEN:
            last = now
            _answer(answers, {"within": [done, total]})

    def at(number: int) -> None:
        _answer(answers, {"at": number})

    _answer(answers, {})
    while True:
        number, max_memory, deaths, since, units = json.loads(lines.get())
        worker = workers.get(max_memory)
        if worker is None:
            options = {**job.options, "max_memory": max_memory}
            listeners = (within, at) if job.timed else (within,)
            worker = workers[max_memory] = Worker(job._replace(options=options), *listeners)
        batch = Batch(number, [Unit(*unit) for unit in units], deaths, since)
        begin = perf_counter()
        outcomes = worker.carry_out(batch)
        seconds = perf_counter() - begin
        _tell(answers, f'{{"seconds":{seconds!r}{BEFORE}{text_of(outcomes)}}}')


def _answer(answers: int, values: dict[str, Any]) -> None:
    _tell(answers, json.dumps(values, separators=(",", ":")))


def _tell(answers: int, text: str) -> None:
    left = memoryview(text.encode() + b"\n")
    while left:
        left = left[os.write(answers, left) :]


WORTH = 0.2  # seconds of work, as one process does it, for which workers are started
LEAST = 64 << 20  # bytes of --max-memory that each worker has, if their number was not asked for
_AT_ONCE = 2  # batches that a worker has been given
_TICK = 1.0  # seconds after which the progress is told again
_PIECE = 1 << 20
_PATIENCE = 10.0  # seconds that workers get to end
_FAILED_STARTS = 3  # workers in a row that end before they are ready


def carried_out(
    job: Job, batches: Batches, jobs: int | None, file_timeout: float | None = None
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units.

    `jobs`: how many workers; None: as many as there are processors and memory for, and none where
    this process alone is as fast. `file_timeout`: seconds without progress after which a file is
    given up, and the worker that is at it ended.
    """
    count = jobs or max(1, min(processors(), job.options["max_memory"] // LEAST))
    if os.name == "nt":  # pipes cannot be waited for
        count = 1
    if file_timeout is None and (jobs is None or count == 1):
        yield from carried_out_here(job, batches, most=None if count == 1 else WORTH)
    if batches.waiting:
        with looked_at_seldom() as before, Pool(job, count, before, file_timeout) as pool:
            yield from pool.carried_out(batches)


class Pool:
    """Worker processes for one job; a context manager.

    `threshold`: of the collector of garbage in copies of this process; `file_timeout`: as in
    `carried_out`.
    """

    def __init__(
        self,
        job: Job,
        count: int,
        threshold: tuple[int, int, int] | None = None,
        file_timeout: float | None = None,
    ) -> None:
        self._threshold = threshold or gc.get_threshold()
        self._whole: int = job.options["max_memory"]
        self._share = self._whole // count
        self._job = job
        self._count = count
        self._hands: list[_Hand] = []
        self._failed_starts = 0
        self._timeout = file_timeout or inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers: those at work are interrupted, and remove what they began."""
        for hand in self._hands:
            hand.let_go()
        until = monotonic() + _PATIENCE
        for hand in self._hands:
            ended = hand.has_ended(until)
            hand.bury()
            if not ended:
                self._clear(hand)
        self._hands = []

    def carried_out(self, batches: Batches) -> Iterator[tuple[Batch, list[Outcome]]]:
        """Yield each batch with the outcomes of its units, in the order in which they are ready."""
        batches.workers = self._count
        while batches.waiting:
            self._hand_out(batches)
            for hand in self._ready(batches):
                for said in hand.hear():
                    found = self._understood(said, hand, batches)
                    if found is None:
                        continue
                    self._hand_out(batches)  # at once, while this one is recorded
                    yield found
            for hand in self._late():
                yield self._given_up(hand, batches)

    def _hand_out(self, batches: Batches) -> None:
        """Give every worker a batch, and one to go on with that waits for no answer of ours.

        What needs all memory is given out when no worker is at work.
        """
        while len(self._hands) < min(self._count, self._busy() + batches.waiting):
            self._hands.append(_Hand(self._job, self._hands, self._threshold))
        for most in range(_AT_ONCE if batches.seconds_left else 1):  # 0: not known yet
            for hand in self._hands:
                if not hand.was_ready or len(hand.batches) > most:
                    continue
                if any(other.batches and other.memory > self._share for other in self._hands):
                    return
                batch, memory = batches.take(), self._share
                if batch is None and not self._busy():
                    batch, memory = batches.take_alone(), self._whole
                if batch is None:
                    return
                hand.give(batch, memory)

    def _busy(self) -> int:
        return sum(bool(hand.batches) for hand in self._hands)

    def _late(self) -> list[_Hand]:
        """The workers that are at a file for too long, and have nothing to say."""
        late = [hand for hand in self._hands if hand.quiet > self._timeout]
        pipes = [hand.answers for hand in late]
        heard = select.select(pipes, [], [], 0)[0] if late else []
        return [hand for hand in late if hand.answers not in heard]

    def _given_up(self, hand: _Hand, batches: Batches) -> tuple[Batch, list[Outcome]]:
        """End a worker that is at a file for too long; the outcome of that."""
        self._hands.remove(hand)
        hand.abandon()
        self._clear(hand)
        batch, *others = hand.batches
        for other in others:
            batches.handed_back(other)
        alone = batches.given_up(batch, hand.at)
        error = ReadFailed(
            f"was given up: for {self._timeout:g} seconds nothing came of it (`--file-timeout`)",
            path=os.path.join(self._job.source, alone.units[0].source),
            remedy="the disk or the network does not answer, or it takes longer: convert it alone "
            "to see more; nothing was written for it",
        )
        return alone, [Outcome(FAILED, error=encoded(error))]

    def _ready(self, batches: Batches) -> list[_Hand]:
        """Wait for workers that have something to say, have ended, or are late."""
        pipes = [hand.answers for hand in self._hands]
        tick = min(_TICK, self._timeout / 4)
        while not (found := select.select(pipes, [], [], tick)[0]) and not self._late():
            if batches.within is not None:
                batches.within(0, 0)
        return [hand for hand in self._hands if hand.answers in found]

    def _understood(
        self, said: dict[str, Any] | None, hand: _Hand, batches: Batches
    ) -> tuple[Batch, list[Outcome]] | None:
        """Process a worker's answer (None: it ended); return a batch with outcomes, or None."""
        if said is None:
            return self._buried(hand, batches)
        self._failed_starts = 0
        hand.note(said)
        if "within" in said and batches.within is not None:
            batches.within(*said["within"])
        if "outcomes" not in said:
            return None
        batch = hand.batches.popleft()
        outcomes = Outcomes(starmap(Outcome, said["outcomes"]), said["text"])
        batches.done(batch, said["seconds"])
        if hand.memory == self._whole:
            return batch, outcomes
        return batches.without_too_large(batch, outcomes)

    def _buried(self, hand: _Hand, batches: Batches) -> tuple[Batch, list[Outcome]] | None:
        """Remove a worker that has ended; the outcome of its batch, if that is to blame."""
        self._hands.remove(hand)
        hand.let_go()
        hand.has_ended(monotonic() + _PATIENCE)
        hand.bury()
        self._clear(hand)
        if not hand.was_ready:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise RaconvertError("worker processes cannot be started", got=hand.how)
        if not hand.batches:
            return None
        batch, *others = hand.batches  # it is done with one before it begins with the next
        for other in others:
            batches.handed_back(other)
        unit = batches.lost(batch)
        if unit is None:
            return None
        batches.done(batch, None)
        error = death(os.path.join(self._job.source, unit.source), hand.how)
        return batch, [Outcome(FAILED, error=encoded(error))]

    def _clear(self, hand: _Hand) -> None:
        """Remove the temporary files that a worker has left."""
        units = hand.batches[0].units if hand.batches else ()
        root = self._job.target
        for folder in {os.path.dirname(os.path.join(root, unit.target)) for unit in units}:
            clear(folder, hand.process.pid)


class _Hand:
    """A worker process, seen from its driver."""

    def __init__(self, job: Job, others: Sequence[_Hand], threshold: tuple[int, int, int]) -> None:
        asked, self._ask = wide_pipe()
        self.answers, answer = wide_pipe()
        self.batches: deque[Batch] = deque()  # the one that it is at work on, and the next
        self.memory = 0  # that it may use for it
        self.was_ready = False
        self.at = -1  # the unit of the batch, if the job is timed
        self._last = 0.0  # when it was heard of
        ours = [self._ask, self.answers]
        ours += [end for other in others for end in (other._ask, other.answers)]
        self.process: Popen[bytes] | _Forked
        if can_fork():
            self.process = _forked(job, asked, answer, ours, threshold)
        else:
            self.process = _spawned(asked, answer)
        os.close(asked)
        os.close(answer)
        self._heard = bytearray()
        if not isinstance(self.process, _Forked):
            self._say(job)

    @property
    def how(self) -> str:
        """How it ended, in words."""
        return how_ended(self.process.poll() or 0)

    def give(self, batch: Batch, memory: int) -> None:
        """Let it carry out a batch; if it has died meanwhile, `hear` says so."""
        self.batches.append(batch)
        self.memory = memory
        number, units, deaths, since = batch
        self._tell(f"[{number},{memory},{deaths},{since!r},{text_of(units)}]")

    def _say(self, values: Any) -> None:
        self._tell(json.dumps(values, separators=(",", ":")))

    def _tell(self, text: str) -> None:
        left = memoryview(text.encode() + b"\n")
        with suppress(BrokenPipeError):
            while left:
                left = left[os.write(self._ask, left) :]

    def hear(self) -> list[dict[str, Any] | None]:
        """Read its answers, at least one whole line; the last is None if the process has ended."""
        while True:
            piece = os.read(self.answers, _PIECE)
            self._heard += piece
            if not piece:
                return [None]
            if b"\n" in piece:
                break
        self.was_ready = True
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard = bytearray(rest)
        return [_understood(line) for line in lines]

    def note(self, said: dict[str, Any]) -> None:
        """Note which unit it is at, and that it goes on."""
        self._last = monotonic()
        self.at = said.get("at", -1 if "outcomes" in said else self.at)

    @property
    def quiet(self) -> float:
        """For how many seconds nothing came of the file that it is at."""
        return monotonic() - self._last if self.at >= 0 else 0.0

    def abandon(self) -> None:
        """End it, and do not wait for long: a disk that does not answer may hold it."""
        self.process.kill()
        self.let_go()
        self.has_ended(monotonic() + _PATIENCE)
        os.close(self.answers)

    def let_go(self) -> None:
        """Have it end: nobody asks any more."""
        if self._ask >= 0:
            os.close(self._ask)
            self._ask = -1

    def has_ended(self, until: float) -> bool:
        """True as soon as it has ended, False at the time `until` if it has not."""
        while self.process.poll() is None:
            if monotonic() > until:
                return False
            sleep(0.0005)
        return True

    def bury(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)


def _understood(line: bytes) -> dict[str, Any]:
    """Parse an answer of a worker; outcomes also as the text that goes into the journal."""
    said: dict[str, Any] = json.loads(line)
    if "outcomes" in said:
        said["text"] = line.decode().partition(BEFORE)[2][:-1]
    return said


class _Forked:
    """A copy of this process, with what `Popen` says of its processes."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or the negative number of its signal; None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait until it has ended."""
        return self._waited(0)

    def _waited(self, how: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else has waited for it
                pid, status = self.pid, 0
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def kill(self) -> None:
        """End it at once."""
        import signal

        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def _forked(
    job: Job, asked: int, answer: int, ours: Sequence[int], threshold: tuple[int, int, int]
) -> _Forked:
    """A worker that is a copy of this process, without the ends of pipes that are `ours`."""
    child = fork()
    if child == 0:
        try:
            gc.freeze()  # memory that nobody writes to stays shared
            gc.set_threshold(*threshold)
            for end in ours:
                if end >= 0:
                    os.close(end)
        finally:
            end_after(job, asked, answer)
    return _Forked(child)


def _spawned(asked: int, answer: int) -> Popen[bytes]:
    """A worker in a new process, which imports from where this one does."""
    import subprocess

    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from raconvert.migration.pool import main; main({asked}, {answer})"
    )
    return subprocess.Popen(  # noqa: S603 - this Python
        [sys.executable, "-c", code], pass_fds=(asked, answer), stdin=subprocess.DEVNULL
    )
