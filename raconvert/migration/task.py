"""What a cluster runs: one batch, in whatever process a scheduler has chosen for it.

Arguments and answers are texts of JSON, so that nothing but the name of a function is ever pickled.

A scheduler may run a task again when its worker died, and tells nobody. So a batch leaves a mark in
the destination while it is carried out: where one is found, a worker died of this batch, and not of
another one that it had waiting.
"""

from __future__ import annotations

import json
import os
import socket
from threading import Lock
from time import perf_counter

from raconvert import __version__
from raconvert.files.places import CREATE_FLAGS, remove
from raconvert.migration.records import Batch, Job, unit_of
from raconvert.migration.work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ONE_AT_A_TIME = Lock()  # also where a worker has many threads
_WORKERS: dict[str, Worker] = {}  # of the job at hand, kept between its batches


def carry_out(version: str, job: str, batch: str, run: str) -> str:
    """Carry out a batch; `run` is the name of the driver's connection (`sign_of_driver`).

    Answers ``{"outcomes": …, "seconds": …}``; or ``{"lost": true}`` if a worker died of the batch
    before; or ``{"refused": …}``, a reason why this worker can do nothing at all.
    """
    if version != __version__:
        return json.dumps(_refused(f"has raconvert {__version__}, the driver has {version}"))
    with _ONE_AT_A_TIME:
        return json.dumps(_carried_out(job, batch, run))


def _carried_out(job_text: str, batch_text: str, run: str) -> dict[str, Any]:
    job, batch = Job(*json.loads(job_text)), batch_of(json.loads(batch_text))
    for place in (job.source, sign_of_driver(job, run)):
        if "://" not in place and not os.path.exists(place):
            return _refused(f"does not see '{place}'")
    sign = sign_of_batch(job, run, batch)
    try:
        os.close(os.open(sign, CREATE_FLAGS, 0o600))
    except FileExistsError:
        return {"lost": True}
    except OSError as error:
        return _refused(f"cannot write to '{job.target}': {error.strerror}")
    try:
        if job_text not in _WORKERS:
            _WORKERS.clear()
            _WORKERS[job_text] = Worker(job)
        begin = perf_counter()
        outcomes = _WORKERS[job_text].carry_out(batch)
        return {"outcomes": outcomes, "seconds": perf_counter() - begin}
    finally:
        remove(sign)


def _refused(why: str) -> dict[str, Any]:
    return {"refused": f"worker {os.getpid()} on {socket.gethostname()} {why}"}


def batch_of(values: list[Any]) -> Batch:
    """The batch that JSON has made lists of."""
    number, units, *rest = values
    return Batch(number, [unit_of(unit) for unit in units], *rest)


def sign_of_driver(job: Job, run: str) -> str:
    """The path of a file by which workers know that they see the destination of the driver."""
    return os.path.join(job.target, f".raconvert-0-{job.mark}{run}-driver.tmp")


def sign_of_batch(job: Job, run: str, batch: Batch) -> str:
    """The path of the file that is there while a batch is carried out."""
    name = f".raconvert-0-{job.mark}{run}-{batch.number}-{batch.deaths}.tmp"
    return os.path.join(job.target, name)
