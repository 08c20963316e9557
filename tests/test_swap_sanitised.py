"""The compiled copy from file to file under the address and undefined-behaviour sanitisers.

It is compiled anew, and does what slices of Python do, with random and with hostile arguments, and
with system calls that are short, interrupted, or fail.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sanitised import ROOT, built, counts_of, run, spoiled

SOURCE = ROOT / "raconvert" / "files" / "_swap.c"

PROGRAM = r"""
import ctypes, errno, functools, importlib.machinery, importlib.util, os, random, signal, sys, tempfile

loader = importlib.machinery.ExtensionFileLoader("_swap", sys.argv[1])
fast = importlib.util.module_from_spec(importlib.util.spec_from_loader("_swap", loader))
loader.exec_module(fast)
rng = random.Random(11)
counts = {"swapped": 0, "copied": 0, "cut": 0, "refused": 0, "faults": 0, "short": 0, "interrupted": 0}
WIDTHS = [1, 1, 2, 4, 8, 16, 3, 10, 32, 5000]


def turned(data, width):
    out = bytearray(len(data))
    for at in range(width):
        out[at::width] = data[width - 1 - at :: width]
    return bytes(out)


for _ in range(600):
    width = rng.choice(WIDTHS)
    data, first = rng.randbytes(rng.randrange(3000) + width), rng.randrange(40)
    count = max(0, len(data) - first) // width * width
    slab = bytearray(data)
    fast.swap(memoryview(slab)[first : first + count], width)
    assert slab == data[:first] + turned(data[first : first + count], width) + data[first + count :]
    counts["swapped"] += 1

with tempfile.TemporaryDirectory() as top:
    os.chdir(top)
    content = rng.randbytes(200_003)
    with open("source", "wb") as file:
        file.write(content)
    source, target = os.open("source", os.O_RDONLY), os.open("target", os.O_RDWR | os.O_CREAT)

    def found(place, nbytes):
        return os.pread(target, nbytes, place)

    for _ in range(1200):
        width = rng.choice(WIDTHS)
        slab = rng.choice([1, 7, 64, 512, 4096, 4096, 65536, 1 << 17, 1 << 40])
        offset = rng.choice([0, 1, 128, rng.randrange(len(content) + 100)])
        place = rng.choice([0, 1, 56, 4096, 4095, rng.randrange(9000)])
        nbytes = rng.randrange(len(content) if slab > 64 else 3000) // width * width
        if rng.random() < 0.5:
            nbytes = min(nbytes, max(0, len(content) - offset)) // width * width
        os.ftruncate(target, 0), os.pwrite(target, b"x" * place, 0)
        buffer = bytearray(min(slab + width, nbytes) + rng.choice([0, 0, 3]))
        done = fast.copy(source, target, offset, place, nbytes, width, slab, buffer)
        there = max(0, len(content) - offset)
        assert 0 <= done <= min(nbytes, there) and done % width == 0
        if nbytes <= there:
            assert done == nbytes
            counts["copied"] += 1
        else:
            assert there - done < slab + width, (there, done, slab)
            counts["cut"] += 1
        assert found(0, place) == b"x" * place
        assert found(place, nbytes + 10) == turned(content[offset : offset + done], width)

    good = [source, target, 128, 56, 96_000, 8, 4096, bytearray(4104)]
    os.mkfifo("pipe")
    pipe, folder = os.open("pipe", os.O_RDWR | os.O_NONBLOCK), os.open(".", os.O_RDONLY)
    only_out = os.open("other", os.O_WRONLY | os.O_CREAT)
    mem, full = os.open("/proc/self/mem", os.O_RDONLY), os.open("/dev/full", os.O_WRONLY)
    odd = [
        (0, [None, "1", 1 << 40]), (1, [None, 1.5, 1 << 40]), (2, [-1, 1 << 62, 1 << 70, None]),
        (3, [-1, 1 << 62, 1 << 70]), (4, [-8, 96_001, 1 << 62, sys.maxsize, 1 << 70]),
        (5, [0, -1, -8, 7 << 20, sys.maxsize]), (6, [0, -1, 4097, 1 << 62, sys.maxsize]),
        (7, [None, b"x" * 5000, bytearray(), bytearray(7), bytearray(4103), bytearray(600),
             memoryview(bytearray(9000))[::2]]),
    ]
    for at, values in odd:
        for value in values:
            words = good.copy()
            words[at] = value
            try:
                fast.copy(*words)
                raise AssertionError((at, value))
            except (TypeError, ValueError, OverflowError, BufferError):
                counts["refused"] += 1
    for unread in (-1, 1 << 30, pipe, folder, only_out, mem):
        assert fast.copy(unread, target, 0, *good[3:]) == 0
        counts["refused"] += 1
    refusing = {-1: errno.EBADF, pipe: errno.ESPIPE, folder: errno.EBADF, full: errno.ENOSPC,
                source: errno.EBADF}
    for unwritten, code in refusing.items():
        try:
            fast.copy(source, unwritten, *good[2:])
            raise AssertionError(unwritten)
        except OSError as error:
            assert error.errno == code, (unwritten, error)
            counts["refused"] += 1

    # Writes that are short, interrupted, or fail, one after the other (tests/faults/shim.c).
    shim = ctypes.CDLL(None)
    shim.fault_disarm.restype = ctypes.c_long
    expected = turned(content[128 : 128 + 96_000], 8)
    names = {1: errno.ENOSPC, 2: errno.EIO, 3: None, 6: None}
    for kind, code in names.items():
        for at in range(1, 26):
            os.ftruncate(target, 0)
            shim.fault_arm(ctypes.c_long(at), kind)
            try:
                done, failed = fast.copy(*good), None
            except OSError as error:
                done, failed = None, error.errno
            calls = shim.fault_disarm()
            whole = found(56, 100_000)
            if code is None or at > calls:
                assert (done, failed, whole) == (96_000, None, expected), (kind, at)
                counts[{3: "short", 6: "interrupted"}.get(kind, "copied")] += 1
            else:
                assert failed == code and expected.startswith(whole), (kind, at, failed)
                assert len(whole) == (4040 + (at - 2) * 4096 if at > 1 else 0)  # to a border
                counts["faults"] += 1

    # A signal that came meanwhile is handled between two writes.
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    class Zero:  # no bytecode runs between the signal and the copy
        __index__ = staticmethod(functools.partial(getattr(shim, "raise"), signal.SIGUSR1))

    signal.signal(signal.SIGUSR1, stop)
    os.ftruncate(target, 0)
    shim.fault_arm(ctypes.c_long(3), 6)
    try:
        fast.copy(source, target, Zero(), *good[3:])
        raise AssertionError
    except Stop:
        shim.fault_disarm()
    assert 4096 < os.fstat(target).st_size < 3 * 4096
print(counts)
"""


@pytest.fixture(scope="module")
def sanitised(
    tmp_path_factory: pytest.TempPathFactory, library: Callable[..., tuple[str, list[str]]]
) -> tuple[Path, str]:
    return built(SOURCE, tmp_path_factory.mktemp("sanitised"), library)


def test_random_and_hostile_arguments(sanitised: tuple[Path, str]) -> None:
    counts = counts_of(*sanitised, PROGRAM)

    assert counts["copied"] > 300
    assert counts["cut"] > 40
    assert min(counts.values()) > 15


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("job->buffer.len - job->slab >= job->width", "job->buffer.len >= 0"),
        ("at + 32 <= nbytes", "at < nbytes"),
        ("bytes += put;", ""),
        ("if (ends)", "if (0)"),
        ("if (border < end)", "if (border + 1 < end && job->width == 1)"),
    ],
)
def test_the_sanitisers_are_at_work(
    good: str, bad: str, sanitised: tuple[Path, str], tmp_path: Path
) -> None:
    """The same with a fault put in."""
    done = run(spoiled(SOURCE, good, bad, tmp_path), sanitised[1], PROGRAM)

    assert done.returncode != 0
    assert any(
        word in done.stderr for word in ("AddressSanitizer", "AssertionError", "SystemError")
    )
