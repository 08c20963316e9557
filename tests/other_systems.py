"""raconvert as on a system that has less: `python tests/other_systems.py FOLDER [SYSTEM...]`.

A system is a name of `SYSTEMS`, or the name of one call that is taken away (`os.preadv`). For each,
a copy of this process gives the modules of raconvert, and nothing else, other `os`, `sys`, `signal`
and `ctypes`: those without what the system lacks, and with the manners of Windows where that is
meant. Then the conversions of `JOBS` run, and what they write is read by numpy, h5py, scipy and
Pillow. One line of JSON for each system says what failed, and what of the missing was asked for.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl as real_fcntl
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("raconvert.files._small", "raconvert.files._swap", "raconvert.plugins.png._fast")
NOT_ON_MACOS = {
    "os.O_TMPFILE", "os.posix_fallocate", "os.sched_getaffinity", "fcntl.F_SETPIPE_SZ",
    "ctypes.renameat2", "ctypes.sync_file_range", "ctypes.syncfs", "/proc", "raconvert.files._small",
}  # fmt: skip
NOT_ON_WINDOWS = NOT_ON_MACOS | {
    "os.O_CLOEXEC", "os.O_DIRECTORY", "os.O_NOFOLLOW", "os.O_NONBLOCK", "os.SEEK_DATA",
    "os.SEEK_HOLE", "os.WNOHANG", "os.chown", "os.fchmod", "os.fork", "os.fstatvfs", "os.geteuid",
    "os.getuid", "os.killpg", "os.major", "os.minor", "os.mkfifo", "os.pread", "os.preadv",
    "os.pwrite", "os.register_at_fork", "os.sendfile", "os.setsid", "os.statvfs", "os.sysconf",
    "os.uname", "os.writev", "os.copy_file_range", "os.getxattr", "os.setxattr", "os.readv",
    "os.pipe2", "os.dup3", "os.fdatasync", "os.sync",
    "signal.SIGALRM", "signal.SIGCHLD", "signal.SIGCONT", "signal.SIGHUP", "signal.SIGKILL",
    "signal.SIGPIPE", "signal.SIGTSTP", "signal.SIGUSR1", "signal.pthread_kill",
    "signal.pthread_sigmask", "signal.setitimer",
    "fcntl", "grp", "pwd", "resource", "termios", "tty", *COMPILED,
}  # fmt: skip
# Of a USB stick or a share: neither links nor what else file systems of Linux can.
PLAIN_DISK = {"ctypes.renameat2", "raconvert.files._small"}
SYSTEMS = {"macos": NOT_ON_MACOS, "windows": NOT_ON_WINDOWS, "plain disk": PLAIN_DISK}
O_BINARY = 0o100000  # of Linux a flag that does nothing


# A system that has less ---------------------------------------------------------------------------


class Less(types.ModuleType):
    """A module without some names, and with others in place of some; `asked` gets what is missed."""

    def __init__(self, real: Any, missing: set[str], asked: set[str], own: dict[str, Any]) -> None:
        super().__init__(real.__name__)
        self.__dict__["_told"] = real, missing, asked
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        """The attribute of the real module, if it is not missing."""
        real, missing, asked = self.__dict__["_told"]
        if f"{real.__name__}.{name}" in missing:
            asked.add(f"{real.__name__}.{name}")
            raise AttributeError(f"module '{real.__name__}' has no attribute '{name}' here")
        return getattr(real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it in the real module, as for `sys.stdout`."""
        setattr(self.__dict__["_told"][0], name, value)


def is_open(path: Any) -> bool:
    """True if this process has a file open, or mapped."""
    try:
        place = os.path.realpath(path)
        links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if n != "-"]
    except OSError:
        return False
    return place in links


def windows(asked: set[str]) -> dict[str, dict[str, Any]]:  # noqa: C901 - a function for each call
    """What Windows does otherwise: files in use keep their names, and are bytes if told so."""

    def denied(path: Any) -> PermissionError:
        return PermissionError(errno.EACCES, "The process cannot access the file", os.fspath(path))

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*what: Any, **how: Any) -> Any:
            asked.add(f"windows: {call.__name__}")
            return call(*what, **how)

        return called

    def here(dir_fd: int | None) -> None:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")

    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        here(dir_fd)
        if os.path.isdir(path) or os.fspath(path).startswith("/proc"):
            raise denied(path)
        if not flags & O_BINARY and path != os.devnull:
            asked.add(f"text mode: {path}")
        return os.open(path, flags & ~O_BINARY, mode)

    @noted
    def unlink(path: Any, *, dir_fd: int | None = None) -> None:
        here(dir_fd)
        if is_open(path):
            raise denied(path)
        os.unlink(path)

    @noted
    def rename(a: Any, b: Any) -> None:
        if os.path.lexists(b):
            raise FileExistsError(errno.EEXIST, "Cannot create a file that exists", b)
        replace(a, b)

    @noted
    def replace(a: Any, b: Any) -> None:
        if is_open(a) or is_open(b):
            raise denied(b)
        if os.path.isdir(b):
            raise denied(b)
        os.replace(a, b)

    @noted
    def link(a: Any, b: Any, **how: Any) -> None:
        if "follow_symlinks" in how or "src_dir_fd" in how or "dst_dir_fd" in how:
            raise NotImplementedError("link: follow_symlinks unavailable on this platform")
        os.link(a, b)

    @noted
    def fsync(descriptor: int) -> None:
        if real_fcntl.fcntl(descriptor, real_fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        os.fsync(descriptor)

    def told(status: os.stat_result) -> Any:
        left_out = ("st_blocks", "st_blksize", "st_rdev")
        names = [n for n in dir(status) if n.startswith("st_") and n not in left_out]
        return types.SimpleNamespace(**{name: getattr(status, name) for name in names})

    def stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> Any:
        here(dir_fd)
        return told(os.stat(path, follow_symlinks=follow_symlinks))

    def access(path: Any, mode: int, *, dir_fd: int | None = None, **how: Any) -> bool:
        here(dir_fd)
        if how:
            raise NotImplementedError("access: follow_symlinks unavailable on this platform")
        return os.access(path, mode)

    def listdir(path: Any = ".") -> list[str]:
        if isinstance(path, int):
            raise TypeError("listdir: path should be string, bytes, os.PathLike or None, not int")
        return os.listdir(path)

    def select(*descriptors: Any) -> None:
        raise OSError(errno.EINVAL, "An operation was attempted on something that is not a socket")

    def locking(descriptor: int, how: int, nbytes: int) -> None:
        try:
            real_fcntl.flock(descriptor, real_fcntl.LOCK_EX | real_fcntl.LOCK_NB)
        except OSError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    calls = {
        "open": open_, "unlink": unlink, "remove": unlink, "rename": rename, "replace": replace,
        "link": link, "fsync": fsync, "stat": stat, "access": access, "listdir": listdir,
        "lstat": lambda path: told(os.lstat(path)), "fstat": lambda file: told(os.fstat(file)),
        "O_BINARY": O_BINARY, "name": "nt", "supports_dir_fd": set(), "supports_fd": set(),
        "supports_follow_symlinks": {stat},
    }  # fmt: skip
    locks = {"LK_LOCK": 1, "LK_NBLCK": 2, "locking": noted(locking)}
    return {
        "os": calls,
        "sys": {"platform": "win32"},
        "select": {"select": select},
        "msvcrt": locks,
    }


def plain_disk(asked: set[str]) -> dict[str, Any]:
    """What a plain disk refuses."""

    def refused(name: str, code: int) -> Callable[..., Any]:
        def call(*what: Any, **how: Any) -> Any:
            asked.add(f"plain disk: {name}")
            raise OSError(code, os.strerror(code))

        return call

    def open_(path: Any, flags: int, *what: Any, **how: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return refused("O_TMPFILE", errno.EOPNOTSUPP)()
        return os.open(path, flags, *what, **how)

    return {
        "open": open_,
        "link": refused("link", errno.EPERM),
        "posix_fallocate": refused("posix_fallocate", errno.EOPNOTSUPP),
    }


def own_words(system: str, asked: set[str], missing: set[str]) -> dict[str, dict[str, Any]]:
    """What a system says in place of Linux."""
    own: dict[str, dict[str, Any]] = {}
    if system == "windows":
        own = windows(asked)
    elif system == "macos":
        own = {"sys": {"platform": "darwin"}}
    elif system == "plain disk":
        own = {"os": plain_disk(asked)}
    import ctypes

    if "/proc" in missing and system != "windows":

        def open_(path: Any, *how: Any, **more: Any) -> int:
            if os.fspath(path).startswith("/proc"):
                asked.add("/proc")
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            return os.open(path, *how, **more)

        own.setdefault("os", {})["open"] = open_

    def library(name: str | None, **how: Any) -> Less:
        if name is None and system == "windows":
            raise TypeError("bad argument type for built-in operation")
        real = ctypes.CDLL(name, **how)
        real.__name__ = "ctypes"
        return Less(real, missing, asked, {})

    own["ctypes"] = {"CDLL": library}
    return own


class Importing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives each module of raconvert builtins of its own, whose imports are those of the system."""

    def __init__(self, system: str, missing: set[str], asked: set[str]) -> None:
        own = own_words(system, asked, missing)
        self._missing, self._asked = missing, asked
        self._modules: dict[str, Any] = {}
        names = {name.partition(".")[0] for name in missing} | own.keys()
        for name in names - {"/proc", "raconvert", "fcntl" if "fcntl" in missing else ""}:
            if name not in missing:
                real = types.ModuleType(name) if name == "msvcrt" else importlib.import_module(name)
                self._modules[name] = Less(real, missing, asked, own.get(name, {}))
        self._builtins = {**vars(builtins), "__import__": self._import, "open": self._open}

    def _import(self, name: str, *how: Any, **more: Any) -> Any:
        if name in self._missing:
            self._asked.add(name)
            raise ImportError(f"No module named '{name}' here")
        found = self._modules.get(name.partition(".")[0])
        return builtins.__import__(name, *how, **more) if found is None else found

    def _open(self, path: Any, *how: Any, **more: Any) -> Any:
        if "/proc" in self._missing and str(path).startswith("/proc"):
            self._asked.add("/proc")
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return open(path, *how, **more)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Find modules of raconvert where they are, to be loaded here."""
        if name.partition(".")[0] != "raconvert":
            return None
        if name in self._missing:
            self._asked.add(name)
            raise ImportError(f"{name} is not compiled here")
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loading(spec.loader, self._builtins)
        return spec


class Loading(importlib.abc.Loader):
    """Loads a module from source with other builtins."""

    def __init__(self, real: Any, own: dict[str, Any]) -> None:
        self._real, self._own = real, own

    def create_module(self, spec: Any) -> None:
        """As usual."""

    def exec_module(self, module: Any) -> None:
        """Run its code."""
        module.__dict__["__builtins__"] = self._own
        exec(self._real.get_code(module.__name__), module.__dict__)


# What is converted --------------------------------------------------------------------------------

SMALL = np.arange(600, dtype="<i4").reshape(20, 30)
LARGE = np.arange(5 << 20, dtype=">f4").reshape(5, 1024, 1024)  # shared by threads in memory


def raconvert(*words: str, code: int = 0) -> str:
    """Run the command line; what it has printed."""
    from raconvert.cli import main

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        ended = main(words)
    assert ended == code, f"{words}: exit code {ended}, not {code}\n{text.getvalue()}"
    return text.getvalue()


def same(path: str, values: np.ndarray) -> None:
    """Compare a file of numpy with values."""
    found = np.load(path)
    assert found.dtype.newbyteorder("=") == values.dtype.newbyteorder("="), found.dtype
    assert np.array_equal(found, values), path


def small() -> None:
    """New, refused, and replaced."""
    np.save("a.npy", SMALL)
    raconvert("a.npy", "-o", "a.ra")
    assert Path("a.ra").read_bytes()[64:] == SMALL.tobytes()
    raconvert("a.npy", "-o", "a.ra", code=5)
    raconvert("a.npy", "-o", "a.ra", "--overwrite")
    raconvert("a.ra", "-o", "back.npy")
    same("back.npy", SMALL)


def large() -> None:
    """Swapped on the way, reserved, and written from several places."""
    np.save("large.npy", LARGE)
    raconvert("large.npy", "-o", "large.ra")
    assert np.array_equal(np.fromfile("large.ra", "<f4", offset=72), LARGE.ravel())
    raconvert("large.ra", "-o", "large.h5")
    with h5py.File("large.h5") as file:
        assert np.array_equal(next(iter(file.values()))[:], LARGE)
    raconvert("verify", "large.h5", "--against", "large.npy")


def sparse() -> None:
    """A file that is mostly hole."""
    with open("sparse.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 20,)}
        )
        begin = file.tell()
        file.truncate(begin + (8 << 20))
        file.seek(begin + (1 << 22))
        file.write(np.float64(7).tobytes())
    raconvert("sparse.npy", "-o", "sparse.ra")
    raconvert("sparse.ra", "-o", "dense.npy")
    values = np.zeros(1 << 20)
    values[1 << 19] = 7
    same("dense.npy", values)


def transposed() -> None:
    """Into the other order, and back."""
    np.save("t.npy", SMALL)
    raconvert("t.npy", "-o", "t.mat")
    raconvert("t.mat", "-o", "u.npy")
    same("u.npy", SMALL)


def stacked() -> None:
    """Many images, by several processes where there may be some."""
    os.mkdir("images")
    images = np.random.default_rng(1).integers(0, 256, (300, 28, 28), np.uint8)
    for number, image in enumerate(images):
        Image.fromarray(image).save(f"images/{number}.png")
    raconvert("images/*.png", "-o", "images.ra")
    raconvert("images.ra", "-o", "images.npy")
    same("images.npy", images)
    raconvert("images/*.png", "-o", "again.npy", "--jobs", "2")
    same("again.npy", images)
    raconvert("images.ra", "--planes", "-o", "pages.png")
    assert np.array_equal(np.asarray(Image.open("pages_299.png")), images[299])


def chunked() -> None:
    """HDF5 in compressed chunks, read and written."""
    values = np.arange(1 << 18, dtype="<i8").reshape(512, 512)
    with h5py.File("c.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(64, 64), compression="gzip")
        file["b"] = SMALL
    raconvert("c.h5#a", "-o", "c.npy")
    same("c.npy", values)
    raconvert("c.h5", "-o", "d.h5", "--out-opt", "compress=gzip")
    with h5py.File("d.h5") as file:
        assert np.array_equal(file["a"][:], values)


def bundled() -> None:
    """Folders and archives of many arrays, replaced too."""
    # Enough for one wait for the whole file system.
    np.savez("b.npz", b=SMALL.T.copy(), **{f"a{number}": SMALL for number in range(18)})
    for target in ("b", "b.zip", "b.tar"):
        raconvert("b.npz", "-o", target, "--to", "bundle" if target == "b" else target[2:])
        raconvert("b.npz", "-o", target, "--overwrite", *(("--to", "bundle") * (target == "b")))
        raconvert(target, "-o", f"from-{target}.npz")
        with np.load(f"from-{target}.npz") as found:
            assert np.array_equal(found["b"], SMALL.T)


def paired() -> None:
    """Formats of two files, with the file of the data replaced."""
    np.save("p.npy", SMALL.astype("c8"))
    for _ in range(2):
        raconvert("p.npy", "-o", "p.cfl", "--overwrite")
    raconvert("p.cfl", "-o", "q.npy")
    same("q.npy", SMALL.astype("c8"))
    np.save("r.npy", SMALL)
    raconvert("r.npy", "-o", "r.nhdr")
    raconvert("r.nhdr", "-o", "s.npy")
    same("s.npy", SMALL)


def tree() -> None:
    """A tree, by workers, gone on with, and verified."""
    for folder in ("tree", "tree/sub"):
        os.mkdir(folder)
        for number in range(9):
            np.save(f"{folder}/{number}.npy", SMALL + number)
    words = "migrate", "tree", "moved", "--to", "ra"
    raconvert(*words, "--jobs", "2")
    raconvert(*words)
    for number in range(9):
        data = Path(f"moved/sub/{number}.ra").read_bytes()[64:]
        assert data == (SMALL + number).tobytes(), number
    raconvert("verify", "moved", "--against", "tree")
    raconvert("tree", "-r", "--to", "nrrd", "--out-dir", "each")
    assert len(list(Path("each").rglob("*.nrrd"))) == 18


def locked() -> None:
    """A tree that somebody else writes into, and a log that was left there."""
    os.mkdir("one")
    np.save("one/a.npy", SMALL)
    raconvert("migrate", "one", "two", "--to", "ra")
    Path("two/.raconvert-migration.sqlite-journal").touch()
    raconvert("migrate", "one", "two", "--to", "ra")
    with open("two/.raconvert-migration.sqlite.lock", "r+b") as other:
        real_fcntl.flock(other, real_fcntl.LOCK_EX)
        assert "another run writes here" in raconvert("migrate", "one", "two", "--to", "ra", code=5)


def huge() -> None:
    """So large that the disk begins while more is written."""
    values = np.arange(66 << 17, dtype=">f8")
    np.save("huge.npy", values)
    raconvert("huge.npy", "-o", "huge.ra")
    assert np.array_equal(np.memmap("huge.ra", "<f8", "r", offset=56), values)
    os.unlink("huge.npy")
    os.unlink("huge.ra")


def looked_at() -> None:
    """What shows and compares."""
    np.save("i.npy", SMALL)
    np.save("j.npy", SMALL)
    assert "shape (20, 30)" in raconvert("info", "i.npy", "j.npy")
    raconvert("diff", "i.npy", "j.npy")
    raconvert("digest", "i.npy", "j.npy")
    assert "npy" in raconvert("formats")


def fast() -> None:
    """The functions for RA alone."""
    import raconvert.ra

    raconvert.ra.write("f.ra", LARGE)
    assert np.array_equal(raconvert.ra.read("f.ra"), LARGE)
    out = np.empty(LARGE.shape, "<f4")
    raconvert.ra.read("f.ra", out=out)
    assert np.array_equal(out, LARGE)
    raconvert.ra.write("f.ra", SMALL)
    assert np.array_equal(raconvert.ra.read("f.ra"), SMALL)


JOBS: dict[str, Callable[[], None]] = {
    job.__name__: job
    for job in (
        small, large, sparse, transposed, stacked, chunked, bundled, paired, tree, locked,
        looked_at, fast, huge,
    )
}  # fmt: skip


def tried(folder: str, system: str, jobs: list[str]) -> dict[str, Any]:
    """Run jobs on a system, in a folder that is made; what failed, and what was asked for."""
    os.makedirs(folder)
    os.chdir(folder)
    asked: set[str] = set()
    missing = SYSTEMS.get(system, {system})
    sys.meta_path.insert(0, Importing(system, missing, asked))
    sys.path.insert(0, str(ROOT))
    failed = {}
    for name in jobs or [name for name in JOBS if name != "huge"]:
        try:
            JOBS[name]()
        except BaseException:  # noqa: BLE001 - told to who asked
            failed[name] = traceback.format_exc()
    left = [str(p) for p in Path().rglob(".raconvert-*.tmp")]
    return {"system": system, "failed": failed, "asked": sorted(asked), "left": left}


def main(folder: str, *systems: str) -> None:
    """Try each system, given as NAME or NAME=JOB,JOB, in a copy of this process."""
    for number, word in enumerate(systems or SYSTEMS):
        name, _, jobs = word.partition("=")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                place = os.path.join(folder, str(number))
                found = tried(place, name, [job for job in jobs.split(",") if job])
                sys.stdout.write(json.dumps(found) + "\n")
                sys.stdout.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
