"""Help of verbs: three examples first, each of which runs, then the options in groups."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from raconvert import __version__
from raconvert.cli import EXAMPLES, VERBS, help_text, main, version
from raconvert.cli.options import VERBS as TABLES
from raconvert.cli.parser import build, parse

LINES = [line for lines in help_text.EXAMPLES.values() for line, _ in lines]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the files of all examples, and what the ones before them write."""
    monkeypatch.chdir(tmp_path)
    Path("mnist").mkdir()
    Path("in", "below").mkdir(parents=True)
    for number in range(3):
        Image.fromarray(np.full((4, 4), number, "u1")).save(f"mnist/{number}.png")
        np.save(f"in/below/{number}.npy", np.arange(4.0) + number)
    np.save("scan.npy", np.arange(24, dtype="f4").reshape(2, 3, 4))
    np.save("near.npy", np.arange(24, dtype="f4").reshape(2, 3, 4) + np.float32(1e-7))
    with h5py.File("many.h5", "w") as file:
        file["x"] = file["y"] = np.arange(6.0)
    if not Path("scan.ra").exists():
        for line in (
            "scan.npy -o scan.ra",
            "'mnist/*.png' -o mnist.ra",
            "refs scan.npy -o scan.json",
        ):
            assert main([*shlex.split(line), "-q"]) == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("line", [*LINES, *(line.partition(" ")[2] for line, _ in EXAMPLES)])
def test_examples_run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "out" in line.replace("out/", "out").split() and not line.startswith(("in/", "migrate in/")):
        assert main(["migrate", "in", "out", "--to", "npy", "-q"]) == 0
    for made in ("scan.ra", "mnist.ra", "scan.json"):  # those that the line writes itself
        if f"-o {made}" in line:
            Path(made).unlink()

    if line.startswith("view "):  # which serves until it is stopped: tests/test_viewer.py
        args = parse("view", shlex.split(line)[1:])
        assert all(Path(file).exists() for file in args.files)
        return

    code = main(shlex.split(line))

    assert code == 0, capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("columns", ["80", "70", "200"])
def test_examples_stand_first_and_fit(
    verb: str,
    columns: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert main(["help", verb]) == 0
    assert capsys.readouterr().out == text

    head, _, options = text.partition("\nexamples:\n")
    examples, _, options = options.partition("\n\n")
    lines = examples.splitlines()
    assert len(help_text.EXAMPLES[verb]) == 3
    assert len(lines) in ((3, 6) if columns == "70" else (3,))
    assert head.startswith("usage: raconvert ")
    assert max(map(len, text.splitlines())) <= int(columns)
    titles = re.findall(r"^(\w+ \(.*\)):$", options, re.MULTILINE)
    assert titles
    assert titles == [title for title in help_text.GROUPS if title in titles]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_in_one_group(verb: str) -> None:
    actions = build(verb, TABLES[verb], VERBS[verb])._actions
    found = list(help_text.groups(actions))

    assert "others" not in dict(found)
    assert sorted(id(one) for _, group in found for one in group) == sorted(map(id, actions))


def test_each_option_of_the_groups_is_one() -> None:
    named = " ".join(help_text.GROUPS.values()).split()
    last = {option.flags[-1] for spec in TABLES.values() for option in spec.options} | {"--help"}

    assert len(named) == len({*named})
    assert {*named} == last


def test_options_of_formats_are_one_step_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "convert"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "raconvert formats NAME lists what --in-opt and --out-opt take" in text
    assert "level=9 for png" in text
    assert main(["formats", "png"]) == 0
    assert "level=6" in capsys.readouterr().out


def test_help_of_what_is_no_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "png"]) == 2
    assert "the format png: raconvert formats png" in capsys.readouterr().err
    assert main(["help", "vrify"]) == 2
    assert "did you mean 'verify'?" in capsys.readouterr().err
    assert main(["help", "info", "peek"]) == 2
    assert "'peek' is one too many" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"raconvert {__version__}\n"
    assert main(["version", "-v"]) == 0
    out = capsys.readouterr().out
    assert f"numpy {np.__version__}\n" in out
    assert f"h5py {h5py.__version__}\n" in out
    assert main(["version", "now"]) == 2
    assert "'now' is one too many" in capsys.readouterr().err


def test_a_library_that_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "libraries", lambda: {"h5py": None})
    assert main(["version", "-v"]) == 0
    assert "h5py is not installed\n" in capsys.readouterr().out
    assert main(["version", "--json"]) == 0
    assert '"h5py": null' in capsys.readouterr().out


def test_a_file_named_help_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("help", "version"):
        Path(name).touch()
        assert main([name]) == 0
        assert "raconvert" in capsys.readouterr().out
        assert main([name, "-o", "b.ra"]) == 2
        assert "is a verb, and here it is also a file" in capsys.readouterr().err
