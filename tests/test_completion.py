"""Completion in bash, zsh and fish: what the shells themselves answer, and the words behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest

from raconvert.cli import VERBS, main
from raconvert.cli.completion import words_for

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]

# A line -> what completes its last word; in every shell
LINES = {
    "raconvert inf": ["info"],
    "raconvert a.npy --ov": ["--overwrite"],
    "raconvert convert a.npy --ov": ["--overwrite"],
    "raconvert a.npy --to pn": ["png"],
    "raconvert diff --color al": ["always"],
    "raconvert c.h5 -o x.npy -a grou": ["group/one", "group/two"],
    "raconvert info c.h5#grou": ["c.h5#group/one", "c.h5#group/two"],
    "raconvert a.npy -o x.png --out-opt lev": ["level="],
    "raconvert a.npy -o x.h5 --allow no": [],
    "raconvert a.npy -o x.h5 --allow nu": ["nulls"],
    "raconvert formats nrr": ["nrrd"],
    "raconvert completion fi": ["fish"],
    "raconvert help di": ["diff", "digest"],
    "raconvert a.n": ["a.npy"],
    "raconvert info a.n": ["a.npy"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(3))
    with h5py.File("c.h5", "w") as file:
        for name in ("group/one", "group/two", "else"):
            file[name] = np.arange(3)
    place = tmp_path / ".bin"
    place.mkdir()
    program = place / "raconvert"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raconvert "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def answers(command: list[str], script: str) -> str:
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bash_answers(capsys: pytest.CaptureFixture[str], tool: Callable[..., str]) -> None:
    main(["completion", "bash"])
    script = capsys.readouterr().out
    for line in LINES:
        script += (
            f"COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))\n"
            '_raconvert; echo "${COMPREPLY[*]}"\n'
        )
    found = answers([tool("bash"), "--norc"], script).splitlines()

    by_itself = "raconvert info a.n"  # for names of files nothing is said: bash knows them
    assert found == [" ".join(LINES[line]) if line != by_itself else "" for line in LINES]
    assert "-o default" in script


def test_fish_answers(capsys: pytest.CaptureFixture[str], tool: Callable[..., str]) -> None:
    fish = tool("fish")
    main(["completion", "fish"])
    script = capsys.readouterr().out
    script += "".join(f"complete -C '{line}'; echo ---\n" for line in LINES)

    found = answers([fish, "--no-config"], script).split("---\n")[:-1]

    # fish matches inside of words, too, and names every file that there is
    for line, said in zip(LINES, found, strict=True):
        word = line.split()[-1]
        fits = [one.split("\t")[0] for one in said.splitlines() if one.startswith(word)]
        assert sorted(set(fits)) == LINES[line], line


def test_zsh_answers(capsys: pytest.CaptureFixture[str], tool: Callable[..., str]) -> None:
    zsh = tool("zsh")
    main(["completion", "zsh"])
    script = "compdef() { : }\ncompadd() { [[ $1 == -S ]] && shift 2; shift; said+=($@) }\n"
    script += "_files() { said=(FILES) }\n" + capsys.readouterr().out
    for line in LINES:
        script += f"said=(); words=({line}); CURRENT=${{#words}}; _raconvert; echo $said\n"

    found = answers([zsh, "-f"], script).splitlines()

    files = {"raconvert info a.n", "raconvert a.npy -o x.h5 --allow no"}
    assert found == ["FILES" if line in files else " ".join(LINES[line]) for line in LINES]


def test_tcsh_has_a_script_of_all_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")

    assert main(["completion", "tcsh"]) == 0

    out = capsys.readouterr().out
    assert all(verb in out for verb in VERBS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ([""], {*VERBS, "a.npy", "c.h5"}),
        (["c"], {"convert", "completion", "c.h5"}),
        (["a.npy", "--to", "=", "np"], {"npy", "npz"}),
        (["a.npy", "--to", "="], {"ra", "png", "hdf5"}),
        (["a.npy", "--to=np"], {"--to=npy", "--to=npz"}),
        (["a.npy", "--allow", "dtype,pre"], {"dtype,precision"}),
        (["c.h5", "--to", "npy", "--out-dir", "d", "--array", "e"], {"else"}),
        (["migrate", "a", "b", "--t"], {"--to"}),
        (["none.h5", "-a", ""], set()),
        (["none.h5#x"], set()),
        (["a.npy", "-o", "x.what", "--out-opt", ""], set()),
        ([], {*VERBS}),
    ],
)
def test_words(line: list[str], words: set[str]) -> None:
    found = words_for(line)

    assert set(found) >= words
    assert bool(found) == bool(words)
    assert all(one.startswith(line[-1].lstrip("=")) for one in found if line)


def test_values_of_keys() -> None:
    (option,) = words_for(["a.npy", "-o", "x.ra", "--out-opt", "enc"])
    values = words_for(["a.npy", "-o", "x.ra", "--out-opt", option])

    assert option == "encoding="
    assert "encoding=lz4" in values
    for value in values:
        code = main(["a.npy", "-o", "x.ra", "--overwrite", "-q", "--out-opt", value])
        assert code in (0, 4), value  # known, if not for all types
