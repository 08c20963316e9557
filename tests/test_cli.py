"""The command line as a whole: verbs, streams, exit codes, and that no traceback ever shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raconvert import __version__
from raconvert.cli import VERBS, main
from raconvert.cli.console import Console, Progress, print_error
from raconvert.cli.options import VERBS as TABLES
from raconvert.cli.options import size
from raconvert.cli.parser import parse
from raconvert.conversion.progress import Listener
from raconvert.errors import RaconvertError, UsageError

ROOT = Path(__file__).resolve().parent.parent
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "raconvert", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        **options,
    )


@pytest.fixture
def npy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small file `a.npy` in the working folder."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6, dtype="f4").reshape(2, 3))
    return "a.npy"


# Help --------------------------------------------------------------------------------------------


def test_top_help_names_every_verb_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    out, err = capsys.readouterr()
    assert err == ""
    for verb, summary in VERBS.items():
        assert f"  {verb:<12}{summary}\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) < 24, "one screen, with the next prompt"
    assert main(["help"]) == 0
    assert capsys.readouterr() == (out, "")
    for code in ("0 done", "1 failed", "2 usage", "3 format", "4 refused", "5 dest", "130 inter"):
        assert code in out.replace("\n", " ")


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_names_every_option(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert main([verb, "--help"]) == 0

    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"usage: raconvert {TABLES[verb].usage}")
    assert max(map(len, out.splitlines())) <= 80
    for option in TABLES[verb].options:
        assert all(flag in out for flag in option.flags)
        assert " ".join(option.help.split()) in " ".join(out.split())


def test_no_option_is_f() -> None:
    assert not any("-f" in option.flags for verb in TABLES.values() for option in verb.options)


def test_tables_and_verbs_agree() -> None:
    assert list(TABLES) == list(VERBS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"raconvert {__version__}\n"


def test_nothing_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: ")


# Verbs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["a.npy", "-o", "b.ra"],
        ["-o", "b.ra", "a.npy"],
        ["-ob.ra", "a.npy"],
        ["-qo", "b.ra", "a.npy"],
        ["a.npy", "--output=b.ra", "-v"],
        ["convert", "a.npy", "-o", "b.ra"],
        ["-o", "b.ra", "--", "a.npy"],
        ["a.npy", "--to", "ra", "-o", "b.ra"],
    ],
)
def test_forms_of_convert(words: list[str], npy: str) -> None:
    assert main(words) == 0
    assert os.path.isfile("b.ra")


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("4096", 4096),
        ("500M", 500 << 20),
        ("1G", 1 << 30),
        ("1.5g", 3 << 29),
        ("64KiB", 64 << 10),
        ("2gb", 2 << 30),
        ("8B", 8),
        ("1T", 1 << 40),
    ],
)
def test_sizes(text: str, nbytes: int) -> None:
    assert size(text) == nbytes


@pytest.mark.parametrize("text", ["", "G", "-1", "0", "1e999", "nan", "1 X", "1MiBiB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        size(text)


def test_operands_may_stand_among_options() -> None:
    args = parse("convert", ["a", "-q", "b", "-o", "c", "d", "--", "-e"])

    assert (args.src, args.output, args.quiet) == (["a", "b", "d", "-e"], "c", True)


# Failures ----------------------------------------------------------------------------------------


def test_a_bug_is_one_line(
    npy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("raconvert.conversion.pipeline.convert", broken)

    assert main([npy, "-o", "b.ra"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("raconvert: ZeroDivisionError: oops\n  this is a bug")
    assert len(err.splitlines()) == 2
    with pytest.raises(ZeroDivisionError):
        main([npy, "-o", "b.ra", "--debug"])


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (MemoryError(), 1, "memory is exhausted"),
        (OSError(28, "No space left on device", "x"), 1, "'x': No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_system_failures_are_one_message(
    raised: BaseException,
    code: int,
    message: str,
    npy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("raconvert.conversion.pipeline.convert", broken)

    assert main([npy, "-o", "b.ra"]) == code
    assert capsys.readouterr().err.startswith(f"raconvert: {message}")


def test_control_characters_in_errors_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_error(RaconvertError("bad\x1b[31m", path="x\ry")) == 1
    assert capsys.readouterr().err == "raconvert: 'x\\x0dy': bad\\x1b[31m\n"


# Color, quiet, progress --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "env", "colored"),
    [
        ([], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {}, False),
    ],
)
def test_color_as_asked(
    words: list[str],
    env: dict[str, str],
    colored: bool,
    npy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert main(["info", npy, *words]) == 0
    assert ("\033[" in capsys.readouterr().out) == colored


@POSIX
@pytest.mark.parametrize(("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_color_on_a_terminal_unless_no_color(env: dict[str, str], colored: bool, npy: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    subprocess.run(
        [sys.executable, "-m", "raconvert", "info", npy],
        stdout=theirs,
        env={**base, "PYTHONPATH": str(ROOT), "TERM": "xterm", **env},
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 1000)
    os.close(ours)

    assert (b"\033[" in shown) == colored


def test_results_and_notes_have_their_own_streams(
    npy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([npy, "-o", "b.ra"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("wrote b.ra: float32 (2, 3) C")

    assert main([npy, "-q", "-o", "c.ra"]) == 0
    assert capsys.readouterr() == ("", "")

    assert main([npy, "-v", "-o", "d.ra"]) == 0
    assert "written as ra\nwrote d.ra\n" in capsys.readouterr().err


def test_progress_waits_half_a_second_and_wipes_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 0.0, 0.4, 0.4, 0.6, 0.6, 0.65, 0.65, 0.8, 0.8])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("raconvert.conversion.progress.monotonic", lambda: next(clock))
    shown = Progress("x.ra")
    progress = Listener(shown)

    progress(1_000_000, 4_000_000)
    assert capsys.readouterr().err == ""
    progress(2_000_000, 4_000_000)
    first = capsys.readouterr().err
    assert first.startswith("\rx.ra: 50 % of 4.0 MB, 3.3 MB/s")
    progress(3_000_000, 4_000_000)
    assert capsys.readouterr().err == ""
    progress(4_000_000, 4_000_000)
    assert "100 %" in capsys.readouterr().err
    shown.clear()
    assert capsys.readouterr().err.strip("\r ") == ""


def test_console_writes_names_of_any_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    code = "from raconvert.cli.console import Console; Console().raw('a\\udcff\\xd7')"
    for encoding in ("ascii", "utf-8"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=True,
        )
        assert done.stdout.strip() == b"a\xff\xc3\x97"
    Console().result("plain\udcff\x1b[1m")
    assert capfd.readouterr().out == "plain\\xff\\x1b[1m\n"


# Processes ---------------------------------------------------------------------------------------


@POSIX
def test_a_broken_pipe_is_quiet(npy: str) -> None:
    command = f"'{sys.executable}' -m raconvert info -s {' '.join([npy] * 3000)} | head -1"

    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@POSIX
@pytest.mark.parametrize("words", [["--help"], ["info", "a.npy"], ["formats"]])
def test_a_full_standard_output_is_an_error(words: list[str], npy: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "raconvert", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            check=False,
        )

    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_module_returns_the_exit_code(npy: str) -> None:
    assert run("info", npy).returncode == 0
    assert run("info", "none").returncode == 1
    assert run("inof").returncode == 2
