"""Atomic targets: a conversion that fails, is killed or is refused leaves the destination as it was.

The kills are real (SIGKILL at random moments of a child that converts in a loop), and so are the
full disk, the limit of the file size, the folder without write permission and the signal of Ctrl-C.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cases import rounds

import raconvert
from raconvert import convert
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TargetExists,
    UsageError,
    WouldLose,
    WriteFailed,
)

pytestmark = pytest.mark.disk

ROOT = Path(__file__).resolve().parents[1]
KILLS = rounds(200, 50)
ENCODINGS = ("none", "lz4", "leb128", "bits")


def snapshot(folder: Path) -> dict[str, object]:
    """Return everything below a folder: the bytes of files, the targets of links, folders."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        else:
            found[name] = path.read_bytes() if path.is_file() else "folder"
    return found


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Assert that a folder holds exactly the same afterwards: no file more, none less, same bytes."""
    before = snapshot(folder)
    yield
    after = snapshot(folder)
    assert sorted(after) == sorted(before)
    assert after == before


def save(path: Path, values: np.ndarray) -> Path:
    """Write values with NumPy (or, for .ra, with raconvert) and return the path."""
    if path.suffix == ".npz":
        np.savez(path, x=values)
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        raconvert.write(path, values, overwrite=True)
    return path


def noise(shape: tuple[int, ...], seed: int = 0, dtype: str = "u1") -> np.ndarray:
    """Return random values, which no codec makes smaller."""
    return np.random.default_rng(seed).integers(0, 255, shape, dtype)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return an empty folder for destinations, apart from the sources in tmp_path."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


# Kills -----------------------------------------------------------------------------------------

# Converts the sources in turn onto one destination in a forked child, kills it at a random moment,
# and looks at the destination; prints what was found as JSON.
DRIVER = """
import json, os, random, signal, sys, time, zlib
import numpy as np
import raconvert
from raconvert.errors import Corrupt

sources, target, kills, options = json.loads(sys.argv[1])
rng = random.Random(20240229)
folder = os.path.dirname(target)
whole, told = [], []
for source in sources:
    raconvert.convert(source, target, overwrite=True, **options)
    with open(target, "rb") as file:
        whole.append(file.read())
    with raconvert.open(target, array=options.get("array")) as opened:
        told.append(getattr(getattr(opened, "meta", None), "description", None))
started = time.perf_counter()
for source in sources:
    raconvert.convert(source, target, overwrite=True, **options)
run_time = (time.perf_counter() - started) / len(sources)

found = {"seen": [0] * len(sources), "mismatches": 0, "temporary": 0, "errors": []}
for kill in range(10 * kills):
    # On a busy machine, go on until kills came while a file was written and after one was.
    if kill >= kills and found["temporary"] and sum(map(bool, found["seen"])) > 1:
        break
    child = os.fork()
    if not child:
        while True:
            for number in range(len(sources)):
                source = sources[(number + kill) % len(sources)]
                raconvert.convert(source, target, overwrite=True, **options)
    time.sleep(rng.uniform(0, 2 * run_time))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(target, "rb") as file:
        data = file.read()
    if data not in whole:
        found["errors"].append(f"kill {kill}: neither of the whole files, {len(data)} bytes")
        break
    which = whole.index(data)
    found["seen"][which] += 1
    try:
        values = raconvert.read(target)
        with raconvert.open(target) as opened:
            text = getattr(getattr(opened, "meta", None), "description", None)
        if text != told[which]:
            found["errors"].append(f"kill {kill}: data {which} with metadata {text!r}")
    except Corrupt as error:
        if "describes another file" in str(error) and target + ".yaml" in str(error):
            found["mismatches"] += 1
        else:
            found["errors"].append(f"kill {kill}: {error}")
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if path in (target, target + ".yaml"):
            continue
        if name.endswith(".tmp") and name.startswith("."):
            found["temporary"] += 1
        else:
            found["errors"].append(f"kill {kill}: left {name}")
        os.unlink(path)
raconvert.convert(sources[0], target, overwrite=True, **options)
with open(target, "rb") as file:
    found["recovered"] = file.read() == whole[0]
with raconvert.open(target) as opened:
    found["told"] = getattr(getattr(opened, "meta", None), "description", None) == told[0]
print(json.dumps(found))
"""


def run_driver(sources: list[Path], target: Path, options: dict[str, object]) -> dict[str, object]:
    argument = json.dumps([list(map(str, sources)), str(target), KILLS, options])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, argument],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    ["ra", "npy", "npz", "png", "ra-from-npz", "zip-from-npz", "tar-from-npz", "ra-with-sidecar"],
)
def test_a_killed_conversion_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, out: Path, case: str
) -> None:
    suffix = case.split("-", maxsplit=1)[0]
    sources = []
    for number in range(3):
        # Same shape and type, so that only the bytes tell one from the other.
        values = noise((64, 64) if case == "png" else (512, 512), number)
        if case == "ra-with-sidecar":
            source = tmp_path / f"{number}.ra"
            meta = raconvert.Metadata(description=f"source {number}") if number else None
            raconvert.write(source, values, meta=meta)
        elif case.endswith("-from-npz"):
            source = save(tmp_path / f"{number}.npz", values)
        else:
            source = save(tmp_path / f"{number}.{'npy' if suffix == 'ra' else 'ra'}", values)
        sources.append(source)
    if case == "npz":  # members are named after the source's stem
        sources = [tmp_path.joinpath(f"folder{n}", "x.ra") for n in range(3)]
        for number, source in enumerate(sources):
            source.parent.mkdir()
            save(source, noise((512, 512), number))

    found = run_driver(sources, out / f"x.{suffix}", {"sync": False})

    assert found["errors"] == []
    assert sum(found["seen"]) >= KILLS
    assert sum(count > 0 for count in found["seen"]) > 1, "kills came before any conversion"
    assert found["temporary"] > 0, "no kill came while a file was written"
    assert found["recovered"]
    assert found["told"]
    if case != "ra-with-sidecar":
        assert found["mismatches"] == 0


def test_what_a_kill_leaves_is_not_matched_by_patterns(tmp_path: Path, out: Path) -> None:
    source = save(tmp_path / "x.npy", noise((100,)))
    script = (
        "import os, raconvert, sys\n"
        "raconvert.convert(*sys.argv[1:], progress=lambda *_: os._exit(9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(source), str(out / "x.ra")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 9

    left = os.listdir(out)
    assert len(left) == 1
    assert left[0].startswith(".")
    assert not left[0].endswith((".ra", ".yaml", ".jsonl"))
    assert list(out.glob("*.ra")) == []


# Full disks and limits -------------------------------------------------------------------------


@contextmanager
def file_size_limit(nbytes: int) -> Iterator[None]:
    """Let no file grow beyond `nbytes`; compiled modules are not written, they would be cut."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = compiled


# id -> suffix of the source, values, suffix of the target, options
WRITERS: dict[str, tuple[str, np.ndarray, str, dict[str, object]]] = {
    "ra-by-copying": (".npy", noise((400, 1000)), ".ra", {}),
    "ra-by-copying-big-endian": (".npy", noise((400, 500), dtype="i2").astype(">i2"), ".ra", {}),
    "ra-by-blocks": (".npz", noise((400, 1000)), ".ra", {}),
    "ra-transposed": (".npy", noise((400, 1000)), ".ra", {"axes": "1,0"}),
    "ra-cast": (".npy", noise((400, 1000)), ".ra", {"dtype": "float32"}),
    "ra-lz4": (".npy", noise((400, 1000)), ".ra", {"out_opts": {"encoding": "lz4"}}),
    "ra-leb128": (".npy", noise((400, 1000)), ".ra", {"out_opts": {"encoding": "leb128"}}),
    "ra-bits": (".npy", noise((4000, 1000)) > 99, ".ra", {"out_opts": {"encoding": "bits"}}),
    "npy": (".ra", noise((400, 1000)), ".npy", {}),
    "npz-stored": (".ra", noise((400, 1000)), ".npz", {}),
    "npz-deflated": (".ra", noise((400, 1000)), ".npz", {"out_opts": {"compress": "deflate"}}),
    "png": (".ra", noise((400, 1000)), ".png", {}),
    "zip": (".npz", noise((400, 1000)), ".zip", {}),
    "tar": (".npz", noise((400, 1000)), ".tar", {}),
}


def arrange(tmp_path: Path, out: Path, case: str) -> tuple[Path, Path, dict[str, object]]:
    """Return the source, an existing destination and the options of one of the `WRITERS`."""
    from_suffix, values, to_suffix, options = WRITERS[case]
    source = save(tmp_path / f"source{from_suffix}", values)
    target = out / f"target{to_suffix}"
    convert(save(tmp_path / "old.npy", noise((3, 4), 1)), target)
    return source, target, options


@pytest.mark.parametrize("nbytes", [10, 100_000], ids=["in-the-header", "in-the-data"])
@pytest.mark.parametrize("case", WRITERS)
def test_a_limit_of_the_file_size_leaves_everything_as_it_was(
    tmp_path: Path, out: Path, case: str, nbytes: int
) -> None:
    source, target, options = arrange(tmp_path, out, case)

    with unchanged(out), file_size_limit(nbytes), pytest.raises(WriteFailed) as caught:
        convert(source, target, overwrite=True, **options)

    assert caught.value.exit_code == 1
    assert str(target) in str(caught.value)
    assert "File too large" in str(caught.value)


def big_metadata(path: Path) -> Path:
    """Write a small array with 300 kB of metadata."""
    attributes = {f"key{n}": "x" * 100 for n in range(3000)}
    raconvert.write(path, noise((10, 10)), meta=raconvert.Metadata(attributes=attributes))
    return path


def test_a_sidecar_that_cannot_be_written_leaves_everything_as_it_was(
    tmp_path: Path, out: Path
) -> None:
    source = big_metadata(tmp_path / "source.ra")
    save(out / "x.ra", noise((3, 4), 1))

    with unchanged(out), file_size_limit(100_000), pytest.raises(WriteFailed) as caught:
        convert(source, out / "x.ra", overwrite=True)

    assert "x.ra.yaml" in str(caught.value)


def test_a_trailer_that_cannot_be_written_leaves_everything_as_it_was(
    tmp_path: Path, out: Path
) -> None:
    source = save(tmp_path / "source.ra", noise((100,)))
    with source.open("ab") as file:
        file.write(b"t" * 200_000)

    with unchanged(out), file_size_limit(100_000), pytest.raises(WriteFailed):
        convert(source, out / "x.ra")


def test_a_limit_in_the_middle_of_the_planes_leaves_no_plane(tmp_path: Path, out: Path) -> None:
    planes = np.zeros((5, 200, 200), "u1")
    planes[3] = noise((200, 200))  # the only one that does not become small
    source = save(tmp_path / "source.npy", planes)

    with unchanged(out), file_size_limit(20_000), pytest.raises(WriteFailed):
        convert(source, out / "{:03d}.png")


FULL_DISK = """
import json, sys
import raconvert
source, target, options = json.loads(sys.argv[1])
try:
    raconvert.convert(source, target, overwrite=True, **options)
except raconvert.RaconvertError as error:
    print(json.dumps([type(error).__name__, error.exit_code, str(error)]))
"""


@pytest.fixture(scope="module")
def small_disk(mounting: list[str]) -> Callable[..., tuple[str, list[str]]]:
    """Return a function that converts onto a file system of 256 KiB of its own.

    The mount lives in a mount namespace of the process: it is gone when the process ends.
    """

    def run(source: Path, name: str, folder: Path, **options: object) -> tuple[str, list[str]]:
        script = (
            'mount -t tmpfs -o size=256k tmpfs "$1" && cp "$2" "$1/$3" && "$4" -c "$5" "$6";'
            ' cmp "$2" "$1/$3" && ls -A "$1"'
        )
        old = save(folder.parent / f"old{Path(name).suffix}", noise((3, 4), 1))
        argument = json.dumps([str(source), str(folder / name), options])
        words = [str(folder), str(old), name, sys.executable, FULL_DISK, argument]
        done = subprocess.run(
            [*mounting, "sh", "-c", script, "sh", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        first, *names = done.stdout.splitlines()
        return first, names

    return run


@pytest.mark.parametrize(
    "case", ["ra-by-copying", "ra-by-blocks", "npy", "npz-stored", "png", "zip", "tar"]
)
def test_a_full_disk_leaves_everything_as_it_was(
    tmp_path: Path, out: Path, case: str, small_disk: Callable[..., tuple[str, list[str]]]
) -> None:
    from_suffix, values, to_suffix, _ = WRITERS[case]
    source = save(tmp_path / f"source{from_suffix}", values)

    told, names = small_disk(source, f"x{to_suffix}", out)

    kind, exit_code, text = json.loads(told)
    assert (kind, exit_code) == ("WriteFailed", 1)
    assert "No space left on device" in text
    assert str(out / f"x{to_suffix}") in text
    assert names == [f"x{to_suffix}"]


def test_a_disk_that_is_full_at_the_sidecar_leaves_everything_as_it_was(
    tmp_path: Path, out: Path, small_disk: Callable[..., tuple[str, list[str]]]
) -> None:
    source = big_metadata(tmp_path / "source.ra")

    told, names = small_disk(source, "x.ra", out)

    assert json.loads(told)[:2] == ["WriteFailed", 1]
    assert names == ["x.ra"]


def test_a_disk_that_is_full_in_the_middle_of_the_planes_leaves_no_plane(
    tmp_path: Path, out: Path, small_disk: Callable[..., tuple[str, list[str]]]
) -> None:
    source = save(tmp_path / "source.npy", noise((8, 200, 200)))

    told, names = small_disk(source, "x.png", out, planes=True)

    assert json.loads(told)[:2] == ["WriteFailed", 1]
    assert names == ["x.png"]


# Folders without permission ----------------------------------------------------------------------


@contextmanager
def read_only_folder() -> Iterator[Path]:
    """Give a folder in which nothing can be created, also if the tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "old.ra").write_bytes(b"kept")
        folder.chmod(0o555)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


@pytest.fixture
def public_npy() -> Iterator[Path]:
    """Give a file that every user can read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = save(Path(name, "source.npy"), noise((3, 4, 5)))
        path.chmod(0o644)
        yield path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("new.ra", {}),
        ("old.ra", {"overwrite": True}),
        ("new.npz", {}),
        ("{}.png", {}),
        ("new/{}.png", {}),
        ("new.ra", {"labels": "labels.npy"}),
    ],
    ids=["new", "existing", "npz", "planes", "planes-in-new-folder", "labels"],
)
def test_a_folder_without_write_permission_is_named(
    public_npy: Path, name: str, options: dict[str, object]
) -> None:
    with read_only_folder() as folder:
        if "labels" in options:
            options = {**options, "labels": str(folder / "labels.npy")}
        with unchanged(folder), pytest.raises(WriteFailed, match="Permission denied") as caught:
            convert(public_npy, folder / name, **options)
        assert str(folder) in str(caught.value)


def test_a_new_folder_without_write_permission_is_named(public_npy: Path) -> None:
    with (
        read_only_folder() as folder,
        unchanged(folder),
        pytest.raises(WriteFailed, match="Permission denied"),
    ):
        convert(public_npy, out_dir=str(folder / "new"), to="ra")


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    with unchanged(tmp_path), pytest.raises(WriteFailed, match="missing' does not exist"):
        convert(source, tmp_path / "missing" / "x.ra")


def test_a_file_as_folder_is_named(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    with unchanged(tmp_path), pytest.raises(WriteFailed, match="Not a directory"):
        convert(source, tmp_path / "x.npy" / "x.ra")


# Errors and interruptions in the middle --------------------------------------------------------


def test_an_odd_file_at_the_end_of_a_stack_leaves_nothing(tmp_path: Path, out: Path) -> None:
    for number in range(5):
        save(tmp_path / f"{number}.npy", noise((100, 100), number))
    save(tmp_path / "5.npy", noise((100, 101)))
    save(out / "x.ra", noise((3,)))

    with unchanged(out), pytest.raises(UsageError, match="differ"):
        convert(tmp_path / "?.npy", out / "x.ra", overwrite=True)


def test_a_damaged_file_in_a_stack_of_images_leaves_nothing(
    corpus: Callable[..., Path], out: Path
) -> None:
    with unchanged(out), pytest.raises(Corrupt, match=r"\.png"):
        convert(corpus("png", "one_truncated_of_12"), out / "x.ra")


def test_a_value_that_does_not_fit_at_the_end_leaves_nothing(tmp_path: Path, out: Path) -> None:
    values = np.zeros(3_000_000, "i8")
    values[-1] = 256
    source = save(tmp_path / "x.npy", values)
    save(out / "x.ra", noise((3,)))

    with unchanged(out), pytest.raises(WouldLose, match=r"index \[2999999\]"):
        convert(source, out / "x.ra", dtype="uint8", overwrite=True)


def test_a_source_that_is_cut_while_it_is_read_leaves_nothing(tmp_path: Path, out: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3 << 20,)))

    with unchanged(out), pytest.raises(Corrupt, match="became shorter"):
        convert(source, out / "x.ra", progress=lambda *_: os.truncate(source, 1 << 20))


@pytest.mark.parametrize("case", WRITERS)
def test_ctrl_c_in_the_middle_leaves_everything_as_it_was(
    tmp_path: Path, out: Path, case: str
) -> None:
    source, target, options = arrange(tmp_path, out, case)

    def press(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with unchanged(out), pytest.raises(KeyboardInterrupt):
        convert(source, target, overwrite=True, progress=press, **options)


def test_ctrl_c_at_every_call_of_the_system_leaves_old_or_new(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt before the first rename, before the second, …: never a file that is not whole."""
    source = tmp_path / "source.ra"
    raconvert.write(source, noise((30, 40)), meta=raconvert.Metadata(description="new"))
    old = noise((30, 40), 1)
    calls = ("open", "fsync", "replace", "link", "lstat", "fchmod", "chmod", "unlink")
    real = {name: getattr(os, name) for name in calls}
    state = {"left": 0}

    def interrupted(name: str) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            if state["left"] == 0:
                state["left"] = -1
                raise KeyboardInterrupt
            state["left"] -= 1
            return real[name](*args, **named)

        return call

    for step in range(100):
        with monkeypatch.context() as patch:
            raconvert.write(
                out / "x.ra", old, overwrite=True, meta=raconvert.Metadata(description="old")
            )
            for name in calls:
                patch.setattr(os, name, interrupted(name))
            state["left"] = step
            try:
                convert(source, out / "x.ra", overwrite=True)
            except KeyboardInterrupt:
                pass
            else:
                break
        assert sorted(os.listdir(out)) == ["x.ra", "x.ra.yaml"]
        try:
            with raconvert.open(out / "x.ra") as array:
                got = array.meta.description, np.asarray(array).tolist()
        except Corrupt as error:
            assert "describes another file" in str(error)  # noqa: PT017 - one of three outcomes
        else:
            assert got in (("old", old.tolist()), ("new", noise((30, 40)).tolist()))
    assert 5 < step < 99


# Existing destinations ---------------------------------------------------------------------------


def test_an_existing_file_is_refused_and_the_ways_out_are_named(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    convert(source, tmp_path / "x.ra")
    save(source, noise((4,)))

    with unchanged(tmp_path), pytest.raises(TargetExists) as caught:
        convert(source, tmp_path / "x.ra")

    assert caught.value.exit_code == 5
    assert str(tmp_path / "x.ra") in str(caught.value)
    assert "overwrite=True" in str(caught.value)
    assert "skip_existing=True" in str(caught.value)


def test_the_refusal_comes_before_the_source_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"no array")
    (tmp_path / "x.ra").write_bytes(b"kept")
    with pytest.raises(TargetExists):
        convert(tmp_path / "x.npy", tmp_path / "x.ra")


def test_overwrite_replaces(tmp_path: Path) -> None:
    save(tmp_path / "x.ra", noise((3,)))
    convert(save(tmp_path / "y.npy", noise((4,))), tmp_path / "x.ra", overwrite=True)
    assert raconvert.read(tmp_path / "x.ra").tolist() == noise((4,)).tolist()


def test_skip_existing_keeps_and_says_so(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    (tmp_path / "x.ra").write_bytes(b"kept")

    with unchanged(tmp_path):
        report = convert(source, tmp_path / "x.ra", skip_existing=True)

    assert report.written == []
    assert report.skipped == [(str(tmp_path / "x.ra"), "exists already")]


def test_skip_existing_writes_what_is_missing(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    report = convert(source, tmp_path / "x.ra", skip_existing=True)
    assert report.written == [str(tmp_path / "x.ra")]


@pytest.mark.parametrize(
    ("age", "written"), [(-10, True), (0, False), (10, False)], ids=["older", "same", "newer"]
)
def test_update_replaces_only_what_is_older_than_its_source(
    tmp_path: Path, age: int, written: bool
) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    target = save(tmp_path / "x.ra", noise((4,)))
    os.utime(source, (1_000_000, 1_000_000))
    os.utime(target, (1_000_000 + age, 1_000_000 + age))

    report = convert(source, target, update=True)

    assert bool(report.written) == written
    assert bool(report.skipped) != written
    assert len(raconvert.read(target)) == (3 if written else 4)


def test_update_of_a_stack_looks_at_every_source(tmp_path: Path, out: Path) -> None:
    sources = [save(tmp_path / f"{n}.npy", noise((3,), n)) for n in range(3)]
    target = save(out / "x.ra", noise((4,)))
    for path, time in zip([*sources, target], (1000, 3000, 1000, 2000), strict=True):
        os.utime(path, (time, time))
    assert convert(sources, target, update=True).written == [str(target)]
    assert raconvert.read(target).shape == (3, 3)


def test_update_of_an_array_in_a_container(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=noise((3,)), b=noise((4,)))
    target = save(tmp_path / "x.ra", noise((5,)))
    os.utime(target, (1_000_000, 1_000_000))
    assert convert(f"{tmp_path / 'x.npz'}#a", target, update=True).written == [str(target)]


def test_adding_to_an_existing_container_replaces_no_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=noise((3,)))
    source = save(tmp_path / "b.npy", noise((3,)))
    with unchanged(tmp_path), pytest.raises(TargetExists):
        convert(source, f"{tmp_path / 'x.npz'}#a")
    with unchanged(tmp_path), pytest.raises(TargetExists):
        convert(source, tmp_path / "x.npz")


# Source = destination ----------------------------------------------------------------------------


def test_a_file_onto_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "x.npy", noise((3,)))
    os.symlink("x.npy", tmp_path / "link.npy")
    os.link(tmp_path / "x.npy", tmp_path / "hard.npy")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    for source, target in [
        ("x.npy", "x.npy"),
        ("x.npy", "./x.npy"),
        ("x.npy", str(tmp_path / "x.npy")),
        ("x.npy", "sub/../x.npy"),
        ("x.npy", "link.npy"),
        ("link.npy", "x.npy"),
        ("x.npy", "hard.npy"),
    ]:
        for options in ({}, {"overwrite": True}, {"update": True}, {"dtype": "float64"}):
            with unchanged(tmp_path), pytest.raises(TargetExists, match="same file") as caught:
                convert(source, target, **options)
            assert caught.value.exit_code == 5


def test_a_stack_onto_one_of_its_files_is_refused(tmp_path: Path) -> None:
    sources = [save(tmp_path / f"{n}.npy", noise((3,), n)) for n in range(3)]
    for target in sources:
        with unchanged(tmp_path), pytest.raises(TargetExists, match="same file"):
            convert(sources, target, overwrite=True)


def test_an_array_of_a_container_onto_the_container_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=noise((3,)), b=noise((3,)))
    with unchanged(tmp_path), pytest.raises(TargetExists, match="same file"):
        convert(f"{tmp_path / 'x.npz'}#a", tmp_path / "x.npz", overwrite=True)


def test_one_file_each_into_the_folder_of_the_sources_is_refused(tmp_path: Path) -> None:
    sources = [save(tmp_path / f"{n}.ra", noise((3,), n)) for n in range(2)]
    with unchanged(tmp_path):
        report = convert(sources, out_dir=str(tmp_path), to="ra", overwrite=True)
    assert [type(error) for _, error in report.failed] == [TargetExists, TargetExists]


def test_a_plane_onto_a_source_is_refused(tmp_path: Path) -> None:
    convert(save(tmp_path / "x.npy", noise((4, 5))), tmp_path / "0.png")
    convert(save(tmp_path / "y.npy", noise((4, 5), 1)), tmp_path / "1.png")
    with unchanged(tmp_path), pytest.raises(TargetExists, match="same file"):
        convert(tmp_path / "?.png", tmp_path / "{}.png", overwrite=True)


@pytest.mark.parametrize("name", ["0/a.npy", "out.npy"], ids=["source", "data"])
def test_labels_onto_a_source_or_onto_the_data_are_refused(tmp_path: Path, name: str) -> None:
    for label in "01":
        (tmp_path / label).mkdir()
        save(tmp_path / label / "a.npy", noise((3,)))
    with unchanged(tmp_path), pytest.raises((TargetExists, UsageError)):
        convert(
            tmp_path / "*" / "a.npy",
            tmp_path / "out.npy",
            labels=str(tmp_path / name),
            overwrite=True,
        )


# Links, modes, names -----------------------------------------------------------------------------


def test_a_link_is_written_through(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    (tmp_path / "data").mkdir()
    save(tmp_path / "data" / "real.ra", noise((4,)))
    os.symlink("data/real.ra", tmp_path / "link.ra")

    convert(source, tmp_path / "link.ra", overwrite=True)

    assert os.readlink(tmp_path / "link.ra") == "data/real.ra"
    assert len(raconvert.read(tmp_path / "data" / "real.ra")) == 3
    assert os.listdir(tmp_path / "data") == ["real.ra"]


def test_a_link_to_nothing_creates_what_it_names_only_with_overwrite(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    os.symlink("new.ra", tmp_path / "link.ra")
    with unchanged(tmp_path), pytest.raises(TargetExists, match="link to a missing file"):
        convert(source, tmp_path / "link.ra")
    with unchanged(tmp_path):
        report = convert(source, tmp_path / "link.ra", skip_existing=True)
        assert report.skipped == [(str(tmp_path / "link.ra"), "exists already")]
    convert(source, tmp_path / "link.ra", overwrite=True)
    assert (tmp_path / "link.ra").is_symlink()
    assert len(raconvert.read(tmp_path / "new.ra")) == 3


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    os.symlink("a.ra", tmp_path / "b.ra")
    os.symlink("b.ra", tmp_path / "a.ra")
    with unchanged(tmp_path), pytest.raises(WriteFailed, match="symbolic links"):
        convert(source, tmp_path / "a.ra", overwrite=True)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_never_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    make(tmp_path / "x.ra")
    before = os.lstat(tmp_path / "x.ra")
    with pytest.raises(RaconvertError) as caught:
        convert(source, tmp_path / "x.ra", overwrite=True)
    assert caught.value.exit_code in (2, 5)
    assert os.lstat(tmp_path / "x.ra").st_ino == before.st_ino
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "x.ra"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755], ids=oct)
def test_the_mode_of_an_old_file_is_kept(tmp_path: Path, mode: int) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    target = save(tmp_path / "x.ra", noise((4,)))
    target.chmod(mode)
    convert(source, target, overwrite=True)
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    old = os.umask(0o027)
    try:
        convert(source, tmp_path / "x.ra")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x.ra").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "name",
    ["x" * 252 + ".ra", "数" * 84 + ".ra", "a b\n#'\".ra", "-x.ra", "\udcff.ra"],
    ids=["255-bytes", "255-bytes-in-87-letters", "odd-letters", "dash", "not-unicode"],
)
def test_every_name_that_the_system_takes_is_written(tmp_path: Path, name: str) -> None:
    source = save(tmp_path / "x.npy", noise((3,)))
    convert(source, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "x.npy"])


# Sidecars ----------------------------------------------------------------------------------------


@pytest.fixture
def column_major(tmp_path: Path) -> Path:
    """Return a source whose .ra needs a sidecar."""
    return save(tmp_path / "f.npy", np.asfortranarray(noise((3, 4))))


def test_the_sidecar_is_renamed_before_the_data(
    column_major: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = []
    real = os.link

    def link(source: str, target: str, **named: object) -> None:
        renamed.append(os.path.basename(target))
        real(source, target, **named)

    monkeypatch.setattr(os, "link", link)
    convert(column_major, out / "x.ra", axes="fortran")
    assert renamed == ["x.ra.yaml", "x.ra"]


def test_a_left_over_sidecar_goes_after_the_data(
    tmp_path: Path, column_major: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(column_major, out / "x.ra", axes="fortran")
    plain = save(tmp_path / "c.npy", noise((3, 4), 1))
    seen = []
    real = os.replace

    def replace(source: str, target: str) -> None:
        seen.append((os.path.basename(target), (out / "x.ra.yaml").exists()))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    convert(plain, out / "x.ra", overwrite=True)
    assert seen == [("x.ra", True)]
    assert os.listdir(out) == ["x.ra"]


def test_a_sidecar_without_its_data_is_replaced(column_major: Path, out: Path) -> None:
    """What a kill between the two renames of a first conversion leaves."""
    convert(column_major, out / "x.ra", axes="fortran")
    (out / "x.ra").unlink()
    convert(column_major, out / "x.ra", axes="fortran")
    assert raconvert.read(out / "x.ra").tolist() == np.load(column_major).tolist()


FOREIGN = "title: mine\nindex_order: F\n"


def test_a_foreign_yaml_file_is_not_overwritten(column_major: Path, out: Path) -> None:
    (out / "x.ra.yaml").write_text(FOREIGN)
    with unchanged(out), pytest.raises(TargetExists) as caught:
        convert(column_major, out / "x.ra", axes="fortran")
    assert str(out / "x.ra.yaml") in str(caught.value)


def test_a_foreign_yaml_file_is_overwritten_on_request(column_major: Path, out: Path) -> None:
    (out / "x.ra.yaml").write_text(FOREIGN)
    convert(column_major, out / "x.ra", axes="fortran", overwrite=True)
    assert (out / "x.ra.yaml").read_text().startswith("describes:")


def test_a_foreign_yaml_file_is_left_alone_where_no_sidecar_is_needed(
    tmp_path: Path, out: Path
) -> None:
    (out / "x.ra.yaml").write_text(FOREIGN)
    source = save(tmp_path / "c.npy", noise((3, 4)))
    convert(source, out / "x.ra")
    convert(source, out / "x.ra", overwrite=True)
    assert (out / "x.ra.yaml").read_text() == FOREIGN


def test_a_foreign_yaml_file_is_not_honoured(tmp_path: Path, out: Path) -> None:
    convert(save(tmp_path / "c.npy", noise((3, 4))), out / "x.ra")
    (out / "x.ra.yaml").write_text(FOREIGN)
    with raconvert.open(out / "x.ra") as array:
        assert array.index_order is None
        assert not array.meta
    assert raconvert.read(out / "x.ra").tolist() == noise((3, 4)).tolist()


def test_a_foreign_items_file_is_not_overwritten(tmp_path: Path, out: Path) -> None:
    for number in range(2):
        meta = raconvert.Metadata(attributes={"number": number})
        raconvert.write(tmp_path / f"{number}.ra", noise((3,), number), meta=meta)
    (out / "x.ra.items.jsonl").write_text("mine\n")
    with unchanged(out), pytest.raises(TargetExists, match=r"items\.jsonl"):
        convert(tmp_path / "?.ra", out / "x.ra")


# Planes ------------------------------------------------------------------------------------------


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    return save(tmp_path / "cube.npy", noise((4, 5, 6)))


def test_planes_go_into_an_existing_folder(cube: Path, out: Path) -> None:
    (out / "other.txt").write_text("kept")
    report = convert(cube, out / "{:02d}.png")
    assert sorted(os.listdir(out)) == ["00.png", "01.png", "02.png", "03.png", "other.txt"]
    assert report.written == [str(out / f"{n:02d}.png") for n in range(4)]


def test_one_existing_plane_refuses_all(cube: Path, out: Path) -> None:
    (out / "02.png").write_bytes(b"kept")
    with unchanged(out), pytest.raises(TargetExists, match=r"02\.png"):
        convert(cube, out / "{:02d}.png")


def test_a_value_that_does_not_fit_in_the_last_plane_leaves_none(tmp_path: Path, out: Path) -> None:
    values = noise((4, 5, 6), dtype="i4")
    values[3, 4, 5] = 256
    source = save(tmp_path / "x.npy", values)
    (out / "02.png").write_bytes(b"kept")
    with unchanged(out), pytest.raises(WouldLose, match=r"index \[3, 4, 5\]"):
        convert(source, out / "{:02d}.png", dtype="uint8", overwrite=True)


def test_ctrl_c_between_planes_leaves_none(
    cube: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.files.target import Target

    count = iter(range(100))
    finish = Target.finish

    def interrupted(self: Target, *, sync: bool = True) -> None:
        finish(self, sync=sync)
        if next(count) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Target, "finish", interrupted)
    with unchanged(out), pytest.raises(KeyboardInterrupt):
        convert(cube, out / "new" / "{:02d}.png")


def test_planes_whose_folder_is_a_file_leave_none(cube: Path, out: Path) -> None:
    (out / "2").write_text("in the way")
    with unchanged(out), pytest.raises(WriteFailed):
        convert(cube, out / "{}" / "x.png")


def test_a_rename_that_fails_half_way_leaves_no_new_plane(
    cube: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out / "0.png").write_bytes(b"kept")
    real = os.replace

    def replace(source: str, target: str) -> None:
        if os.path.dirname(target) == str(out) and os.path.basename(target) == "2.png":
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with unchanged(out), pytest.raises(WriteFailed, match="Input/output error"):
        convert(cube, out / "{}.png", overwrite=True)


# Dry runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.ra", "x.npz", "{}.png", "sub/{}.png"])
def test_a_dry_run_writes_nothing(cube: Path, out: Path, name: str) -> None:
    with unchanged(out):
        report = convert(cube, out / name, dry_run=True)
    assert report.planned
    assert report.written == []


def test_a_dry_run_of_one_file_each_makes_no_folder(cube: Path, out: Path) -> None:
    with unchanged(out):
        report = convert(cube, out_dir=str(out / "new"), to="ra", dry_run=True)
    assert report.planned
