"""Sets of files that appear one after the other: half a set is not read as if it were whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.errors import Corrupt, WriteFailed
from raconvert.files.unfinished import FOLDER

ROOT = Path(__file__).resolve().parents[1]

# Is killed when the file of this name is about to appear.
KILLED = """
import json, os, signal, sys
import raconvert
words, options, at = json.loads(sys.argv[1])
for name in ("link", "replace"):
    def call(old, new, *rest, real=getattr(os, name), **named):
        if os.path.abspath(new) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(old, new, *rest, **named)
    setattr(os, name, call)
from raconvert.files import small
def write(name, *args, real=small.write_small):
    folder = args[3]
    if os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(name, *args)
small.write_small = write
raconvert.convert(*words, **options)
"""


def killed(at: Path | str, *words: object, **options: object) -> None:
    at = os.path.abspath(at)
    argument = json.dumps([[w if isinstance(w, list) else str(w) for w in words], options, at])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, argument],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def cube(path: Path, value: int) -> Path:
    np.save(path, np.full((5, 3, 4), value, "u1"))
    return path


@pytest.mark.parametrize("old", [True, False], ids=["replaced", "new"])
def test_planes_of_two_runs_are_not_stacked(tmp_path: Path, out: Path, old: bool) -> None:
    if old:
        convert(cube(tmp_path / "old.npy", 1), out / "{}.png")
    source = cube(tmp_path / "new.npy", 2)
    killed(out / "3.png", source, out / "{}.png", overwrite=True)
    with pytest.raises(Corrupt, match="not all of them were"):
        convert(str(out / "*.png"), tmp_path / "stack.npy")
    with pytest.raises(Corrupt, match="not all of them were"):
        convert(str(out), tmp_path / "stack.npy")
    assert np.array_equal(raconvert.read(out / "0.png"), np.full((3, 4), 2))  # a whole file

    convert(source, out / "{}.png", overwrite=True)  # which takes the note away
    assert sorted(name for name in os.listdir(out) if not name.startswith(".raconvert-")) == [
        f"{number}.png" for number in range(5)
    ]
    assert not (out / FOLDER).exists()
    convert(str(out / "*.png"), tmp_path / "stack.npy")
    assert np.array_equal(np.load(tmp_path / "stack.npy"), np.load(source))


def test_arrays_of_a_container_are_a_set(tmp_path: Path, out: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(3), b=np.ones(3), c=np.ones(3))
    killed(out / "b.npy", tmp_path / "x.npz", out_dir=str(out), to="npy")
    with pytest.raises(Corrupt):
        convert(str(out), tmp_path / "stack.ra")


def test_one_file_for_each_source_is_a_set(tmp_path: Path, out: Path) -> None:
    names = []
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.full(3, number))
        names.append(str(tmp_path / f"{number}.npy"))
    killed(out / "deep" / "er" / "2.ra", names, out_dir=str(out / "deep" / "er"), to="ra")
    with pytest.raises(Corrupt):
        convert(str(out / "deep" / "er" / "*.ra"), tmp_path / "stack.npy")
    assert raconvert.read(out / "deep" / "er" / "1.ra").tolist() == [1, 1, 1]
    convert(names, out_dir=str(out / "deep" / "er"), to="ra", skip_existing=True)
    convert(str(out / "deep" / "er" / "*.ra"), tmp_path / "stack.npy")
    assert np.load(tmp_path / "stack.npy")[:, 0].tolist() == [0, 1, 2, 3]


@pytest.fixture
def labelled(tmp_path: Path) -> list[str]:
    names = []
    for label in (3, 5):
        (tmp_path / f"{label}").mkdir()
        np.save(tmp_path / f"{label}" / "a.npy", np.full(3, label))
        names.append(str(tmp_path / f"{label}" / "a.npy"))
    return names


@pytest.mark.parametrize("at", ["x.ra", "y.npy"])
def test_a_stack_and_the_labels_of_another_are_noticed(
    tmp_path: Path, out: Path, labelled: list[str], at: str
) -> None:
    np.save(out / "y.npy", np.array([8, 9]))
    np.save(tmp_path / "old.npy", np.zeros((2, 3)))
    convert(tmp_path / "old.npy", out / "x.ra")
    killed(out / at, labelled, out / "x.ra", labels=str(out / "y.npy"), overwrite=True)
    for name in ("x.ra", "y.npy"):
        with pytest.raises(Corrupt, match="not all of them were"):
            raconvert.read(out / name)
    convert(labelled, out / "x.ra", labels=str(out / "y.npy"), overwrite=True)
    assert raconvert.read(out / "x.ra")[:, 0].tolist() == [3, 5]
    assert raconvert.read(out / "y.npy").tolist() == [3, 5]
    assert not (out / FOLDER).exists()


def test_a_stack_and_its_labels_appear_together_or_not_at_all(
    tmp_path: Path, out: Path, labelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(out / "y.npy", np.array([8, 9]))
    (out / "x.ra").write_bytes(b"old")
    real = os.replace

    def replace(old: str, new: str) -> None:
        if os.path.basename(new) == "x.ra":
            raise OSError(5, "Input/output error")
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(WriteFailed):
        convert(labelled, out / "x.ra", labels=str(out / "y.npy"), overwrite=True)
    assert sorted(os.listdir(out)) == ["x.ra", "y.npy"]
    assert np.load(out / "y.npy").tolist() == [8, 9]


@pytest.mark.parametrize("name", ["y.nhdr", "y.scidb", "y.ra"])
def test_labels_of_several_files_name_each_other_right(
    out: Path, labelled: list[str], name: str
) -> None:
    convert(labelled, out / "x.ra", labels=str(out / name))
    got = raconvert.read(out / name)
    got = next(iter(got.values())) if isinstance(got, dict) else got
    assert got.tolist() == [3, 5]


NOT_WHOLE = [
    b"", b"{", b"[]", b"\xff", b'{"single": true}', b'{"single": true, "count": 2}\n"../0.png"\n',
    b'{"single": true, "count": 1}\n"../0.p', b'{"single": true, "count": 1}\n["../0.png"]\n',
    b'{"single": true, "count": 1}\n"' + b"a" * 70_000 + b'"\n',
]  # fmt: skip


def test_a_note_that_is_not_whole_says_nothing(tmp_path: Path, out: Path) -> None:
    convert(cube(tmp_path / "x.npy", 1), out / "{}.png")
    (out / FOLDER).mkdir()
    for number, text in enumerate(NOT_WHOLE):
        (out / FOLDER / f"{number}.json").write_bytes(text)
    convert(str(out / "*.png"), tmp_path / "stack.npy")
    assert np.load(tmp_path / "stack.npy").shape == (5, 3, 4)


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_a_note_that_is_no_file_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    """Anybody who may write into a folder above can have made it."""
    cube(tmp_path / "x.npy", 1)
    (tmp_path / FOLDER).mkdir()
    note = tmp_path / FOLDER / "1.json"
    if kind == "pipe":
        os.mkfifo(note)
    elif kind == "endless":
        note.symlink_to("/dev/zero")
    else:
        note.mkdir()
    command = [sys.executable, "-m", "raconvert", "info", str(tmp_path / "x.npy")]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_large_note_takes_little_memory(tmp_path: Path) -> None:
    path = cube(tmp_path / "x.npy", 1)
    (tmp_path / FOLDER).mkdir()
    names = 100_000
    head = json.dumps({"single": True, "count": names})
    lines = [head, *(f'"a{n}"' for n in range(names))]
    (tmp_path / FOLDER / "1.json").write_text("\n".join(lines) + "\n")
    raconvert.info(path)
    tracemalloc.start()
    try:
        raconvert.info(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
