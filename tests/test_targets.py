"""What a destination promises: nothing is replaced unasked, nothing is open to others, no links.

Everything is judged by the system itself: modes by `stat`, contents by their bytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert.errors import RaconvertError, TargetExists, WriteFailed
from raconvert.files import paths
from raconvert.files.target import Target

ROOT = Path(__file__).resolve().parents[1]
VALUES = np.arange(24, dtype="u1").reshape(4, 6)
# suffix -> what else is written with it
FORMS: dict[str, dict[str, Any]] = {
    ".ra": {},
    ".npy": {},
    ".npz": {},
    ".h5": {},
    ".mat": {},
    ".png": {},
    ".tif": {},
    ".nrrd": {},
    ".nhdr": {},
    ".har": {"dtype": "float32"},
    ".scidb": {},
    ".zip": {},
    ".tar": {},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.npy"
    np.save(path, VALUES)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and not p.is_symlink()}


def appearing(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]) -> None:
    """Let `make` happen when the file is whole, right before it gets its name."""
    real = Target.rename

    def rename(self: Target) -> None:
        make()
        real(self)

    monkeypatch.setattr(Target, "rename", rename)


# What appears meanwhile --------------------------------------------------------------------------


def no_links(*_: object, **__: object) -> None:
    raise OSError(95, "Operation not supported")


def no_renameat2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_renameat2", lambda *_: 38)


@pytest.mark.parametrize("way", ["link", "renameat2", "neither"])
@pytest.mark.parametrize("suffix", FORMS)
def test_a_file_that_appears_meanwhile_is_not_replaced(
    source: Path, out: Path, suffix: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = out / f"x{suffix}"
    if way != "link":
        monkeypatch.setattr(os, "link", no_links)
    if way == "neither":
        no_renameat2(monkeypatch)
    appearing(monkeypatch, lambda: target.write_bytes(b"of somebody else"))

    with pytest.raises(TargetExists, match="appeared while it was written") as caught:
        raconvert.convert(source, target, **FORMS[suffix])

    assert str(target) in str(caught.value)
    assert contents(out) == {target.name: b"of somebody else"}


@pytest.mark.parametrize("way", ["link", "renameat2", "neither"])
def test_what_does_not_exist_is_written_whatever_the_file_system_has(
    source: Path, out: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "link":
        monkeypatch.setattr(os, "link", no_links)
    if way == "neither":
        no_renameat2(monkeypatch)
    raconvert.convert(source, out / "x.nhdr")
    assert sorted(os.listdir(out)) == ["x.nhdr", "x.raw"]
    assert (out / "x.raw").read_bytes() == VALUES.tobytes()


@pytest.mark.parametrize("beside", ["x.raw", "x.nhdr.yaml"])
def test_a_companion_that_appears_meanwhile_is_not_replaced(
    source: Path, out: Path, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    appearing(monkeypatch, lambda: (out / beside).write_bytes(b"of somebody else"))
    with pytest.raises(TargetExists, match=beside):
        raconvert.convert(source, out / "x.nhdr", meta="sidecar")
    assert contents(out) == {beside: b"of somebody else"}


def test_a_link_that_appears_meanwhile_is_not_followed(
    source: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appearing(monkeypatch, lambda: os.symlink(tmp_path / "stolen", out / "x.ra"))
    with pytest.raises(TargetExists):
        raconvert.convert(source, out / "x.ra")
    assert not (tmp_path / "stolen").exists()
    assert os.listdir(out) == ["x.ra"]


def test_a_plane_that_appears_meanwhile_is_not_replaced(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.conversion.transaction import Staging

    np.save(tmp_path / "cube.npy", np.zeros((4, 3, 5), "u1"))
    real = Staging.publish

    def publish(self: Staging) -> list[str]:
        (out / "2.png").write_bytes(b"of somebody else")
        return real(self)

    monkeypatch.setattr(Staging, "publish", publish)
    with pytest.raises(TargetExists, match=r"2\.png"):
        raconvert.convert(tmp_path / "cube.npy", out / "{}.png")
    assert contents(out) == {"2.png": b"of somebody else"}
    assert os.listdir(out) == ["2.png"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_in_the_place_of_a_bundle_stays(
    source: Path, out: Path, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.files import folder_target

    def appear() -> None:
        (out / "b").mkdir(exist_ok=True)
        (out / "b" / "notes.txt").write_bytes(b"of somebody else")

    if overwrite:
        raconvert.convert(source, out / "b", to="bundle")
    before = sorted(os.listdir(out / "b")) if overwrite else []
    real = folder_target.exchanged if overwrite else os.rename

    def late(*paths: Any) -> Any:
        if str(out / "b") in paths and not (out / "b" / "notes.txt").exists():
            appear()
        return real(*paths)

    if overwrite:
        monkeypatch.setattr(folder_target, "exchanged", late)
    else:
        monkeypatch.setattr(os, "rename", late)
    with pytest.raises(TargetExists):
        raconvert.convert(source, out / "b", to="bundle", overwrite=overwrite)
    assert os.listdir(out) == ["b"]
    assert sorted(os.listdir(out / "b")) == sorted([*before, "notes.txt"])


def test_of_runs_at_once_one_wins_and_the_others_exit_with_5(source: Path, out: Path) -> None:
    script = (
        "import sys, time, raconvert.cli, raconvert.plugins.npy\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "sys.exit(raconvert.cli.main(sys.argv[1:]))"
    )
    for number in range(5):
        target = out / f"{number}.ra"
        words = [sys.executable, "-c", script, str(source), "-o", str(target)]
        runs = [
            subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            for _ in range(3)
        ]
        for run in runs:
            assert run.stdout is not None
            run.stdout.readline()
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("\n")
            run.stdin.flush()
        told = [run.communicate(timeout=60)[1] for run in runs]
        assert sorted(run.returncode for run in runs) == [0, 5, 5], told
        assert sum(
            (str(target) in text and "exists" in text) or "appeared" in text for text in told
        )
        assert np.array_equal(raconvert.read(target), VALUES)
    assert sorted(os.listdir(out)) == [f"{number}.ra" for number in range(5)]


# Modes -------------------------------------------------------------------------------------------


def modes_while(folder: Path, run: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> set:
    """Return the modes that files below a folder have had while data was written to them."""
    seen: set[tuple[str, int]] = set()
    real = Target.finish

    def finish(self: Target, *, sync: bool = True) -> None:
        for path in folder.rglob("*"):
            if ".raconvert-" in str(path) and path.is_file():
                private = any(
                    ".raconvert-" in part.name and stat.S_IMODE(part.stat().st_mode) == 0o700
                    for part in path.parents
                )
                seen.add((path.name, 0o600 if private else stat.S_IMODE(path.stat().st_mode)))
        real(self, sync=sync)

    with monkeypatch.context() as patch:
        patch.setattr(Target, "finish", finish)
        run()
    assert seen
    return {mode for _, mode in seen}


@pytest.mark.parametrize("old", [None, 0o600, 0o640, 0o4755, 0o6777], ids=str)
@pytest.mark.parametrize("suffix", [*FORMS, "/"])
def test_a_temporary_file_is_for_its_owner_alone(
    source: Path, out: Path, suffix: str, old: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = FORMS.get(suffix, {"to": "bundle"})
    target = out / f"x{suffix}".rstrip("/")
    umask = os.umask(0o027)
    try:
        if old is not None:
            raconvert.convert(source, target, **options)
            target.chmod(old)
        seen = modes_while(
            out,
            lambda: raconvert.convert(source, target, overwrite=True, **options),
            monkeypatch,
        )
    finally:
        os.umask(umask)
    usual = 0o750 if suffix == "/" else 0o640
    assert seen == {0o600}
    assert stat.S_IMODE(target.stat().st_mode) == (usual if old is None else old & 0o777)


def test_the_fast_lane_copies_no_set_uid_bit_and_opens_no_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ra"
    path.write_bytes(b"")
    path.chmod(0o4600)
    created = []
    real = os.open

    def opened(name: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        created.append(mode)
        return real(name, flags, mode, **named)

    monkeypatch.setattr(os, "open", opened)
    raconvert.ra.write(path, VALUES)
    assert created == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_planes_keep_private_modes_and_no_set_uid_bits(tmp_path: Path, out: Path) -> None:
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 5), "u1"))
    raconvert.convert(tmp_path / "cube.npy", out / "{}.png")
    (out / "0.png").chmod(0o4600)
    raconvert.convert(tmp_path / "cube.npy", out / "{}.png", overwrite=True)
    assert stat.S_IMODE((out / "0.png").stat().st_mode) == 0o600


# Swapped names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMS)
def test_a_temporary_file_whose_name_is_taken_by_a_link_is_noticed(
    source: Path, out: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after it was created, so that whatever opens it again by its name opens the other."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    real = Target.open

    def swapped(self: Target) -> Any:
        file = real(self)
        os.unlink(self.temp)
        os.symlink(victim, self.temp)
        return file

    monkeypatch.setattr(Target, "open", swapped)
    with pytest.raises(RaconvertError):
        raconvert.convert(source, out / f"x{suffix}", **FORMS[suffix])
    assert victim.read_bytes() == b"precious"
    assert os.listdir(out) == []


def test_another_file_in_the_place_of_the_temporary_one_is_not_published(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap(self: Target) -> None:
        os.unlink(self.temp)
        Path(self.temp).write_bytes(b"of somebody else")
        real(self)

    real = Target.rename
    monkeypatch.setattr(Target, "rename", swap)
    with pytest.raises(WriteFailed, match="took the place of its temporary file"):
        raconvert.convert(source, out / "x.ra")
    assert not (out / "x.ra").exists()


# The standard output -----------------------------------------------------------------------------


def converted_to_stdout(source: Path, folder: Path, *words: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", str(source), "-o", "-", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["ra", "npy", "hdf5", "mat", "tiff", "scidb"])
def test_the_temporary_file_of_the_standard_output_is_private(
    source: Path, out: Path, tmp_path: Path, form: str
) -> None:
    seen: set[tuple[str, int]] = set()
    running = threading.Event()

    def look() -> None:
        while not running.is_set():
            with contextlib.suppress(OSError):  # a folder may go while it is looked through
                for path in out.rglob("*"):
                    seen.add((path.name, stat.S_IMODE(path.lstat().st_mode)))
            time.sleep(0.0005)

    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.symlink(victim, out / "raconvert-stdout")  # the name that was used once
    thread = threading.Thread(target=look)
    thread.start()
    try:
        data = converted_to_stdout(source, out, "--to", form)
    finally:
        running.set()
        thread.join()
    assert data
    assert victim.read_bytes() == b"precious"
    assert os.listdir(out) == ["raconvert-stdout"]
    mine = {(name, mode) for name, mode in seen if name != "raconvert-stdout"}
    assert {mode for _, mode in mine} <= {0o600, 0o700}


# Metadata beside ---------------------------------------------------------------------------------


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Return a source whose .ra needs a sidecar."""
    path = tmp_path / "told.ra"
    raconvert.write(path, VALUES, meta=raconvert.Metadata(description="told"))
    return path


@pytest.mark.parametrize("needed", [True, False], ids=["sidecar", "none"])
@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("exists", [True, False])
def test_a_linked_sidecar_never_changes_another_file(
    source: Path, told: Path, out: Path, needed: bool, overwrite: bool, exists: bool
) -> None:
    raconvert.convert(told, out / "y.ra")
    other = (out / "y.ra.yaml").read_bytes()
    if exists:
        raconvert.convert(source, out / "x.ra")
    os.symlink("y.ra.yaml", out / "x.ra.yaml")
    before = contents(out)
    origin = told if needed else source
    if overwrite:
        raconvert.convert(origin, out / "x.ra", overwrite=True)
        assert (out / "x.ra.yaml").exists() == needed
        assert np.array_equal(raconvert.read(out / "x.ra"), VALUES)
    else:
        with pytest.raises(TargetExists):
            raconvert.convert(origin, out / "x.ra")
        assert contents(out) == before
    assert (out / "y.ra.yaml").read_bytes() == other
    with raconvert.open(out / "y.ra") as array:
        assert array.meta.description == "told"


def test_an_unrelated_items_file_is_left_alone(source: Path, told: Path, out: Path) -> None:
    raconvert.convert(told, out / "x.ra")
    (out / "x.ra.items.jsonl").write_bytes(b'{"mine": 1}\n')
    raconvert.convert(source, out / "x.ra", overwrite=True)
    assert sorted(os.listdir(out)) == ["x.ra", "x.ra.items.jsonl"]
    assert (out / "x.ra.items.jsonl").read_bytes() == b'{"mine": 1}\n'


@pytest.fixture
def stack(tmp_path: Path) -> str:
    """Return a pattern of sources of which each has something of its own."""
    for number in range(3):
        meta = raconvert.Metadata(attributes={"number": number})
        raconvert.write(tmp_path / f"item{number}.ra", VALUES + number, meta=meta)
    return str(tmp_path / "item?.ra")


def test_the_items_of_the_file_that_was_there_go_with_it(
    source: Path, stack: str, out: Path
) -> None:
    raconvert.convert(stack, out / "x.ra")
    assert (out / "x.ra.items.jsonl").exists()
    raconvert.convert(source, out / "x.ra", overwrite=True)
    assert os.listdir(out) == ["x.ra"]


def test_an_unrelated_items_file_is_not_replaced_unasked(stack: str, told: Path, out: Path) -> None:
    raconvert.convert(told, out / "x.ra")
    (out / "x.ra").unlink()  # what a kill leaves
    (out / "x.ra.items.jsonl").write_bytes(b'{"mine": 1}\n')
    before = contents(out)
    with pytest.raises(TargetExists, match=r"items\.jsonl"):
        raconvert.convert(stack, out / "x.ra")
    assert contents(out) == before


def test_planes_leave_unrelated_items_alone(tmp_path: Path, out: Path, told: Path) -> None:
    np.savez(tmp_path / "two.npz", a=VALUES, b=VALUES)
    raconvert.convert(told, out / "a.ra")
    (out / "a.ra.items.jsonl").write_bytes(b'{"mine": 1}\n')
    raconvert.convert(tmp_path / "two.npz", out_dir=str(out), to="ra", overwrite=True)
    assert sorted(os.listdir(out)) == ["a.ra", "a.ra.items.jsonl", "b.ra"]
