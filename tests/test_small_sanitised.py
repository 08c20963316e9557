"""The system calls of small files under the address and undefined-behaviour sanitisers.

They are compiled anew, and do the same as what stands in for them in Python, with random and with
hostile arguments, while other threads write, cut and replace the files, and with system calls that
are short or fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sanitised import ROOT, built, counts_of, hardened, run, spoiled

SOURCE = ROOT / "raconvert" / "files" / "_small.c"

PROGRAM = r"""
import ctypes, gc, importlib.machinery, importlib.util, os, random, socket, stat, sys, tempfile, threading

loader = importlib.machinery.ExtensionFileLoader("_small", sys.argv[1])
fast = importlib.util.module_from_spec(importlib.util.spec_from_loader("_small", loader))
loader.exec_module(fast)
from raconvert.files import small

read, write, look = small.IN_PYTHON
assert read is not fast.read_small
rng = random.Random(11)
counts = {"looked": 0, "read": 0, "odd": 0, "written": 0, "not": 0, "errors": 0, "raced": 0, "faults": 0}
MOST = small.MOST
os.umask(0o022)


def said(function, *args):
    try:
        return function(*args)
    except (TypeError, OverflowError, BufferError, ValueError) as error:
        return type(error)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


with tempfile.TemporaryDirectory() as top:
    os.chdir(top)
    os.mkdir("in"), os.mkdir("out"), os.mkdir("in/folder")
    os.mkfifo("in/pipe")
    socket.socket(socket.AF_UNIX).bind("in/socket")
    os.symlink("/dev/zero", "in/zero"), os.symlink("/dev/full", "in/full"), os.symlink("loop", "in/loop")
    os.symlink("nobody", "in/dangling")
    sizes = [0, 1, 64, 4096, 65535, 65536, 65537, MOST - 1, MOST, MOST + 1]
    for size in sizes:
        with open(f"in/{size}", "wb") as file:
            file.write(rng.randbytes(size))
        with open(f"in/{size}-hole", "wb") as file:
            file.truncate(size)
    os.symlink("64", "in/link")
    with open("in/unread", "wb") as file:
        file.write(b"x" * 70000)
    os.truncate("in/unread", 200000)  # a hole at its end
    folder, out = os.open("in", os.O_RDONLY), os.open("out", os.O_RDONLY)
    closed = os.dup(folder)
    os.close(closed)
    plain = os.open("in/64", os.O_RDWR)
    before = descriptors()

    odd_names = ["missing", "folder", "pipe", "socket", "zero", "full", "loop", "dangling", "unread", "",
                 ".", "..", "64/x", "a\0b", "\ud800", "x" * 255, "x" * 256, "x" * 5000, "a/" * 3000,
                 b"64", b"\xff\xfe", b"a\0b", "/dev/null", "/proc/self/mem", "/proc/self/status"]
    no_names = [None, 5, 1.5, ["64"], object(), memoryview(b"64"), ("64",)]
    places = [folder, out, closed, plain, -1, -100, -(1 << 31), (1 << 31) - 1]
    no_places = [1 << 31, -(1 << 31) - 1, 1 << 80, None, "in", 1.0, [folder]]
    names = [str(s) for s in sizes] + [f"{s}-hole" for s in sizes] + ["link"] + odd_names
    for _ in range(3000):
        name = rng.choice(names if rng.random() < 0.9 else no_names)
        place = folder if rng.random() < 0.7 else rng.choice(places + no_places)
        got, expected = said(fast.read_small, name, place), said(read, name, place)
        if isinstance(got, type) or isinstance(expected, type):
            assert isinstance(got, type), (name, place, got, expected)  # Python's own may open more
            counts["errors"] += 1
            continue
        assert got == expected, (name, place, got and len(got), expected and len(expected))
        counts["read" if got is not None else "odd"] += 1
    for args in ((), ("64",), ("64", folder, 0), ("64", folder, 0, 0, 0, 0, 0)):
        assert said(fast.read_small, *args) is TypeError
        assert said(fast.write_small, *args) in (TypeError, None)
        assert said(fast.look_at_all, *args) is TypeError or len(args) == 2
    assert descriptors() == before

    class Refuses:
        def __bool__(self):
            raise ValueError("no")

        def __fspath__(self):
            raise RuntimeError("no")

    for odd in (lambda: fast.write_small("odd", "-", b"x", 0o644, out, Refuses()),
                lambda: fast.write_small("odd", "-", "text", 0o644, out, 0),
                lambda: fast.write_small("odd", "-", memoryview(bytes(64))[::2], 0o644, out, 0)):
        assert said(odd) in (None, TypeError, BufferError, ValueError)
    try:
        fast.read_small(Refuses(), folder)
        raise AssertionError
    except RuntimeError:
        pass
    assert os.listdir("out") == []

    datas = [b"", b"x", bytes(4096), rng.randbytes(MOST), bytearray(100), memoryview(bytes(64)),
             memoryview(bytes(64))[8:32]]
    modes = [0o600, 0o644, 0o666, 0o777, 0o400, 0]
    for number in range(1200):
        name = rng.choice([f"new{number}", *["taken"] * 3, *odd_names]) if rng.random() < 0.5 else f"n{number}"
        data, mode, sync = rng.choice(datas), rng.choice(modes), rng.random() < 0.02
        place = out if rng.random() < 0.8 else rng.choice(places)
        if place == -100:  # the working directory: os.link does not follow what it links then
            continue
        beside = rng.choice(["beside", "beside", "beside", "taken", *odd_names])
        results = []
        for function in (fast.write_small, write):
            result = said(function, name, beside, data, mode, place, sync)
            found = None
            if result is not None and not isinstance(result, type):
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
                assert result == status.st_mtime_ns and stat.S_ISREG(status.st_mode)
                assert status.st_nlink == 1
                os.chmod(name, 0o600, dir_fd=place)
                with open(os.open(name, os.O_RDONLY, dir_fd=place), "rb") as file:
                    found = stat.S_IMODE(status.st_mode), file.read()
                os.unlink(name, dir_fd=place)
                assert found == (mode, bytes(data)), (name, mode, found[0])
            results.append(found)
        assert results[0] == results[1], (name, mode, place)
        counts["written" if results[0] else "not"] += 1
    assert descriptors() == before

    with open("out/taken", "wb") as file:
        file.write(b"mine")
    os.symlink("nobody", "out/dangling")
    for name in ("taken", "dangling"):
        assert fast.write_small(name, "-", b"new", 0o644, out, 0) is None
    with open("out/taken", "rb") as file:
        assert file.read() == b"mine" and not os.path.lexists("out/nobody")

    for beside in ("taken", "dangling"):
        for function in (fast.write_small, write):
            assert function("new", beside, b"new", 0o644, out, 0) is None
    assert not os.path.lexists("out/new")

    # Size and time of change of many.
    class Shrinks(os.PathLike):
        def __fspath__(self):
            del many[1:]
            return "64"

    for _ in range(200):
        chosen = [rng.choice(names) for _ in range(rng.randrange(40))]
        place = rng.choice([folder, folder, *places])
        got = said(fast.look_at_all, chosen, place)
        assert got == said(look, chosen, place), (chosen, place)
    many = [Shrinks(), "1", Shrinks(), "65536"]
    assert len(fast.look_at_all(many, folder)) == 1
    for odd in (("64", folder), (("64",), folder), ([5], folder), ([None], folder), (["64"], 1 << 40),
                (["64"], None), ([Refuses()], folder)):
        try:
            fast.look_at_all(*odd)
            raise AssertionError(odd)
        except (TypeError, OverflowError, RuntimeError):
            pass
    counts["looked"] = 200

    # Files that are written to, cut and replaced meanwhile: what was there at one moment, or None.
    whole = {bytes([n]) * length for n in range(4) for length in (300, 5000, 60000)}
    ends = threading.Event()

    def change(seed):
        mine = random.Random(seed)
        while not ends.is_set():
            data = mine.choice(sorted(whole))
            with open(f"in/race{seed}", "wb") as file:
                file.write(data)
            os.replace(f"in/race{seed}", "in/race")

    with open("in/race", "wb") as file:
        file.write(bytes(300))
    threads = [threading.Thread(target=change, args=(seed,)) for seed in range(2)]
    [thread.start() for thread in threads]
    for _ in range(1500):
        got = fast.read_small("race", folder)
        assert got is None or got in whole
        counts["raced"] += got is not None
    ends.set()
    [thread.join() for thread in threads]

    # System calls that are short or fail, one after the other (tests/faults/shim.c).
    shim = ctypes.CDLL(None)
    shim.fault_disarm.restype = ctypes.c_long
    for kind in (1, 2, 3):  # no space, input/output error, short
        for mode in (0o644, 0o666):  # as the umask leaves it, and one that is to be set
            for at in range(1, 9):
                shim.fault_arm(ctypes.c_long(at), kind)
                result = fast.write_small("fault", "-", b"x" * 5000, mode, out, 1)
                calls = shim.fault_disarm()
                there = os.path.lexists("out/fault")
                assert there is (result is not None), (kind, at, there, result)
                if there:
                    with open("out/fault", "rb") as file:
                        assert file.read() == b"x" * 5000
                    os.unlink("out/fault")
                else:
                    assert at <= calls
                    counts["faults"] += 1
    os.close(folder), os.close(out), os.close(plain)
print(counts)
"""


@pytest.fixture(scope="module")
def sanitised(
    tmp_path_factory: pytest.TempPathFactory, library: Callable[..., tuple[str, list[str]]]
) -> tuple[Path, str]:
    return built(SOURCE, tmp_path_factory.mktemp("sanitised"), library)


def test_random_and_hostile_arguments(sanitised: tuple[Path, str]) -> None:
    counts = counts_of(*sanitised, PROGRAM)

    assert counts["read"] > 400
    assert counts["written"] > 300
    assert min(counts.values()) > 15


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("PyBytes_FromStringAndSize(NULL, before.st_size)",
         "PyBytes_FromStringAndSize(NULL, before.st_size - before.st_size / 2)"),
        ("if (file >= 0)\n        close(file);", ""),
        ("write(file, data.buf, data.len) == data.len",
         "write(file, data.buf, data.len + 64) == data.len + 64"),
    ],
)  # fmt: skip
def test_the_sanitisers_are_at_work(
    good: str, bad: str, sanitised: tuple[Path, str], tmp_path: Path
) -> None:
    """The same with a fault put in."""
    done = run(spoiled(SOURCE, good, bad, tmp_path), sanitised[1], PROGRAM)

    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr or "AssertionError" in done.stderr


def test_the_build_is_hardened(
    tmp_path: Path, tool: Callable[..., str], library: Callable[..., tuple[str, list[str]]]
) -> None:
    """As setup.py builds it: symbols are resolved at the start and then read-only; a canary."""
    if sys.platform != "linux":
        pytest.skip("the words of GNU ld")
    library("python")
    asked = hardened("_small*.so", tmp_path, tool("readelf"))

    assert "__snprintf_chk" in asked("-sW")
    assert "GNU_STACK" in asked("-lW")
    assert "RWE" not in asked("-lW")
