"""A scheduler and workers of Dask as processes of their own, that tests may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
}


class Dask:
    """A scheduler with workers on this machine; a context manager that ends all of them."""

    def __init__(self, folder: Path, workers: int = 2, **environment: str) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None
        self._count = workers
        self._port = 0
        self._environment = {**os.environ, **_SETTINGS, **environment}

    def __enter__(self) -> Dask:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start_scheduler()
        self.start_workers()
        return self

    def __exit__(self, *_: object) -> None:
        processes = [one for one in (*self.workers, self.scheduler) if one is not None]
        for process in processes:  # what is killed leaves semaphores behind
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            end_group(process)

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def start_scheduler(self) -> None:
        """Start it, at the port that it had before."""
        self.file.unlink(missing_ok=True)
        words = ["--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard",
                 "--no-show", "--scheduler-file", str(self.file)]  # fmt: skip
        self.scheduler = self._started("scheduler", words)
        until = time.monotonic() + 60
        while not (self.file.exists() and self.file.stat().st_size):
            if time.monotonic() > until or self.scheduler.poll() is not None:
                raise RuntimeError((self.folder / "scheduler.log").read_text())
            time.sleep(0.02)
        self._port = int(self.address.rsplit(":", 1)[1])

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with the nanny that starts it again when it dies."""
        words = ["--scheduler-file", str(self.file), "--nthreads", "1", "--no-dashboard",
                 "--local-directory", str(self.folder), "--memory-limit", "0"]  # fmt: skip
        process = self._started("worker", words)
        self.workers.append(process)
        return process

    def _started(self, kind: str, words: list[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{kind}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *words], stdout=log, stderr=log,
                env=self._environment, start_new_session=True,
            )  # fmt: skip

    def kill_scheduler(self) -> None:
        """Kill the scheduler, with what it knows."""
        assert self.scheduler is not None
        end_group(self.scheduler)

    def kill_workers(self) -> None:
        """Kill all workers, with those that would start them again."""
        for process in self.workers:
            end_group(process)
        self.workers = []

    def start_workers(self) -> None:
        """Start as many workers as in the beginning: old ones end when they lose their scheduler."""
        for _ in range(self._count):
            self.start_worker()

    def tell_workers(self, code: str) -> None:
        """Run a line of Python in every worker."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(self._count, timeout=60)
            client.run(exec, code, {})


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
