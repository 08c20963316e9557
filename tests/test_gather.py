"""Which files a word means, in which order, and what is odd about their names."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raconvert
from raconvert import convert
from raconvert.cli import main
from raconvert.conversion.inputs import (
    gather,
    in_shell_order,
    missing_numbers,
    natural_key,
    natural_sorted,
    sequence_note,
    split_spec,
    without_braces,
)
from raconvert.conversion.labels import labels_of
from raconvert.errors import RaconvertError, ReadFailed, UsageError
from raconvert.files.paths import folders_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*names: str) -> None:
    """Write arrays of one element, the number of the name in the order given."""
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with Path(name).open("wb") as file:
            np.save(file, np.array([number]))


def numbers(*words: str, **options: object) -> list[int]:
    """Return which of the files made by `make` a conversion of these words stacks."""
    convert(list(words), "out.ra", overwrite=True, **options)
    return raconvert.read("out.ra").reshape(-1).tolist()


# An existing path is literal ---------------------------------------------------------------------

ODD_NAMES = ["scan[1].npy", "a*b.npy", "a?b.npy", "a#b.npy", "#.npy", "x.npy#y", "[!a].npy", "{}.npy",
             "a b.npy", "~.npy", "$HOME.npy", "-", "a\nb.npy", "**", "%d.npy", "{stem}.npy"]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_an_existing_path_is_literal(name: str) -> None:
    make(name, "scan1.npy", "axb.npy", "b.npy", "a.npy", "x.npy")
    assert gather([name])[:3] == ([name], False, "natural order")
    convert(name, "out.ra")
    assert raconvert.read("out.ra").tolist() == [0]


def test_a_folder_whose_name_is_a_pattern_is_literal() -> None:
    make("a[1]/1.npy", "a1/2.npy")
    assert gather(["a[1]"]).paths == ["a[1]/1.npy"]


def test_files_below_a_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    make("a[1]/1.npy", "a[1]/2.npy", "a1/3.npy")
    escaped = "a[[]1]/*.npy"
    assert gather([escaped]).paths == ["a[1]/1.npy", "a[1]/2.npy"]


@pytest.mark.parametrize(
    ("spec", "path", "name"),
    [
        ("x.npz#a", "x.npz", "a"),
        ("x.npz#a#b", "x.npz", "a#b"),
        ("x.npz#", "x.npz", ""),
        ("y#1.npz#a", "y#1.npz", "a"),
        ("y#1.npz", "y#1.npz", None),
        ("z.npz#a", "z.npz#a", None),
        ("x.npz#a/b", "x.npz", "a/b"),
        ("x.npz#*", "x.npz", "*"),
    ],
)
def test_a_name_behind_the_file(spec: str, path: str, name: str | None) -> None:
    for existing in ("x.npz", "y#1.npz"):
        np.savez(existing, a=np.zeros(1))
    assert split_spec(spec) == (path, name)


def test_the_whole_is_the_file_if_there_is_one() -> None:
    np.savez("x.npz", a=np.array([1]))
    make("x.npz#a")
    assert raconvert.read("x.npz#a").tolist() == [0]


def test_an_array_of_a_container() -> None:
    np.savez("x.npz", **{"a": np.array([1]), "b#c": np.array([2]), "d/e": np.array([3])})
    for name, number in (("a", 1), ("b#c", 2), ("d/e", 3)):
        convert(f"x.npz#{name}", "out.ra", overwrite=True)
        assert raconvert.read("out.ra").tolist() == [number]


def test_a_name_behind_the_file_is_literal() -> None:
    np.savez("x.npz", **{"*": np.array([1]), "b": np.array([2])})
    convert("x.npz#*", "out.ra")
    assert raconvert.read("out.ra").tolist() == [1]


@pytest.mark.parametrize("word", ["x.npz#c", "x.npz#A", "x.npz#"])
def test_a_name_that_is_not_there_lists_those_that_are(word: str) -> None:
    np.savez("x.npz", aa=np.zeros(1), bb=np.zeros(1))
    with pytest.raises(UsageError, match="aa, bb"):
        convert(word, "out.ra")


@pytest.mark.parametrize("word", ["missing.npy", "missing.npz#a", "no/folder/x.npy", ""], ids=ascii)
def test_what_does_not_exist_is_named(word: str) -> None:
    with pytest.raises(ReadFailed, match="does not exist") as caught:
        convert(word, "out.ra")
    assert repr(word)[1:-1] in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("word", ["*.npy", "missing/*.npy", "[a-c].png", "**/x"])
def test_a_pattern_without_a_match_is_named(word: str) -> None:
    with pytest.raises(ReadFailed, match="matches no file") as caught:
        gather([word])
    assert word in str(caught.value)


# Braces ------------------------------------------------------------------------------------------

BRACES = ["x-{000..012}", "{a,b}", "{3..1}", "{0..10..4}", "{10..0..5}", "{-01..1}", "{8..11}", "a{,b}c",
          "{a,b}-{1..2}", "{x}", "{}", "a{b", "a}b", "{1..}", "{1..b}", "{01..3}", "{1..03}", "{0..3..0}"]  # fmt: skip


@pytest.mark.parametrize("word", BRACES)
def test_braces_mean_what_they_mean_in_a_shell(word: str, tool: Callable[[str], str]) -> None:
    printed = subprocess.run(
        [tool("bash"), "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True
    ).stdout
    assert without_braces(word) == printed.splitlines()


def test_braces_inside_braces_stay() -> None:
    for word in ("{a,{b,c}}", "{{1..2},3}"):
        assert without_braces(word) == [word]


def test_braces_list_files_in_their_order() -> None:
    make(*(f"x{n}.npy" for n in range(4)), "{x0,x1}.npy")
    assert numbers("x{3..1}.npy") == [3, 2, 1]
    assert gather(["x{0..1}.npy"])[:3] == (["x0.npy", "x1.npy"], True, "natural order")
    assert gather(["x{1..0}.npy"])[:3] == (["x1.npy", "x0.npy"], True, "given order")
    assert gather(["x{2..2}.npy"])[:2] == (["x2.npy"], True)
    assert numbers("x{3,0}.npy", sort="natural") == [0, 3]
    assert gather(["{x0,x1}.npy"])[:2] == (["{x0,x1}.npy"], False)
    with pytest.raises(ReadFailed, match=r"'x4\.npy': does not exist"):
        gather(["x{0..4}.npy"])
    assert numbers("{x3,x[01]}.npy") == [3, 0, 1]
    with raconvert.open("x{1..2}.npy") as array:
        assert array[...].tolist() == [[1], [2]]


def test_arrays_of_files_in_braces() -> None:
    for n in range(3):
        np.savez(f"{n}.npz", a=np.array([n]))
    assert numbers("{0..2}.npz#a") == [0, 1, 2]
    assert main(["info", "-s", "{0..1}.npz"]) == 0


@pytest.mark.parametrize("word", ["{0..100000}", "{0..999}{0..999}", f"{{0..{'9' * 18}}}"])
def test_braces_stand_for_so_many_files(word: str) -> None:
    with pytest.raises(UsageError, match="at most 100000"):
        gather([word])


# Patterns, lists, folders ------------------------------------------------------------------------


def test_a_quoted_pattern_is_expanded() -> None:
    make("b2.npy", "b10.npy", "b1.npy", "c1.npy")
    assert gather(["b*.npy"])[:3] == (["b1.npy", "b2.npy", "b10.npy"], True, "natural order")
    assert numbers("b*.npy") == [2, 0, 1]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("b?.npy", ["b1.npy", "b2.npy"]),
        ("b[12].npy", ["b1.npy", "b2.npy"]),
        ("*/d*.npy", ["s/d1.npy", "s/d2.npy"]),
        ("**/*1.npy", ["b1.npy", "s/d1.npy", "s/t/e1.npy"]),
    ],
)
def test_patterns(pattern: str, names: list[str]) -> None:
    make("b1.npy", "b2.npy", "b10.npy", "s/d1.npy", "s/d2.npy", "s/t/e1.npy")
    assert gather([pattern]).paths == names


def test_a_pattern_leaves_out_folders_and_hidden_files() -> None:
    make("a1.npy", ".a2.npy", "a3.npy/x.npy")
    assert gather(["*.npy"]).paths == ["a1.npy"]


def test_temporary_files_of_other_conversions_are_left_out() -> None:
    make("in/1.npy", "in/.2.npy.123-abcdef.tmp")
    assert gather(["in/*"]).paths == ["in/1.npy"]
    assert gather(["in"]).paths == ["in/1.npy"]


def test_what_the_shell_expanded_is_in_natural_order() -> None:
    names = ["img_1.npy", "img_10.npy", "img_100.npy", "img_2.npy"]  # as the shell sorts them
    make(*names)
    found = in_shell_order(names)
    assert found == ["img_1.npy", "img_2.npy", "img_10.npy", "img_100.npy"]
    assert gather(found)[:3] == (found, True, "natural order")
    make("in/9.npy", "d10/1.npy", "d9/1.npy")
    for words in (["b.npy", "in/9.npy", "a.npy"], ["d10", "d9"], ["img_2.npy", "img_*.npy"]):
        assert in_shell_order(words) == words
    assert in_shell_order([]) == []


def test_index_i_of_a_list_is_file_i() -> None:
    """Index i is file i, whatever their names, for each call that takes a list."""
    names = ["frame_b.npy", "frame_10.npy", "frame_9.npy", "frame_a.npy"]
    for number, name in enumerate(names):
        np.save(name, np.full(2, number))
    assert gather(names)[:3] == (names, True, "given order")
    assert raconvert.read(names)[:, 0].tolist() == [0, 1, 2, 3]
    assert raconvert.read(tuple(map(Path, names)))[:, 0].tolist() == [0, 1, 2, 3]
    with raconvert.open(names) as array:
        assert [int(array[n][0]) for n in range(4)] == [0, 1, 2, 3]
    for more in ({}, {"sort": "given"}, {"jobs": 2}):
        convert(names, "out.npy", overwrite=True, **more)
        assert np.load("out.npy")[:, 0].tolist() == [0, 1, 2, 3]
    assert raconvert.verify("out.npy", names)["same"]
    assert not raconvert.verify("out.npy", names[::-1])["same"]
    convert(names, "out.npz")
    assert [*np.load("out.npz")] == [name[:-4] for name in names]
    convert(names, "sorted.npy", sort="natural")
    assert np.load("sorted.npy")[:, 0].tolist() == [2, 1, 3, 0]
    convert([], "listed.npy", files_from=names)
    assert np.load("listed.npy")[:, 0].tolist() == [0, 1, 2, 3]


def test_words_of_a_command_line_are_in_natural_order_of_one_folder() -> None:
    names = ["frame_b.npy", "frame_10.npy", "frame_9.npy", "frame_a.npy"]
    for number, name in enumerate(names):
        np.save(name, np.full(2, number))
    assert main([*names, "-o", "out.npy"]) == 0
    assert np.load("out.npy")[:, 0].tolist() == [2, 1, 3, 0]
    assert main(["verify", "out.npy", "--against", *names]) == 0
    assert main([*names, "-o", "given.npy", "--sort", "given"]) == 0
    assert np.load("given.npy")[:, 0].tolist() == [0, 1, 2, 3]
    Path("list.txt").write_text("\n".join(names))
    assert main(["--files-from", "list.txt", "-o", "listed.npy"]) == 0
    assert np.load("listed.npy")[:, 0].tolist() == [0, 1, 2, 3]


def test_files_of_several_folders_keep_the_order_given() -> None:
    make("b/2.npy", "a/10.npy", "a/1.npy")
    words = ["b/2.npy", "a/10.npy", "a/1.npy"]
    assert gather(words)[:3] == (words, True, "given order")


def test_patterns_keep_the_order_given_among_each_other() -> None:
    make("b10.npy", "b9.npy", "a10.npy", "a9.npy")
    assert gather(["b*.npy", "a*.npy"]).paths == ["b9.npy", "b10.npy", "a9.npy", "a10.npy"]


def test_a_folder_means_the_files_in_it() -> None:
    make("in/2.npy", "in/10.npy", "in/1.npy", "in/.hidden.npy", "in/sub/3.npy")
    Path("in/notes.txt").write_text("no array")
    Path("in/1.npy.yaml").write_text("title: mine")
    assert gather(["in"]).paths == ["in/1.npy", "in/2.npy", "in/10.npy"]
    assert gather(["in/"]).paths == ["in/1.npy", "in/2.npy", "in/10.npy"]
    assert numbers("in") == [2, 0, 1]


def test_a_folder_recursively() -> None:
    make("in/2.npy", "in/10.npy", "in/sub/3.npy", "in/sub/deep/1.npy", "in/.git/4.npy")
    assert gather(["in"], recursive=True).paths == [
        "in/2.npy",
        "in/10.npy",
        "in/sub/3.npy",
        "in/sub/deep/1.npy",
    ]


def test_a_loop_of_links_to_folders_ends() -> None:
    make("in/1.npy")
    os.symlink("..", "in/up")
    assert gather(["in"], recursive=True).paths == ["in/1.npy"]


@pytest.mark.parametrize("recursive", [False, True])
def test_a_folder_without_files_is_named(recursive: bool) -> None:
    Path("in/sub").mkdir(parents=True)
    Path("in/notes.txt").write_text("no array")
    with pytest.raises(ReadFailed, match="no file of a known format") as caught:
        gather(["in"], recursive=recursive)
    assert ("recursive=True" in str(caught.value)) == (not recursive)


def test_include_and_exclude() -> None:
    make("in/a1.npy", "in/a2.npy", "in/b1.npy", "in/data.bin")
    assert gather(["in"], include=["a*"]).paths == ["in/a1.npy", "in/a2.npy"]
    assert gather(["in"], exclude=["a*"]).paths == ["in/b1.npy"]
    assert gather(["in"], include=["*1*"], exclude=["b*"]).paths == ["in/a1.npy"]
    assert gather(["in"], include=["*.bin"]).paths == ["in/data.bin"]
    assert gather(["in/*.npy"], exclude=["a2*"]).paths == ["in/a1.npy", "in/b1.npy"]


# Lists -------------------------------------------------------------------------------------------


def test_a_list_keeps_its_order() -> None:
    make("10.npy", "9.npy", "sub/1.npy")
    Path("list.txt").write_text("10.npy\n9.npy\nsub/1.npy\n9.npy\n")
    found = gather([], files_from="list.txt")
    assert found[:3] == (["10.npy", "9.npy", "sub/1.npy", "9.npy"], True, "given order")
    assert numbers(files_from="list.txt") == [0, 1, 2, 1]


def test_a_list_of_one_file_has_a_leading_axis() -> None:
    make("1.npy")
    Path("list.txt").write_text("1.npy")
    convert([], "out.ra", files_from="list.txt")
    assert raconvert.read("out.ra").shape == (1, 1)


def test_names_in_a_list_are_literal() -> None:
    make("a*.npy", "ab.npy", "a#b.npy", " a.npy ")
    Path("list.txt").write_text("a*.npy\na#b.npy\n a.npy \n")
    assert numbers(files_from="list.txt") == [0, 2, 3]


def test_a_list_with_the_lines_of_windows() -> None:
    make("1.npy", "2.npy")
    Path("list.txt").write_bytes(b"1.npy\r\n2.npy\r\n\r\n")
    assert gather([], files_from="list.txt").paths == ["1.npy", "2.npy"]


def test_a_list_with_nul_keeps_every_letter() -> None:
    make("a\nb.npy", "\udcff.npy", "c\r.npy")
    Path("list.txt").write_bytes(b"a\nb.npy\0\xff.npy\0c\r.npy\0")
    assert numbers(files_from="list.txt", null_separated=True) == [0, 1, 2]


@pytest.mark.parametrize("null_separated", [False, True], ids=["lines", "nul"])
def test_a_list_from_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, null_separated: bool
) -> None:
    make("2.npy", "1.npy")
    data = b"2.npy\0001.npy\0" if null_separated else b"2.npy\n1.npy\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert numbers(files_from="-", null_separated=null_separated) == [0, 1]


def test_a_list_behind_words() -> None:
    make("3.npy", "2.npy", "1.npy")
    Path("list.txt").write_text("2.npy\n1.npy\n")
    assert gather(["3.npy"], files_from="list.txt").paths == ["3.npy", "2.npy", "1.npy"]


@pytest.mark.parametrize("text", ["", "\n\n", "\r\n"], ids=ascii)
def test_a_list_that_names_nothing_is_refused(text: str) -> None:
    Path("list.txt").write_text(text)
    with pytest.raises(ReadFailed, match=r"list\.txt.*names no file"):
        gather([], files_from="list.txt")


def test_a_list_that_is_missing_is_named() -> None:
    with pytest.raises(ReadFailed, match=r"list\.txt"):
        gather([], files_from="list.txt")


def test_a_file_in_a_list_that_is_missing_is_named() -> None:
    make("1.npy")
    Path("list.txt").write_text("1.npy\nmissing.npy\n")
    with pytest.raises(ReadFailed, match=r"missing\.npy"):
        convert([], "out.ra", files_from="list.txt")
    assert not Path("out.ra").exists()


def test_no_source_at_all_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        convert([], "out.ra")


# Order -------------------------------------------------------------------------------------------

NATURAL = ["a", "a0", "a1", "a2", "a10", "a010b", "a11", "a100", "b1x2", "b1x10", "b2x1"]


def test_natural_order() -> None:
    shuffled = NATURAL[:]
    random.Random(0).shuffle(shuffled)
    assert sorted(shuffled, key=natural_key) == NATURAL
    assert natural_sorted(shuffled) == NATURAL


@given(st.lists(st.text("ab019_.", max_size=8), max_size=12))
def test_natural_order_has_one_definition(names: list[str]) -> None:
    assert natural_sorted(names) == sorted(sorted(names), key=natural_key)


@pytest.mark.parametrize("name", ["", "٣", "²", "9" * 300, "-1", "1.5", "１２"], ids=ascii)
def test_natural_order_takes_every_name(name: str) -> None:
    assert set(natural_sorted(["a1", name, "1a"])) == {"a1", name, "1a"}


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("natural", ["1.npy", "2.npy", "10.npy"]),
        ("given", ["10.npy", "2.npy", "1.npy"]),
        ("name", ["1.npy", "10.npy", "2.npy"]),
        ("mtime", ["2.npy", "10.npy", "1.npy"]),
        (None, ["10.npy", "2.npy", "1.npy"]),
    ],
)
def test_sort(sort: str | None, names: list[str]) -> None:
    make("10.npy", "2.npy", "1.npy")
    for name, time in (("2.npy", 100), ("10.npy", 200), ("1.npy", 300)):
        os.utime(name, (time, time))
    found = gather(["10.npy", "2.npy", "1.npy"], sort=sort)
    assert found.paths == names
    assert found.order == f"{sort or 'given'} order"


def test_sort_goes_before_the_order_of_a_list() -> None:
    make("10.npy", "2.npy")
    Path("list.txt").write_text("10.npy\n2.npy\n")
    assert gather([], files_from="list.txt", sort="natural").paths == ["2.npy", "10.npy"]


def test_an_unknown_order_is_a_usage_error() -> None:
    make("1.npy")
    with pytest.raises(UsageError, match="natural"):
        convert("*.npy", "out.ra", sort="size")


def test_sort_by_time_of_a_file_that_is_missing_is_an_error_of_ours() -> None:
    make("1.npy")
    Path("list.txt").write_text("1.npy\nmissing.npy\n")
    with pytest.raises(RaconvertError, match=r"missing\.npy"):
        convert([], "out.ra", files_from="list.txt", sort="mtime")


# Gaps and duplicates -----------------------------------------------------------------------------


def test_the_line_about_the_corpus(corpus: Callable[..., Path]) -> None:
    folder = str(corpus("png", "natural"))
    report = convert(folder, "out.ra")
    assert raconvert.read("out.ra").shape == (7, 3, 4)
    assert report.notes == [
        "stacking 7 files: img_1.png … img_100.png (natural order; gaps 4-8, 12-99)"
    ]


@pytest.mark.parametrize(
    ("names", "gaps"),
    [
        (["a1", "a2", "a3"], ""),
        (["a1", "a3"], "2"),
        (["a1", "a5", "a7"], "2-4, 6"),
        (["a3", "a1"], "2"),
        (["a007", "a009"], "8"),
        (["s2/a1", "s3/a3"], "2"),
        (["a1.v2", "a3.v2"], ""),
        (["x1_1", "x1_3"], "2"),
        (["x1_1", "x2_3"], ""),
        (["a", "b"], ""),
        (["a1", "b3"], ""),
        (["a1"], ""),
        ([], ""),
        (["a1", "a1", "a2"], ""),
        (["a-1", "a-3"], "2"),
        ([f"a{n}" for n in range(0, 60, 3)], "19 between 0 and 57"),
    ],
    ids=str,
)
def test_gaps(names: list[str], gaps: str) -> None:
    assert missing_numbers([f"{name}.png" for name in names]) == gaps


def test_gaps_in_a_huge_range_cost_nothing() -> None:
    assert missing_numbers(["a1.png", f"a{10**200}.png"]).startswith("2-9999")


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["a1.npy", "a2.npy"], "stacking 2 files: a1.npy … a2.npy (natural order)"),
        (["a1.npy", "a1.npy"], "stacking 2 files: a1.npy … a1.npy (natural order; 1 duplicate)"),
        (
            ["a1.npy", "a2.npy", "a2.npy", "a1.npy"],
            "stacking 4 files: a1.npy … a1.npy (given order; 2 duplicates)",
        ),
        (
            ["b/a5.npy", "a1.npy"],
            "stacking 2 files: a5.npy … a1.npy (given order; gaps 2-4)",
        ),
        (["a[1].npy"], "stacking 1 file: a1.npy (natural order)"),
    ],
    ids=str,
)
def test_one_line_says_what_is_stacked(words: list[str], note: str) -> None:
    make("a1.npy", "a2.npy", "b/a5.npy")
    assert sequence_note(gather(words)) == note
    assert note in convert(words, "out.ra").notes


def test_the_same_file_under_two_names_is_a_duplicate() -> None:
    make("a1.npy")
    found = gather(["a1.npy", "./a1.npy"])
    assert "1 duplicate" in sequence_note(found)


def test_duplicates_are_stacked_all_the_same() -> None:
    make("a1.npy", "a2.npy")
    assert numbers("a2.npy", "a1.npy", "a2.npy", sort="given") == [1, 0, 1]


def test_a_strict_sequence_refuses_gaps(corpus: Callable[..., Path]) -> None:
    folder = str(corpus("png", "natural"))
    with pytest.raises(UsageError, match="4-8, 12-99") as caught:
        convert(folder, "out.ra", strict_sequence=True)
    assert caught.value.exit_code == 2
    assert not Path("out.ra").exists()


def test_a_strict_sequence_refuses_duplicates() -> None:
    make("a1.npy", "a2.npy")
    with pytest.raises(UsageError, match="duplicate"):
        convert(["a1.npy", "a2.npy", "a2.npy"], "out.ra", strict_sequence=True)


def test_a_strict_sequence_without_gaps_goes_through() -> None:
    make("a1.npy", "a2.npy", "a3.npy")
    convert("a*.npy", "out.ra", strict_sequence=True)
    assert Path("out.ra").exists()


# The leading axis --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options", "shape"),
    [
        (["a1.npy"], {}, (1,)),
        (["a[1].npy"], {}, (1, 1)),
        (["a*.npy"], {}, (2, 1)),
        (["a1.npy", "a2.npy"], {}, (2, 1)),
        (["one"], {}, (1, 1)),
        (["a1.npy"], {"stack": True}, (1, 1)),
        (["a1.npy", "a1.npy"], {}, (2, 1)),
    ],
    ids=["one-literal", "one-match", "pattern", "list", "folder-of-one", "asked-for", "twice"],
)
def test_the_leading_axis(
    words: list[str], options: dict[str, object], shape: tuple[int, ...]
) -> None:
    make("a1.npy", "a2.npy", "one/b1.npy")
    convert(words, "out.ra", **options)
    assert raconvert.read("out.ra").shape == shape


# Labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "labels", "names"),
    [
        (["t/0/a", "t/7/b", "t/7/a"], [0, 7, 7], None),
        (["t/dog/a", "t/cat/b", "t/dog/c"], [1, 0, 1], ["cat", "dog"]),
        (["t/1/a", "t/cat/b"], [0, 1], ["1", "cat"]),
        (["t/300/a"], [300], None),
        (["t/٣/a"], [0], ["٣"]),
        (["t/-1/a"], [0], ["-1"]),
        ([f"t/{2**63 - 1}/a"], [2**63 - 1], None),
        ([f"t/{2**63}/a"], [0], [str(2**63)]),
    ],
    ids=str,
)
def test_labels(paths: list[str], labels: list[int], names: list[str] | None) -> None:
    assert labels_of(paths) == (labels, names)


def test_labels_need_one_depth() -> None:
    with pytest.raises(UsageError, match="one depth"):
        labels_of(["t/0/a", "t/0/1/b"])


def test_labels_of_numbers_that_are_written_twice_are_distinct() -> None:
    """Folders 1 and 01 are two classes, or an error; never silently one."""
    make("t/1/a.npy", "t/01/a.npy")
    try:
        labels, _ = labels_of(["t/1/a.npy", "t/01/a.npy"])
    except UsageError:
        return
    assert labels[0] != labels[1]


@given(st.lists(st.text("ab/.", max_size=6), max_size=4))
def test_folders_of_names(paths: list[str]) -> None:
    assert folders_of(iter(paths)) == {re.sub("[^/]*$", "", path) for path in paths}


@given(
    st.lists(st.text("012\u0663", min_size=1, max_size=2), max_size=4),
    st.sampled_from(["", "a", "a1"]),
    st.sampled_from(["", ".png", "b2"]),
)
def test_numbered_names_are_in_natural_order(numbers: list[str], before: str, behind: str) -> None:
    names = [f"{before}{number}{behind}" for number in numbers]
    assert natural_sorted(names) == sorted(sorted(names), key=natural_key)


@pytest.mark.parametrize("beside", ["", ".yaml"])
def test_what_was_looked_through_is_not_looked_at_again(beside: str, tmp_path: Path) -> None:
    for name in ("1.png", "2.png", "5.png", f"2.png{beside}"):
        (tmp_path / name).touch()
    found = gather([str(tmp_path / "*.png")])
    there = found.looked_through()
    assert sequence_note(there) == sequence_note(found)
    assert "gaps 3-4" in sequence_note(there)
    assert there.has_sidecars() is found.has_sidecars() is bool(beside)
    again = there._replace(paths=[str(tmp_path / "7.png")], known={})
    assert again.has_sidecars() is bool(beside)
    assert "gaps 3-4" in sequence_note(again)
