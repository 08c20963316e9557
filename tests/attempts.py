"""Conversions in processes of their own, timed and measured: what hostile files may cost.

Every file is converted in a child forked from a process that has imported what the children before
needed. It may take
four seconds of CPU, whatever else the machine does, and its peak of resident memory is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import raconvert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from raconvert.errors import RaconvertError

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 4.0  # of CPU
PATIENCE = 60.0  # seconds after which a conversion is killed that waits for something
MB = 1 << 20
PEAK = 300 * MB
REFUSALS = {"Corrupt", "Unsupported", "Unsafe", "TooLarge", "UnknownFormat", "NotSupportedYet",
            "ReadFailed", "NotFound", "UsageError"}  # fmt: skip

# Reads lines of JSON [source, target, options]; answers each with one: what the conversion, in a
# forked child, ended in, and the child's peak. Without a target the source is verified.
SERVER = """
import contextlib, gc, importlib, json, os, resource, select, signal, sys, time, traceback
import numpy, PIL.Image, lz4.block, yaml, zipfile, tarfile
import raconvert, raconvert.inspect.verify
import raconvert.plugins.npy, raconvert.plugins.npz, raconvert.plugins.png, raconvert.conversion.batch
import raconvert.plugins.png.stack, raconvert.plugins.png.pixels, raconvert.ra.leb128
import raconvert.ra.bits, raconvert.ra.lz4, raconvert.arrays.cast, raconvert.arrays.stack, raconvert.metadata.roundtrip
import raconvert.bundle.folder, raconvert.bundle.zipped, raconvert.bundle.tarred

def answer(source, target, options):
    try:
        if target is None:
            raconvert.inspect.verify.verify(source, **options)
            return {"kind": "", "text": ""}
        report = raconvert.convert(source, target, sync=False, **options)
        return {"kind": "", "text": " ".join(report.notes)}
    except raconvert.RaconvertError as error:
        return {"kind": type(error).__name__, "exit": error.exit_code, "text": str(error)}
    except BaseException:
        return {"kind": "raw", "text": traceback.format_exc()}

seconds, patience = map(float, sys.argv[1:])
for line in sys.stdin:
    source, target, options = json.loads(line)
    reading, writing = os.pipe()
    gc.freeze()  # a child that looks through what was there before copies every page of it
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (1 + int(seconds), 1 + int(seconds)))
        before = {*sys.modules}
        told = answer(source, target, options)
        told["imported"] = [name for name in sys.modules if name not in before]
        told = json.dumps(told).encode()
        while told:
            told = told[os.write(writing, told):]
        os._exit(0)
    os.close(writing)
    told, end = b"", time.monotonic() + patience
    while True:
        ready, _, _ = select.select([reading], [], [], max(0, end - time.monotonic()))
        piece = os.read(reading, 1 << 16) if ready else None
        if not piece:
            break
        told += piece
    os.close(reading)
    if piece is None:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    found = json.loads(told) if piece is not None and told else {"kind": "died", "text": str(status)}
    if piece is None or usage.ru_utime + usage.ru_stime > seconds:
        found = {"kind": "slow", "text": found["text"]}
    for name in found.pop("imported", []):  # so that the next child finds it there
        with contextlib.suppress(ImportError):  # what calls itself a module and is none
            importlib.import_module(name)
    print(json.dumps({**found, "peak": usage.ru_maxrss * 1024}), flush=True)
"""


class Answer(NamedTuple):
    """What became of one conversion."""

    kind: str
    text: str
    peak: int


@contextmanager
def server(seconds: float = SECONDS) -> Iterator[Callable[..., Answer]]:
    """Give a function that converts (or verifies) in a process of its own and says what became."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(seconds), str(PATIENCE)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def run(source: object, target: Path | None, **options: object) -> Answer:
            words = [str(s) for s in source] if isinstance(source, list) else str(source)
            request = [words, None if target is None else str(target), options]
            print(json.dumps(request), file=process.stdin, flush=True)
            found = json.loads(process.stdout.readline())
            return Answer(found["kind"], found["text"], found["peak"])

        yield run
        process.stdin.close()


def refuses(path: Path, row: tuple[bytes, type[RaconvertError], str], **options: Any) -> None:
    """Assert that bytes are refused as a file, by an error with these words, and nothing is written."""
    content, kind, words = row
    path.write_bytes(content)
    target = path.with_name("out.npz")
    with pytest.raises(kind, match=words) as caught:
        raconvert.convert(path, target, **options)
    assert path.name in str(caught.value)
    assert not target.exists()
