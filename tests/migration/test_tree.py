"""What the files of a tree become: containers, bundles, partner files, names that collide."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert.errors import TargetExists, UsageError, WouldLose
from raconvert.migration.report import Migration

A, B = np.arange(6.0).reshape(2, 3), np.arange(4, dtype="<i2")


def migrate(root: Path, **options: Any) -> Migration:
    return raconvert.migrate(
        root / "s",
        root / "out",
        **{"to": "ra", "jobs": 1, **options},  # type: ignore[arg-type]
    )


def names(root: Path) -> list[str]:
    """The files of a tree without those of the journal, and whether anything hidden is left."""
    found = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    assert not [name for name in found if ".tmp" in name]
    return sorted(
        name for name in found if not name.startswith((".raconvert-migration", "SHA256SUMS"))
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with containers: of two arrays, of one, with groups."""
    h5py = pytest.importorskip("h5py")
    (tmp_path / "s/sub").mkdir(parents=True)
    np.savez(tmp_path / "s/two.npz", a=A, b=B)
    np.savez(tmp_path / "s/one.npz", only=A)
    with h5py.File(tmp_path / "s/sub/deep.h5", "w") as file:
        file["raw/adc"] = A
        file["raw/con"] = B  # a name that Windows reserves
        file["on"] = B
    return tmp_path


def test_a_container_of_several_arrays_becomes_a_folder_of_them(root: Path) -> None:
    result = migrate(root)

    assert not result.failed
    assert names(root / "out") == [
        "one.ra", "sub/deep/on.ra", "sub/deep/raw/%63on.ra", "sub/deep/raw/adc.ra",
        "two/a.ra", "two/b.ra",
    ]  # fmt: skip
    assert np.array_equal(raconvert.read(root / "out/sub/deep/raw/adc.ra"), A)
    assert np.array_equal(raconvert.read(root / "out/two/b.ra"), B)
    assert {unit.source: outcome.target for unit, outcome in result.outcomes} == {
        "one.npz": "", "two.npz": "two", "sub/deep.h5": "sub/deep",
    }  # fmt: skip


def test_the_digest_of_a_folder_is_that_of_its_sums(root: Path, tool: Callable[..., str]) -> None:
    tool("sha256sum")
    result = migrate(root)

    _, outcome = next((u, o) for u, o in result.outcomes if u.source == "two.npz")
    sums = subprocess.run(
        "sha256sum a.ra b.ra | sha256sum",
        shell=True, cwd=root / "out/two", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert outcome.digest == sums.stdout.split()[0]


def test_folder_and_file_can_be_asked_for(root: Path) -> None:
    files = migrate(root, containers="file")
    assert names(root / "out") == ["one.ra"]
    assert sorted(path for path, _ in files.failed) == ["sub/deep.h5", "two.npz"]
    assert "a, b" in str(dict(files.failed)["two.npz"])

    raconvert.migrate(root / "s", root / "folders", to="ra", containers="folder", jobs=1)
    assert "one/only.ra" in names(root / "folders")
    with pytest.raises(UsageError, match="holds many"):
        migrate(root, containers="folder", to="npz")


def test_containers_stay_files_where_the_target_is_one(root: Path) -> None:
    migrate(root, to="hdf5")

    assert names(root / "out") == ["one.h5", "sub/deep.h5", "two.h5"]


def test_finished_folders_are_not_done_again_and_damage_is_found(root: Path) -> None:
    migrate(root)
    again = migrate(root)
    assert (len(again.before), again.outcomes) == (3, [])

    place = root / "out/two/b.ra"
    whole = place.read_bytes()
    place.write_bytes(whole[:-1] + b"?")
    found = migrate(root, paranoid=True)

    assert found.notes == ["'two' is damaged, and is written again"]
    assert place.read_bytes() == whole


def test_a_folder_with_what_is_not_ours_is_left_alone(root: Path) -> None:
    (root / "out/two").mkdir(parents=True)
    (root / "out/two/notes.txt").write_text("mine")

    for options in ({}, {"overwrite": True}):
        result = migrate(root, **options)
        error = dict(result.failed)["two.npz"]
        assert isinstance(error, TargetExists)
        assert (root / "out/two/notes.txt").read_text() == "mine"
        assert "two/a.ra" not in names(root / "out")


def test_a_changed_container_replaces_its_folder_with_update(root: Path) -> None:
    migrate(root)
    np.savez(root / "s/two.npz", a=B, b=A)

    assert not migrate(root, update=True).failed
    assert np.array_equal(raconvert.read(root / "out/two/a.ra"), B)


def test_a_container_that_has_one_array_now_does_not_lie_beside_its_folder(root: Path) -> None:
    migrate(root)
    np.savez(root / "s/two.npz", a=B)

    error = dict(migrate(root, update=True).failed)["two.npz"]

    assert "would be left beside" in str(error)
    assert "two.ra" not in names(root / "out")


def test_an_array_that_fails_leaves_no_folder(root: Path) -> None:
    np.savez(root / "s/mixed.npz", good=B, text=np.array(["a"], dtype=object), allow_pickle=True)

    result = migrate(root, to="png", dtype="uint8", include=["two.npz"])

    assert isinstance(dict(result.failed)["two.npz"], WouldLose)
    assert names(root / "out") == []
    assert not (root / "out/two").exists()


def test_dry_run_plans_folders_and_writes_nothing(root: Path) -> None:
    result = migrate(root, dry_run=True)

    assert [outcome.state for _, outcome in result.outcomes] == ["planned"] * 3
    assert not (root / "out").exists()


def test_a_folder_that_others_go_to_is_not_taken(root: Path) -> None:
    (root / "s/two").mkdir()
    np.save(root / "s/two/a.npy", B)

    result = migrate(root)

    assert list(dict(result.failed)) == ["two.npz"]
    assert names(root / "out/two") == ["a.ra"]
    assert np.array_equal(raconvert.read(root / "out/two/a.ra"), B)


def test_no_bundle_is_written_around_another(tmp_path: Path) -> None:
    (tmp_path / "s/x").mkdir(parents=True)
    np.save(tmp_path / "s/x.npy", A)
    np.save(tmp_path / "s/x/y.npy", B)

    result = migrate(tmp_path, to="bundle")

    assert "in which 'x/y.npy' does" in str(dict(result.failed)["x.npy"])
    assert names(tmp_path / "out") == ["x/y/bundle.yaml", "x/y/y.ra"]


def test_a_bundle_in_the_tree_is_one_source(root: Path) -> None:
    migrate(root, to="bundle")
    assert names(root / "out/two") == ["a.ra", "b.ra", "bundle.yaml"]

    back = raconvert.migrate(root / "out", root / "back", to="npz", jobs=1)

    assert not back.failed
    assert [path for path, _ in back.left_out] == ["SHA256SUMS"]
    assert names(root / "back") == ["one.npz", "sub/deep.npz", "two.npz"]
    with np.load(root / "back/two.npz") as file:
        assert {name: file[name].tolist() for name in file} == {"a": A.tolist(), "b": B.tolist()}
    with pytest.raises(UsageError, match="is a bundle"):
        raconvert.migrate(root / "out/two", root / "third", to="npz", jobs=1)


def test_files_that_headers_name_go_with_them(tmp_path: Path) -> None:
    root = tmp_path / "s"
    (root / "data").mkdir(parents=True)
    raconvert.write(root / "ct.nhdr", A)
    header = (root / "ct.nhdr").read_bytes()
    (root / "far.nhdr").write_bytes(header.replace(b"ct.raw", b"data/slice.bin"))
    (root / "data/slice.bin").write_bytes((root / "ct.raw").read_bytes())
    raconvert.write(root / "v.scidb", B)
    np.save(root / "m.npy", B)
    raconvert.convert(root / "m.npy", root / "m.ra")
    raconvert.write(root / "n.ra", B, meta=raconvert.Metadata.from_dict({"description": "x"}))
    (root / "notes.txt").write_text("x")

    result = migrate(tmp_path, to="npy")

    assert dict(result.left_out) == {
        "ct.raw": "goes with ct.nhdr", "data/slice.bin": "goes with far.nhdr",
        "n.ra.yaml": "goes with n.ra", "v.scidb.schema": "goes with v.scidb",
        "notes.txt": "no format claims it",
    }  # fmt: skip
    assert [path for path, _ in result.failed] == ["m.ra"]  # m.npy is there already


def test_a_format_that_is_known_but_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    np.save(tmp_path / "s/x.npy", A)
    (tmp_path / "s/old.h4").write_bytes(b"\x0e\x03\x13\x01" + bytes(100))

    ((path, reason),) = migrate(tmp_path).left_out

    assert path == "old.h4"
    assert "HDF4" in reason


def test_files_are_chosen_by_path_and_by_name(root: Path) -> None:
    result = migrate(root, include=["*.npz"], exclude=["one*"])
    assert names(root / "out") == ["two/a.ra", "two/b.ra"]
    assert dict(result.left_out)["sub/deep.h5"] == "not asked for"

    raconvert.migrate(root / "s", root / "out2", to="ra", jobs=1, include=["sub/*"])
    assert {name.split("/")[0] for name in names(root / "out2")} == {"sub"}


def test_a_killed_run_leaves_no_half_of_a_folder(root: Path) -> None:
    words = [sys.executable, "-m", "raconvert", "migrate", str(root / "s"), str(root / "out"),
             "--to", "ra", "--jobs", "1"]  # fmt: skip
    raconvert.migrate(root / "s", root / "whole", to="ra", jobs=1)

    import os

    subprocess.run(
        words, env={**os.environ, "RACONVERT_TEST_KILL": "worker-written:1"}, check=False,
        capture_output=True,
    )  # fmt: skip
    again = subprocess.run(words, capture_output=True, text=True, check=False)

    assert again.returncode == 0, again.stderr
    for name in names(root / "whole"):
        assert (root / "out" / name).read_bytes() == (root / "whole" / name).read_bytes()
    assert names(root / "out") == names(root / "whole")


def test_what_is_not_a_file_is_left_out_with_its_reason(tmp_path: Path) -> None:
    import os

    (tmp_path / "s").mkdir()
    (tmp_path / "elsewhere").mkdir()
    np.save(tmp_path / "elsewhere/x.npy", A)
    (tmp_path / "s/folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "s/file.npy").symlink_to(tmp_path / "elsewhere/x.npy")
    (tmp_path / "s/nothing.npy").symlink_to(tmp_path / "gone.npy")
    os.mkfifo(tmp_path / "s/pipe.npy")

    result = migrate(tmp_path)

    assert names(tmp_path / "out") == ["file.ra"]
    assert dict(result.left_out) == {
        "folder": "is a link to a folder", "pipe.npy": "is not a regular file",
        "nothing.npy": "is a link that leads nowhere",
    }  # fmt: skip


def test_a_bundle_yaml_of_another_program_makes_no_bundle(tmp_path: Path) -> None:
    for folder in ("s", "s/sub"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "x.npy", A)
        (tmp_path / folder / "bundle.yaml").write_text("rails: 7\n")

    result = migrate(tmp_path)

    assert names(tmp_path / "out") == ["sub/x.ra", "x.ra"]
    assert sorted(path for path, _ in result.left_out) == ["bundle.yaml", "sub/bundle.yaml"]


def test_folders_are_verified_kept_and_planned_like_files(root: Path) -> None:
    assert not migrate(root, verify=True).failed
    before = (root / "out/two").stat().st_ino
    (root / "out/.raconvert-migration.sqlite").unlink()

    refused = migrate(root, dry_run=True)
    kept = migrate(root, skip_existing=True)

    assert sorted(path for path, _ in refused.failed) == ["one.npz", "sub/deep.h5", "two.npz"]
    assert [outcome.state for _, outcome in kept.outcomes] == ["skipped"] * 3
    assert (root / "out/two").stat().st_ino == before
    assert not migrate(root, overwrite=True).failed
    assert (root / "out/two").stat().st_ino != before


def test_a_run_that_dies_while_it_writes_a_folder_leaves_nothing_of_it(root: Path) -> None:
    """The process ends where the finished folder, or a file in it, would get its name."""
    dies = (
        "import os, signal, sys\n"
        "die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.link = os.rename = os.replace = die\n"
        "from raconvert.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    words = ["migrate", str(root / "s"), str(root / "out"), "--to", "ra", "--jobs", "1",
             "--include", "two.npz"]  # fmt: skip

    subprocess.run([sys.executable, "-c", dies, *words], capture_output=True, check=False)
    assert not (root / "out/two").exists()
    subprocess.run([sys.executable, "-m", "raconvert", *words], capture_output=True, check=True)

    assert names(root / "out") == ["two/a.ra", "two/b.ra"]
    assert [path.name for path in (root / "out").rglob(".raconvert-*.tmp")] == []


def test_few_headers_are_opened_to_find_what_goes_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sidecars are known by their names; of many headers, what some name is believed of the rest."""
    from raconvert.migration import tree

    root = tmp_path / "s"
    root.mkdir()
    described = raconvert.Metadata.from_dict({"description": "x"})
    for number in range(30):
        raconvert.write(root / f"{number}.ra", B, meta=described)
    for number in range(30, 60):
        raconvert.write(root / f"{number}.nhdr", B)
        (root / f"{number}.txt").write_text("notes")
    opened = []
    true = tree.open_spec
    monkeypatch.setattr(tree, "_MOST", 5)
    monkeypatch.setattr(
        tree, "open_spec", lambda spec, settings: opened.append(spec) or true(spec, settings)
    )

    left_out = dict(migrate(tmp_path, to="npy").left_out)

    assert left_out == {
        **{f"{n}.ra.yaml": f"goes with {n}.ra" for n in range(30)},
        **{f"{n}.raw": f"goes with {n}.nhdr" for n in range(30, 60)},
        **{f"{n}.txt": "no format claims it" for n in range(30, 60)},
    }
    assert len(opened) == 5


ODD = ["a{1}", "b{stem}", "c{}", "run#2", "e[1]", "f*", "g?", "sp ace", "-", "new\nline", "h%20",
       "~", "x.", "{", "\udcff", "\u00e9", "$HOME", "a\\b", "con"]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="names that only Linux lets be")
@pytest.mark.parametrize("to", ["ra", "hdf5", "bundle"])
def test_names_are_literal_whatever_is_in_them(to: str, tmp_path: Path) -> None:
    odd = [name for name in ODD if to != "bundle" or name.isprintable()]  # of arrays, there
    for number, name in enumerate(odd):
        folder = tmp_path / "s" / f"d{name}"
        folder.mkdir(parents=True)
        np.save(folder / f"{name}.npy", np.full(3, number))
        np.savez(folder / f"two {name}.npz", a=np.full(3, number), b=B)

    result = migrate(tmp_path, to=to)
    again = migrate(tmp_path, to=to, paranoid=True)

    assert not result.failed
    assert (len(again.before), again.outcomes) == (2 * len(odd), [])
    for number, name in enumerate(odd):
        folder = tmp_path / "out" / f"d{name}"
        suffix = {"ra": ".ra", "hdf5": ".h5", "bundle": ""}[to]
        one = raconvert.read(folder / f"{name}{suffix}")
        two = folder / f"two {name}"
        a = raconvert.read(two / "a.ra") if to == "ra" else raconvert.read(f"{two}{suffix}", "a")
        for values in (one if to == "ra" else next(iter(one.values())), a):
            assert values.tolist() == [number] * 3


def test_a_folder_that_cannot_be_read_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.migration import tree

    for folder in ("a", "b"):
        (tmp_path / "s" / folder).mkdir(parents=True)
        np.save(tmp_path / "s" / folder / "x.npy", A)
    looked_at = tree._looked_at

    def denied(folder: str) -> object:
        if folder.rstrip("/").endswith("/b"):
            raise PermissionError(13, "Permission denied")
        return looked_at(folder)

    monkeypatch.setattr(tree, "_looked_at", denied)
    result = migrate(tmp_path)

    assert result.done == 1
    assert [(path, str(error)) for path, error in result.failed] == [
        ("b", "'b': cannot be read: Permission denied\n  make it readable")
    ]
    assert result.left_out == []
