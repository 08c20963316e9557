"""Copies from file to file: the same bytes with every system call, one thread or two."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from raconvert.errors import Changed, Corrupt, ReadFailed
from raconvert.files import copy, threads
from raconvert.files.source import Checksum, Extent, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.disk

SIZE = 300_000  # bytes of data: many slabs of the fixture


@pytest.fixture(autouse=True)
def small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slabs and limits so small that a file of the tests is a large one."""
    monkeypatch.setattr(copy, "SLAB_BYTES", 4096)
    monkeypatch.setattr(copy, "LARGE", 4096)
    monkeypatch.setattr(copy, "SHARED", 1)


def choose(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy by the compiled loop or by the one in Python."""
    if loop == "python":
        monkeypatch.setattr(copy, "copy_stretch", None)
    elif copy.copy_stretch is None:
        pytest.skip("_swap.c was not compiled: python setup.py build_ext --inplace")


@pytest.fixture(params=["python", "compiled"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The loop that copies, as the name of what it calls."""
    choose(request.param, monkeypatch)
    return {"python": "write_at", "compiled": "copy_stretch"}[request.param]


@pytest.fixture(params=["two", "one", "no-thread", "no-pwrite", "no-preadv", "no-fallocate",
                        "no-major", "no-statvfs", "full-soon", "two, compiled", "one, compiled",
                        "no-thread, compiled", "full-soon, compiled"])  # fmt: skip
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the system has: all that makes copies fast, or one thing less."""
    name, _, loop = request.param.partition(", ")
    choose(loop or "python", monkeypatch)
    missing = {"no-pwrite": "pwrite", "no-preadv": "preadv", "no-fallocate": "posix_fallocate",
               "no-major": "major", "no-statvfs": "fstatvfs"}  # fmt: skip
    monkeypatch.setattr(threads, "processors", lambda: 1 if name == "one" else 2)
    if name in missing:
        monkeypatch.delattr(os, missing[name], raising=False)
    if name == "no-thread":

        def start(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)
    elif name == "full-soon" and hasattr(os, "fstatvfs"):
        full = os.statvfs_result((4096, 4096, 10, 1, 1, 10, 10, 10, 0, 255))
        monkeypatch.setattr(os, "fstatvfs", lambda _: full)
    if name not in ("no-major", "no-fallocate"):
        monkeypatch.setattr(copy, "_in_memory", lambda _: True)
    return str(name)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors, and a file system in memory."""
    if not (hasattr(os, "pwrite") and hasattr(os, "preadv")):
        pytest.skip("this system has no pwrite or no preadv: one thread copies")
    monkeypatch.setattr(threads, "processors", lambda: 2)
    monkeypatch.setattr(copy, "_in_memory", lambda _: True)


def source_of(tmp_path: Path, before: int, swap: int = 1) -> tuple[Extent, bytes]:
    """A file of random bytes, and an extent in it with its bytes."""
    data = np.random.default_rng(before).integers(0, 256, SIZE // swap * swap, "u1").tobytes()
    path = tmp_path / "source"
    path.write_bytes(bytes(before) + data + b"behind it")
    return Extent(str(path), before, len(data), swap), data


def reversed_numbers(data: bytes, width: int) -> bytes:
    """The bytes of every number of this width the other way round, number by number."""
    return b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(("before", "header"), [(128, 64), (0, 5000), (4097, 3)])
def test_bytes_arrive(system: str, width: int, before: int, header: int, tmp_path: Path) -> None:
    extent, data = source_of(tmp_path, before, width)
    seen: list[int] = []
    with io.FileIO(tmp_path / "target", "w+b") as file:
        copy.copy_extent(b"h" * header, extent, file, seen.append)
        assert file.tell() == header + len(data)

    assert (tmp_path / "target").read_bytes() == b"h" * header + reversed_numbers(data, width)
    assert sum(seen) == len(data)


def test_bytes_arrive_in_the_middle_of_a_file(system: str, tmp_path: Path) -> None:
    extent, data = source_of(tmp_path, 7, 4)
    (tmp_path / "target").write_bytes(b"x" * 400_000)
    with io.FileIO(tmp_path / "target", "r+b") as file:
        copy.copy_extent_to(extent, file, 333)

    found = (tmp_path / "target").read_bytes()
    assert found[333 : 333 + len(data)] == reversed_numbers(data, 4)
    assert set(found[:333] + found[333 + len(data) :]) == {ord("x")}


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system knows no holes")
def test_holes_stay_holes(system: str, tmp_path: Path) -> None:
    with open(tmp_path / "source", "wb") as file:
        for place in (0, 1 << 20, (2 << 20) + 4096):
            file.seek(place)
            file.write(os.urandom(40_000))
        file.truncate(4 << 20)
    data = (tmp_path / "source").read_bytes()
    with io.FileIO(tmp_path / "target", "w+b") as file:
        copy.copy_extent(b"12345678", Extent(str(tmp_path / "source"), 16, len(data) - 16, 8), file)

    target = tmp_path / "target"
    assert target.read_bytes() == b"12345678" + reversed_numbers(data[16:], 8)
    if system not in ("no-pwrite", "full-soon"):
        assert target.stat().st_blocks * 512 < 1 << 20


def test_two_threads_take_part(
    loop: str, memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits, once, until the other has begun."""
    extent, data = source_of(tmp_path, 128)
    both = threading.Barrier(2, timeout=60)
    names: set[str] = set()
    really = getattr(copy, loop)

    def write(*words: object) -> int:
        if threading.current_thread().name not in names:
            names.add(threading.current_thread().name)
            both.wait()
        return int(really(*words))

    monkeypatch.setattr(copy, loop, write)
    with io.FileIO(tmp_path / "target", "w+b") as file:
        copy.copy_extent(b"", extent, file)

    assert len(names) == 2
    assert (tmp_path / "target").read_bytes() == data


@pytest.mark.parametrize("who", ["main", "other"])
def test_what_fails_in_either_thread_is_raised(
    who: str, loop: str, memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extent, _ = source_of(tmp_path, 128)
    begun = threading.Barrier(2, timeout=60)
    first: set[str] = set()
    really = getattr(copy, loop)

    def write(*words: object) -> int:
        name = threading.current_thread().name
        if name not in first:
            first.add(name)
            begun.wait()
        if (threading.current_thread() is threading.main_thread()) == (who == "main"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(really(*words))

    monkeypatch.setattr(copy, loop, write)
    before = set(threading.enumerate())
    with io.FileIO(tmp_path / "target", "w+b") as file, pytest.raises(OSError, match="No space"):
        copy.copy_extent(b"", extent, file)

    assert not set(threading.enumerate()) - before


def test_an_interruption_ends_both(loop: str, memory: None, tmp_path: Path) -> None:
    extent, _ = source_of(tmp_path, 128)
    seen: list[int] = []

    def progress(nbytes: int) -> None:
        seen.append(nbytes)
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    with io.FileIO(tmp_path / "target", "w+b") as file, pytest.raises(KeyboardInterrupt):
        copy.copy_extent(b"", extent, file, progress)

    assert len(seen) == 1
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("width", [1, 8])
def test_a_source_that_becomes_shorter_is_refused(loop: str, width: int, tmp_path: Path) -> None:
    """The message names the first byte that is missing, whichever loop came upon it."""
    extent, _ = source_of(tmp_path, 128, width)
    extent.nbytes += 10_000
    size = os.stat(extent.path).st_size
    with (
        io.FileIO(tmp_path / "target", "w+b") as file,
        pytest.raises(Corrupt, match="file became shorter while it was read") as caught,
    ):
        copy.copy_extent(b"", extent, file)

    assert caught.value.where == f"byte {size}"
    assert caught.value.expected == f"{extent.nbytes} bytes of data"
    assert caught.value.got == f"{size - 128}"


def test_a_source_that_cannot_be_read(loop: str, tmp_path: Path) -> None:
    """The first page of a process's memory is not there."""
    if not os.path.exists("/proc/self/mem"):
        pytest.skip("this system has no /proc/self/mem")
    extent = Extent("/proc/self/mem", 0, 100_000)
    source = os.open("/proc/self/mem", os.O_RDONLY)
    with (
        open(source, "rb", buffering=0),
        io.FileIO(tmp_path / "target", "w+b") as file,
        pytest.raises(ReadFailed, match="Input/output error"),
    ):
        copy._Copy(source, extent, file, 0, None).all([(0, 100_000)])


def test_a_full_disk(loop: str, tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    extent, _ = source_of(tmp_path, 128)
    with io.FileIO("/dev/full", "r+b") as file, pytest.raises(OSError, match="No space left"):
        copy.copy_extent_to(extent, file, 0)


def test_a_source_that_changes_is_refused(loop: str, memory: None, tmp_path: Path) -> None:
    extent, _ = source_of(tmp_path, 128)
    status = os.stat(extent.path)
    extent.identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    os.close(open_regular(extent.path, extent.identity))
    with io.FileIO(tmp_path / "target", "w+b") as file, pytest.raises(Changed):
        copy.copy_extent(b"", extent, file, lambda _: os.utime(extent.path, ns=(1, 1)))


def test_a_checksum_is_compared_in_order(
    memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zlib import crc32

    monkeypatch.setattr(threads, "shared", lambda *_: pytest.fail("the order is free then"))
    monkeypatch.setattr(copy, "copy_stretch", lambda *_: pytest.fail("Python sees no bytes then"))
    extent, data = source_of(tmp_path, 128)
    for value in (crc32(data), crc32(data) ^ 1):
        extent.checksum = Checksum(128, 128 + len(data), value, "data")
        with io.FileIO(tmp_path / "target", "w+b") as file:
            if value == crc32(data):
                copy.copy_extent(b"", extent, file)
                assert (tmp_path / "target").read_bytes() == data
            else:
                with pytest.raises(Corrupt, match="data is damaged"):
                    copy.copy_extent(b"", extent, file)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot allocate")
@pytest.mark.parametrize("kind", ["disk", "memory", "full memory"])
def test_room_is_taken_where_that_is_worth_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "posix_fallocate", lambda _fd, _begin, size: asked.append(size))
    monkeypatch.setattr(copy, "_in_memory", lambda _: kind != "disk")
    free = 1 if kind == "full memory" else 1 << 20
    room = os.statvfs_result((4096, 4096, free, free, free, 10, 10, 10, 0, 255))
    monkeypatch.setattr(os, "fstatvfs", lambda _: room)
    with io.FileIO(tmp_path / "target", "w+b") as file:
        copy.reserve(file, 10_000)

    assert asked == ([] if kind == "memory" else [10_000])


@pytest.mark.parametrize("folder", [None, "/dev/shm", "/", "/tmp"])
def test_file_systems_in_memory_are_known(
    folder: str | None, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """As `stat` of coreutils names them, by their magic numbers."""
    place = folder or str(tmp_path)
    if sys.platform != "linux" or not os.access(place, os.W_OK):
        pytest.skip(f"no file can be made in {place}, or this is not Linux")
    with tempfile.TemporaryFile(dir=place, buffering=0) as file:
        words = [tool("stat"), "-L", "-f", "-c", "%T", f"/proc/{os.getpid()}/fd/{file.fileno()}"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        assert copy._in_memory(file) == (said in ("tmpfs", "ramfs"))


def test_a_system_without_a_list_of_mounts_has_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "major", lambda _: 0, raising=False)
    monkeypatch.setattr(os, "minor", lambda _: 12345678, raising=False)
    with io.FileIO(tmp_path / "target", "w") as file:
        assert not copy._in_memory(file)

        def missing(*_: object) -> None:
            raise FileNotFoundError

        monkeypatch.setattr("builtins.open", missing)
        assert not copy._in_memory(file)


@pytest.mark.parametrize("way", ["compiled", "numpy"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 10, 16, 32])
def test_numbers_are_reversed(way: str, width: int) -> None:
    turn = copy._swap if way == "compiled" else copy.BY_NUMPY
    if way == "compiled" and turn is copy.BY_NUMPY:
        pytest.skip("_swap.c was not compiled: python setup.py build_ext --inplace")
    data = os.urandom(5 + 1000 * width)
    for first in (0, 1, 5):  # numbers that are not aligned
        count = (len(data) - first) // width * width
        slab = bytearray(data)
        turn(memoryview(slab)[first : first + count], width)
        assert slab[first : first + count] == reversed_numbers(data[first : first + count], width)
        assert slab[:first] == data[:first]
        assert slab[first + count :] == data[first + count :]


def test_the_compiled_loop_refuses_half_a_number() -> None:
    if copy._swap is copy.BY_NUMPY:
        pytest.skip("_swap.c was not compiled: python setup.py build_ext --inplace")
    for width in (0, -1, 4, sys.maxsize):
        with pytest.raises(ValueError, match="whole number of numbers"):
            copy._swap(bytearray(6), width)
    with pytest.raises((TypeError, BufferError)):
        copy._swap(b"12345678", 4)
    copy._swap(bytearray(), 4)


def test_progress_comes_between_stretches(loop: str, tmp_path: Path) -> None:
    extent, data = source_of(tmp_path, 128, 8)
    seen: list[int] = []
    with io.FileIO(tmp_path / "target", "w+b") as file:
        copy.copy_extent(b"h" * 100, extent, file, seen.append)

    assert sum(seen) == len(data)
    slabs = copy.STRETCH if loop == "copy_stretch" else 1
    assert max(seen) <= copy.SLAB_BYTES * slabs + extent.swap


def test_large_pieces_are_written_in_slabs(tmp_path: Path) -> None:
    lengths: list[int] = []

    class Noted(io.FileIO):
        def write(self, data: memoryview) -> int:  # type: ignore[override]
            lengths.append(len(data))
            return super().write(data[:3000])  # the system may take less

    pieces = [b"header", os.urandom(20_001), np.arange(1000.0), b"", bytearray(b"end")]
    with Noted(tmp_path / "target", "w") as file:
        total = copy.write_all(file, pieces)

    expected = b"".join(bytes(memoryview(piece).cast("B")) for piece in pieces if len(piece))
    assert (tmp_path / "target").read_bytes() == expected
    assert total == len(expected)
    assert max(lengths) == copy.SLAB_BYTES
