"""Errors of ours are also those of Python: caught as such, with their attributes, and pickled."""

from __future__ import annotations

import ast
import copy
import errno
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import errors
from raconvert.cli import main
from raconvert.cli.options import VERBS, keywords
from raconvert.errors import name_flags, worded
from raconvert.files.paths import write_failed
from raconvert.files.source import read_failed
from raconvert.workers.worker import decoded, encoded


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6.0))
    return tmp_path


@pytest.mark.parametrize("name", ["none.npy", "none.ra", "none.png", "*.none", "nowhere/none.h5"])
def test_what_is_not_there_is_a_file_not_found_error(name: str) -> None:
    for call in (
        lambda: raconvert.read(name),
        lambda: raconvert.open(name),
        lambda: raconvert.convert(name, "out.ra"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        error = caught.value
        assert isinstance(error, raconvert.ReadFailed)
        assert (error.errno, error.filename, error.exit_code) == (errno.ENOENT, name, 1)
        assert name in str(error)
        assert error.strerror == error.what


def test_what_cannot_be_read_is_an_os_error() -> None:
    Path("folder.npy").mkdir()
    with pytest.raises(OSError, match=r"folder\.npy") as caught:
        raconvert.read("folder.npy")
    assert not isinstance(caught.value, FileNotFoundError)


def test_what_exists_is_a_file_exists_error() -> None:
    raconvert.convert("a.npy", "a.ra")
    for call in (
        lambda: raconvert.convert("a.npy", "a.ra"),
        lambda: raconvert.write("a.ra", np.zeros(3)),
        lambda: raconvert.write("a.npy", np.zeros(3)),
    ):
        with pytest.raises(FileExistsError) as caught:
            call()
        assert isinstance(caught.value, raconvert.TargetExists)
        assert caught.value.errno == errno.EEXIST
        assert caught.value.filename in ("a.ra", "a.npy")
        assert caught.value.exit_code == 5


def test_a_wrong_call_is_a_value_error() -> None:
    for call in (
        lambda: raconvert.read("a.npy", meta="all"),
        lambda: raconvert.convert("a.npy", "b.ra", axes="x"),
        lambda: raconvert.convert("a.npy", "b.npy", out_opts={"nothing": 1}),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            call()
        assert isinstance(caught.value, raconvert.UsageError)


def every_error() -> list[errors.RaconvertError]:
    found, left = [], [errors.RaconvertError]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if not one.__name__.startswith("_"):
            parts = {"path": "x.ra", "where": "byte 3", "expected": 1, "got": 2, "remedy": "do it"}
            found.append(one("is wrong", **parts))
    return found


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_errors_survive_pickle_and_copy(error: errors.RaconvertError) -> None:
    if isinstance(error, OSError):
        error.errno = errno.EIO
    error.add_note("a note")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error) == "'x.ra': is wrong, at byte 3; expected 1, got 2\n  do it"
        assert again.__notes__ == ["a note"]
        assert again.exit_code == error.exit_code
        if isinstance(error, OSError):
            facts = (again.errno, again.filename, again.strerror)
            assert facts == (errno.EIO, "x.ra", "is wrong")


def test_errors_of_ours_are_not_wrapped_as_errors_of_the_system() -> None:
    """An `except OSError` around a block that reads and writes sees them as well."""
    for error in every_error():
        if isinstance(error, OSError):
            assert write_failed("target", error) is error
            assert read_failed("source", error) is error


FAILING = """
import sys
import raconvert.arrays.blocks
import raconvert.files.copy
from raconvert import ReadFailed
from raconvert.cli import main

def fail(*args, **more):
    raise ReadFailed("cannot be read: the disk is gone", path="a.npy")

raconvert.files.copy.copy_extent = raconvert.arrays.blocks.blocks = fail
sys.exit(main(["convert", "a.npy", "-o", sys.argv[1], "--dtype", "float32"]))
"""


@pytest.mark.parametrize("target", ["b.npz", "b.h5", "b.nrrd", "b.har", "b.safetensors"])
def test_a_source_that_cannot_be_read_is_no_failure_of_the_destination(target: str) -> None:
    """Reading fails while the destination is written; in a process whose functions are others."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING, target], capture_output=True, text=True, check=False
    )

    assert "cannot be written" not in done.stderr
    assert done.returncode == 0 or (done.returncode, "'a.npy': cannot be read" in done.stderr) == (
        1,
        True,
    )


def test_options_of_the_command_line_keep_their_own_messages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, message in (
        (["--max-memory", "lots"], "lots"),
        (["--allow", "dtpye"], "did you mean 'dtype'"),
        (["--meta", "al"], "auto"),
        (["--jobs", "-3"], "-3"),
    ):
        assert main(["convert", "a.npy", "-o", "c.ra", *words]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert "invalid" not in said


# Options in messages: flags on the command line, keywords in Python ---------------------------------

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SPAN = re.compile(r"`(--?[a-z][^`\n]*)`")
# Where texts are those of the command line alone, or for a shell to run, or on pages of formats.
SHOWN_AS_FLAGS = {
    "raconvert/cli": "the command line itself",
    "raconvert/views": "what `peek` and pages show",
    "raconvert/viewer": "what `view` shows and says",
    "raconvert/testing": "problems of plugins, for their authors",
    "raconvert/conversion/options.py": "the table of options",
    "raconvert/migration/options.py": "the table of options",
}
COMMANDS = re.compile(
    r"\braconvert [a-zF7-][^;\n]*|sha256sum --check|^--(in|out)-opt$|in an array job: .*"
)
PUBLIC = (raconvert.convert, raconvert.migrate, raconvert.refs)


def literals(path: Path) -> Iterator[tuple[str, bool]]:
    """The texts of a module but for docstrings, and whether each is about losses of a format."""
    tree = ast.parse(path.read_text())
    inside: set[int] = set()
    pages: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inside |= {id(value) for value in node.values}
        if isinstance(node, ast.keyword) and node.arg in ("losses", "help"):
            pages.add(id(node.value))
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, id(node) in pages
        elif isinstance(node, ast.JoinedStr):
            parts = [v.value if isinstance(v, ast.Constant) else "7" for v in node.values]
            yield "".join(map(str, parts)), id(node) in pages


def messages() -> Iterator[tuple[str, str]]:
    """The texts of all modules that name an option."""
    root = Path(raconvert.__file__).parents[1]
    for path in sorted([*root.glob("raconvert/**/*.py"), *root.glob("plugins/**/*.py")]):
        name = path.relative_to(root).as_posix()
        if any(name.startswith(place) for place in SHOWN_AS_FLAGS):
            continue
        for text, on_a_page in literals(path):
            shown = COMMANDS.sub("", text)
            if "--" in shown and FLAG.search(shown) and not on_a_page:
                yield f"{name}: {text}", shown


def test_every_option_in_a_message_is_shown_in_both_forms() -> None:
    """The flags are those of the command line, and the keywords those of public functions."""
    flags = {flag for verb in VERBS.values() for opt in verb.options for flag in opt.flags}
    arguments = {name for f in PUBLIC for name in inspect.signature(f).parameters}
    named = set()
    for place, text in messages():
        alone = re.fullmatch(r"(?:,? ?(?:or |and )?--[a-z-]+(?: \S+?)?)+(?= or |$)", text.strip())
        spans = re.split(" or |, ", text.strip()) if alone else SPAN.findall(text)
        bare = "" if alone else FLAG.search(SPAN.sub("", text))
        assert not bare, f"{place} names an option outside backticks"
        for span in filter(None, (span.removeprefix("or ") for span in spans)):
            found = set(re.findall(r"(?:^| )(--?[a-z][a-z-]*)", span))
            assert found <= flags, f"{place}: no verb has {found - flags}"
            call = ast.parse(f"f({keywords(span)})", mode="eval").body
            assert isinstance(call, ast.Call)
            names = {word.arg for word in call.keywords} | {
                name.id for name in call.args if isinstance(name, ast.Name)
            }
            assert names, span
            assert names <= arguments, f"{place}: no function has {names - arguments}"
            named |= names

    assert {"overwrite", "allow", "dtype", "in_opts", "dst", "shard", "stack"} <= named


@pytest.mark.parametrize("verb", ["convert", "migrate", "refs"])
def test_each_flag_of_the_command_line_has_a_keyword(verb: str) -> None:
    function = getattr(raconvert, verb)
    only_there = {"report", "progress", "json", "quiet", "verbose", "color", "debug", "status"}
    only_there |= {"output"} if verb == "refs" else set()
    for option in VERBS[verb].options:
        if option.dest in only_there:
            continue
        value = {"value": " 7", "append": " a=7", "rest": " 7", "maybe": ""}.get(option.how, "")
        for flag in option.flags:
            if flag.startswith("--"):
                (word,) = ast.parse(f"f({keywords(flag + value)})", mode="eval").body.keywords
                assert word.arg in inspect.signature(function).parameters


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--overwrite", "overwrite=True"),
        ("--allow names,nulls", 'allow=["names", "nulls"]'),
        ("--array a --array b", 'arrays=["a", "b"]'),
        ("--in-opt dtype=f4 --in-opt shape=4,8", 'in_opts={"dtype": "f4", "shape": "4,8"}'),
        (
            "--in-opt 'schema=<a:int64, b:string>[i]'",
            'in_opts={"schema": "<a:int64, b:string>[i]"}',
        ),
        ("--max-memory 3M", "max_memory=3145728"),
        ("--max-memory", "max_memory"),
        ("--planes", "planes=True"),
        ("--planes 2", "planes=2"),
        ("--stack", "stack=True"),
        ("--concat -1", 'stack=("concat", -1)'),
        ("--each", 'stack="each"'),
        ("--index-order C", 'index_order="C"'),
        ("--from npy", 'from_="npy"'),
        ("--as kerchunk", 'kind="kerchunk"'),
        ("-o '{stem}.npy' --to npy", 'dst="{stem}.npy", to="npy"'),
        ("--no-such-option", "--no-such-option"),
    ],
)
def test_flags_and_keywords(flags: str, expected: str) -> None:
    assert keywords(flags) == expected
    assert worded(f"a `{flags}` b") == f"a {expected} b"


def test_the_keywords_of_a_message_work(capsys: pytest.CaptureFixture[str]) -> None:
    """What an error names in Python is an argument of the call that has failed, with its value."""
    np.save("deep.npy", np.arange(24.0).reshape(2, 3, 4))
    raconvert.write("a.ra", np.zeros(3))
    calls: dict[str, Callable[..., object]] = {
        "overwrite=True": lambda **more: raconvert.write("a.ra", np.ones(3), **more),
        "skip_existing=True": lambda **more: raconvert.write("a.ra", np.ones(3), **more),
        'dtype="uint8"': lambda **more: raconvert.write("x.pgm", np.ones((2, 3)), **more),
        'allow=["precision"]': lambda **more: raconvert.write(
            "v.npy", np.array([1.5]), dtype="int8", **more
        ),
    }
    for words, call in calls.items():
        with pytest.raises(raconvert.RaconvertError) as caught:
            call()
        assert words in str(caught.value)
        assert "--" not in str(caught.value)
        assert "`" not in str(caught.value)
        assert "--" not in (caught.value.remedy or "")
        call(**eval(f"dict({words})"))

    assert main(["deep.npy", "-o", "a.ra"]) == 5
    assert "use --overwrite to replace it, or --skip-existing" in capsys.readouterr().err
    assert main(["deep.npy", "-o", "b.png"]) == 4
    assert "(allow with --dtype uint8, --dtype uint16 or --scale)" in capsys.readouterr().err


def test_an_error_of_another_process_is_shown_in_the_words_of_this_one() -> None:
    code = (
        "import pickle, sys, raconvert\n"
        "try: raconvert.write('a.npy', [1])\n"
        "except raconvert.RaconvertError as error: pickle.dump(error, sys.stdout.buffer)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    error = pickle.loads(done.stdout)
    assert "use overwrite=True to replace it" in str(error)
    told = copy.copy(pickle.loads(pickle.dumps(error)))
    before = name_flags(True)
    try:
        assert "use --overwrite to replace it" in str(told)
        assert "use --overwrite to replace it" in told.remedy
    finally:
        name_flags(before)
    assert str(decoded(encoded(error))) == str(error)


def test_notes_and_changes_name_keywords_too(capsys: pytest.CaptureFixture[str]) -> None:
    raconvert.ra.write("bare.ra", np.zeros((2, 3)))
    (note,) = raconvert.convert("bare.ra", "b.mat").notes
    assert 'index_order="C" reads them reversed' in note
    assert main(["bare.ra", "-o", "c.mat"]) == 0
    assert "--index-order C reads them reversed" in capsys.readouterr().err

    with raconvert.open("bare.ra") as bare:
        with pytest.raises(raconvert.WouldLose, match='index_order="F" takes its axes as listed'):
            raconvert.write("d.mat", bare, strict=True)
        assert not Path("d.mat").exists()
        assert raconvert.write("e.mat", bare).written == ["e.mat"]


@pytest.mark.parametrize("engine", [{"jobs": 1}, {"jobs": 2}])
def test_a_migration_names_keywords(
    engine: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tree").mkdir()
    for number in range(4):
        np.save(f"tree/{number}.npy", np.zeros((3, number + 4)))
    done = raconvert.migrate("tree", "out", to="png", **engine)
    assert all('dtype="uint8"' in str(error) for _, error in done.failed)
    assert "--" not in str(done.to_plain())
    assert main(["migrate", "tree", "there", "--to", "png", "--jobs", str(engine["jobs"])]) == 1
    assert "4 files would pass with --dtype uint8" in capsys.readouterr().err
