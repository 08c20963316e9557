"""Options and verbs as other programs call them: the message says what runs, and it is run."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest
from dicom_files import dataset, save
from PIL import Image

from raconvert import __version__
from raconvert.cli import VERBS, elsewhere, main
from raconvert.cli.options import VERBS as TABLES
from raconvert.cli.parser import parse

VALUES = np.arange(12, dtype="u1").reshape(3, 4)
# advice -> a command that it makes run, and the value that stands behind the option
RUNS = {
    "--to {}": ("a.npy --out-dir out", "ra"),
    "--from {}": ("info a.npy", "npy"),
    "--out-dir {}": ("a.npy --to ra", "out"),
    "-o {}": ("convert a.npy", "b.ra"),
    "--out-opt quality={}": ("a.npy -o b.jpg --allow precision", "90"),
    "--out-opt wide={}": ("a.npy -o b.csv", "0"),
    "--out-opt levels={}": ("a.npy -o b.ome.tif", "2"),
    "--in-opt keep-tags={}": ("info scan.dcm", "PatientID"),
    "--in-opt layout={}": ("info table.csv", "columns"),
    "--array {}": ("info two.npz", "x"),
    "--meta {}": ("a.npy -o b.ra", "drop"),
    "--meta drop": ("a.npy -o b.ra", ""),
    "--meta ignore": ("info a.npy", ""),
    "--ignore-meta": ("diff a.npy a.npy", ""),
    "--stack": ("a.npy same.npy -o b.ra", ""),
    "--concat 0": ("a.npy same.npy -o b.ra", ""),
    "--overwrite": ("a.npy -o same.npy", ""),
    "--skip-existing": ("a.npy -o same.npy", ""),
    "--update": ("a.npy -o same.npy", ""),
    "--slice {}": ("a.npy -o b.ra", "1:3"),
    "--dtype {}": ("a.npy -o b.ra", "float32"),
    "--unscale": ("packed.h5 -o b.npy", ""),
    "--scale minmax": ("half.npy -o b.png", ""),
    "--axes {}": ("a.npy -o b.ra", "1,0"),
    "--index-order {}": ("info a.ra", "F"),
    "--each": ("a.npy same.npy --to ra --out-dir out", ""),
    "--recursive": ("folder --to npy --out-dir out", ""),
    "--include {}": ("folder --to npy --out-dir out", "'*.npy'"),
    "--exclude {}": ("folder -r --to npy --out-dir out", "'b*'"),
    "--files-from {}": ("-o b.ra --stack", "list.txt"),
    "--jobs {}": ("a.npy same.npy -o b.ra", "2"),
    "--max-memory {}": ("a.npy -o b.ra", "64M"),
    "--dry-run": ("a.npy -o b.ra", ""),
    "--quiet": ("a.npy -o b.ra", ""),
    "--verbose": ("a.npy -o b.ra", ""),
    "--color never": ("info a.npy", ""),
    "--color {}": ("info a.npy", "always"),
    "--verify": ("a.npy -o b.ra", ""),
    "--short": ("info a.npy", ""),
    "--atol {}": ("diff a.npy same.npy", "1e-6"),
}
ROWS = [(row, elsewhere._ALL) for row in elsewhere._ALL]
ROWS += [(row, elsewhere._FIRST) for row in elsewhere._FIRST]
OF_OPTIONS = [
    (flag, advice, "several" if table is elsewhere._ALL else "first")
    for (flags, *advised), table in ROWS
    for flag in flags.split()
    for advice in advised
    if advice.startswith("-") and flag != "--scale"  # which convert has itself
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder", "below").mkdir(parents=True)
    for name in ("a.npy", "same.npy", "folder/a.npy", "folder/below/b.npy"):
        np.save(name, VALUES)
    np.save("half.npy", VALUES / 2)
    np.savez("two.npz", x=VALUES, y=VALUES)
    Image.fromarray(np.zeros((4, 4), "u1")).save("g.png")
    with h5py.File("packed.h5", "w") as file:
        file["x"] = VALUES
        file["x"].attrs["scale_factor"] = 0.5
    save(dataset(VALUES), Path("scan.dcm"))
    Path("table.csv").write_text("p,q\n1,2.5\n3,4.5\n")
    Path("list.txt").write_text("a.npy\nsame.npy\n")
    assert main(["a.npy", "-o", "a.ra", "-q"]) == 0


def said(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(shlex.split(line))
    return code, capsys.readouterr().err


def advised(text: str) -> list[str]:
    """The options that a message names."""
    named = text.partition("did you mean ")[2].partition("?\n")[0]
    return [
        one if "' " in one or one[-1:] == "'" != one[:1] else one.strip("'")
        for one in named.split(" or ")
    ]


@pytest.mark.parametrize(("flag", "advice", "kind"), OF_OPTIONS, ids=str)
def test_what_is_advised_runs(
    flag: str, advice: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line, value = RUNS[advice]
    verb = line.split()[0] if line.split()[0] in VERBS else "convert"
    wrong = f"{line} {flag} {value}".rstrip()

    code, text = said(wrong, capsys)

    assert code == 2
    assert f"{verb} has no option '{flag}'" in text
    found = advised(text)
    right = advice.format(value)
    assert right in found, (found, text)
    assert kind == "several" or found == [right]
    code, text = said(f"{line} {right}", capsys)
    assert code == 0, text


@pytest.mark.parametrize("row", [row for row, _ in ROWS], ids=lambda row: row[0].split()[0])
def test_commands_in_words_run(row: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """What is advised as a command is one, with names in the place of those in capitals."""
    commands = [one for advice in row[1:] for one in re.findall(r"raconvert (.*)", advice)]
    names = {"FILE": "a.npy", "PAGE": "page.html", "DST": "b.ra"}
    for command in commands:
        words = [names.get(word, word) for word in command.split()]
        if words[0] == "view":  # which serves until it is stopped: tests/test_viewer.py
            assert parse("view", words[1:]).verb == "view"
        else:
            assert main(words) == 0, command


def test_each_flag_has_one_row() -> None:
    flags = Counter(flag for row, _ in ROWS for flag in row[0].split())
    flags.update(elsewhere._COMPRESS)

    assert max(flags.values()) == 1, flags.most_common(3)
    known = {flag for spec in TABLES.values() for option in spec.options for flag in option.flags}
    for row, _ in ROWS:
        for advice in row[1:]:
            assert not advice.startswith("-") or advice.split()[0] in known


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("a.npy -o b.npz {}", "--out-opt compress=deflate"),
        ("a.npy -o b.h5 {}", "--out-opt compress=gzip"),
        ("a.npy -o b.nrrd {}", "--out-opt encoding=gzip"),
        ("a.npy -o b.mha {}", "--out-opt compress=zlib"),
        ("a.npy -o b.tif {}", "--out-opt compression=deflate"),
        ("a.npy -o b.png {}", "--out-opt level=9"),
        ("a.npy -o b.zarr {}", "--out-opt compress=gzip"),
        ("a.npy -o b.idx {}", "--out-opt gzip=yes"),
        ("a.npy -o b.rds {}", "--out-opt compress=gzip"),
        ("a.npy -o b.parquet {}", "--out-opt compression=gzip"),
        ("a.npy -o b.mat --out-opt version=7 {}", "--out-opt compress=1"),
        ("a.npy --to nrrd --out-dir out {}", "--out-opt encoding=gzip"),
    ],
)
@pytest.mark.parametrize("flag", ["--compress gzip", "--compression=gzip", "-z", "-c", "--gzip"])
def test_compression_is_an_option_of_the_format(
    line: str, options: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(line.format(flag), capsys)

    assert code == 2
    assert advised(text) == [options], text
    assert said(line.format(options), capsys)[0] == 0


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("a.npy -o b.h5 --level 9", "--out-opt compress=gzip:9"),
        ("a.npy -o b.nrrd --compression-level 3", "--out-opt encoding=gzip:3"),
        ("a.npy -o b.mat --out-opt version=7 -z 5", "--out-opt compress=5"),
        ("a.npy -o b.png --level 2", "--out-opt level=2"),
        ("a.npy -o b.ra --compress lz4", "--out-opt encoding=lz4"),
        ("a.npy -o b.zarr --zstd", "--out-opt compress=zstd"),
    ],
)
def test_levels_and_methods(line: str, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(line, capsys)

    assert (code, advised(text)) == (2, [options]), text
    start = re.split(r" (?=--level|--comp|-z|--zstd)", line)[0]
    assert said(f"{start} {options}", capsys)[0] == 0


def test_formats_without_compression_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said("a.npy -o b.npy --compress gzip", capsys)

    assert code == 2
    assert "npy is written uncompressed; its options: raconvert formats npy" in text
    assert said("formats npy", capsys)[0] == 0


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("a.npy -o same.npy -f", ["--overwrite"]),
        ("a.npy --out-dir out -f npy", ["--to npy", "--from npy"]),
        ("a.npy -o b -f h5", ["--to h5", "--from h5"]),
        ("info a.npy -f npy", ["--from npy"]),
        ("a.npy -o b.ra --Overwrite", ["--overwrite"]),
        ("a.npy -o b.ra --skip_existing", ["--skip-existing"]),
    ],
)
def test_the_word_behind_and_the_spelling(
    line: str, right: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(line, capsys)

    assert (code, advised(text)) == (2, right), text


def test_a_value_is_quoted_where_a_shell_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said("a.npy -o b.ra --crop '1:3, 2'", capsys)

    assert code == 2
    assert "did you mean --slice '1:3, 2'?" in text
    assert said("a.npy -o b.ra --slice '1:3, 2'", capsys)[0] == 0


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("info a.npy --slice 1:", "--slice is an option of convert"),
        ("peek a.npy -j 4", "-j is an option of convert, migrate"),
        ("info a.npy --workers 4", "--jobs is an option of convert, migrate"),
        ("diff a.npy a.npy --crop 1", "--slice is an option of convert"),
        ("info a.npy --scale", "--unscale is an option of convert, migrate"),
        ("migrate folder out --to ra -r", "takes all that is below a folder"),
        ("migrate folder out --to ra --resume", "--skip-existing"),
        ("a.npy -o b.ra --lossy", "a refusal names the --allow that it needs"),
        ("a.npy -o b.npy --scale", "for physical values: --unscale"),
    ],
)
def test_options_of_other_verbs(line: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(line, capsys)

    assert code == 2
    assert where in text


@pytest.mark.parametrize("word", sorted(elsewhere._VERBS))
def test_verbs_of_others(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(f"'{word}' nothing", capsys)

    assert code == 2
    assert f"unknown verb '{word}'; did you mean '{elsewhere._VERBS[word]}'?" in text
    assert elsewhere._VERBS[word] in VERBS
    assert word not in VERBS


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("a.npy --out-dir out --to nyp", "npy"),
        ("a.npy --out-dir out --to nrdd", "nrrd"),
        ("info a.npy --from npz2", "npz"),
        ("formats hdf6", "hdf5"),
        ("help convrt", "convert"),
        ("migrat folder out --to ra", "migrate"),
    ],
)
def test_misspelt_words(line: str, right: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(line, capsys)

    assert code in (2, 3)
    assert f"did you mean '{right}'?" in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("convert -rf a b", "convert has no option '-f'; did you mean '--overwrite'?"),
        ("migrate -rf a b", "migrate takes all that is below a folder, without an option"),
        ("peek -qf a", "--overwrite is an option of convert"),
        ("peek --force a", "--overwrite is an option of convert"),
    ],
)
def test_short_options_in_one_word(
    words: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert text in said
    assert "did you mean '--overwrite is" not in said


def test_v_alone_is_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-v"]) == 0
    assert capsys.readouterr().out == f"raconvert {__version__}\n"
