"""Every printed command and program names the right file, and runs nothing of its name."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from raconvert.arrays.dtypes import element_of
from raconvert.cli.sources import no_destination
from raconvert.errors import RaconvertError, quoted
from raconvert.files import quoting
from raconvert.files.paths import write_failed
from raconvert.files.source import Source
from raconvert.foreign import unknown_source
from raconvert.views.pages.programs import LANGUAGES, Stored, filled, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PARTS = [
    "'", '"', "`", "\\", "$(touch PWNED)", "`touch PWNED`", "${x}", "$x", "$'", "!", "!!", ";touch PWNED;",
    "&& touch PWNED", "|touch PWNED", "> PWNED", "\n", "\r", "\t", "\x1b[31m", "\x1b]0;t\x07", "\x7f",
    "\x85", "\x9b", "\u202e", "\u2066", "\u2028", "\ufeff", "\U000e0041", "\udcff", "\udc80", "\udce9",
    "é", "日本", "😀", "%s", "%n", "%%", "??/", "??'", "\\n", "\\0", "\\x41", "{a,b}", "*", "?", "[a]",
    "~", "#", "#x", " ", "  ", "-", "--", "=", "<", "x", "0", "7", "a1", "FILE", "NAME", "WORD", "PATH",
    "')", '")', "');system('touch PWNED');('", '");system("touch PWNED");("', "$(system('x'))", "$(run(`x`))",
    "\n touch PWNED\n", "'\ntouch PWNED\n'", "%{", "...", "/*", "*/", "//", "\\\n", "EOF", "http:", "|", "&",
]  # fmt: skip
WHOLE = ["-rf", "-", "--help", "~", "~root", "all", "stdin", "clipboard", "-n", "a\n", "\n", "x\n\n", "'", "\\", '"',
         "$(touch PWNED)", "a'$(touch PWNED)", "a'$(touch PWNED).json", "-e $(touch PWNED)\n", "??∕\"x", "a:b", "é\x1b",
         "\udcff\u202e", "!x", "a\x1b!", "|ls"]  # fmt: skip


def hostile_names(count: int = 200, seed: int = 7) -> list[str]:
    """Names of files, each once: those that are known to be awkward, and mixtures of such parts."""
    dice = random.Random(seed)
    names = dict.fromkeys(WHOLE)
    while len(names) < count:
        name = "".join(dice.choices(PARTS, k=dice.randint(1, 6))).replace("/", "∕")
        name = name.replace("\0", "")
        if name not in (".", "..") and len(os.fsencode(name)) < 200:
            names[name] = None
    return list(names)


NAMES = hostile_names()
TEXTS = [name.replace("∕", "/") for name in NAMES]  # what need not be a file
END = b"\0<end>\0"


def run(words: list[str], folder: Path) -> bytes:
    found = subprocess.run(words, cwd=folder, capture_output=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "PWNED" not in os.listdir(folder)
    return bytes(found.stdout)


def expected(texts: list[str]) -> list[bytes]:
    return [os.fsencode(text) for text in texts]


def told(output: bytes) -> list[bytes]:
    return output.split(END)[:-1]


def program(folder: Path, text: str) -> str:
    (folder / "program").write_text(text, encoding="utf-8")  # printable: no surrogates are left
    return str(folder / "program")


def assert_printable(literals: list[str]) -> None:
    assert [one for one in literals if quoted(one) != one] == []


# Literals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "dash"])
def test_words_of_a_shell(shell: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    if shell != "sh":
        tool(shell)
    texts = TEXTS
    if shell in ("sh", "dash"):  # they lack $'…', which the names need that end with a line break
        texts = [text for text in TEXTS if not text.endswith("\n")]
    words = [quoting.shell(text) for text in texts]
    assert_printable(words)
    text = "\n".join(f"printf '%s\\0<end>\\0' {word}" for word in words)

    assert told(run([shell, program(tmp_path, text)], tmp_path)) == expected(texts)


def test_no_shell_runs_what_it_does_not_know(tmp_path: Path) -> None:
    """A shell without $'…' names another file, and runs nothing."""
    words = [quoting.shell(text) for text in TEXTS if text.endswith("\n")]
    assert words

    run(["sh", program(tmp_path, "\n".join(f": {word}" for word in words))], tmp_path)


def test_literals_of_python(tmp_path: Path) -> None:
    literals = [quoting.python(text) for text in TEXTS]
    assert_printable(literals)
    lines = [f"out.write(os.fsencode({one}) + {END!r})" for one in literals]
    text = "\n".join(["import os, sys", "out = sys.stdout.buffer", *lines])

    assert told(run([sys.executable, program(tmp_path, text)], tmp_path)) == expected(TEXTS)


@pytest.mark.parametrize("standard", ["gnu17", "c99", "c11", "c17"])
def test_literals_of_c(standard: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("gcc")
    literals = [quoting.c(text) for text in TEXTS]
    assert_printable(literals)
    lines = [f"    fwrite({one}, sizeof {one} - 1, 1, stdout); END" for one in literals]
    head = '#include <stdio.h>\n#define END fwrite("\\0<end>\\0", 7, 1, stdout);\nint main(void) {'
    source = program(tmp_path, "\n".join([head, *lines, "    return 0;\n}"]))
    made = tmp_path / "made"
    run(["gcc", f"-std={standard}", "-x", "c", "-Wno-trigraphs", source, "-o", str(made)], tmp_path)

    assert told(run([str(made)], tmp_path)) == expected(TEXTS)


def test_expressions_of_octave(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("octave-cli")
    literals = [quoting.matlab(text) for text in TEXTS]
    assert_printable(literals)
    lines = [f"fwrite(1, {one}); fwrite(1, [0 '<end>' 0]);" for one in literals]
    words = ["octave-cli", "--quiet", "--no-init-file", program(tmp_path, "\n".join(lines))]

    assert told(run(words, tmp_path)) == expected(TEXTS)


def test_literals_of_r(tmp_path: Path, r: Callable[..., str]) -> None:
    literals = [quoting.r(text) for text in TEXTS]
    assert_printable(literals)
    lines = [f"writeBin(c(charToRaw({one}), as.raw(0), charToRaw('<end>'), as.raw(0)), f)"
             for one in literals]  # fmt: skip
    r("\n".join(['f <- file("out", "wb")', *lines, "close(f)"]), tmp_path)

    assert told((tmp_path / "out").read_bytes()) == expected(TEXTS)


@pytest.mark.parametrize("language", ["Julia", "R"])
def test_literals_of_other_languages_are_closed(language: str) -> None:
    """No quote ends a literal early, nothing is inserted, and the bytes are those of the name."""
    for text in TEXTS:
        literal = quoting.QUOTED[language](text)
        assert quoted(literal) == literal
        whole = re.fullmatch(r'"((?:[^"\\]|\\[0-3][0-7]{2}|\\["\\$])*)"', literal)
        assert whole, literal
        if language == "Julia":
            assert not re.search(r"(?<!\\)(?:\\\\)*\$", literal.replace(r"\$", ""))
        else:
            assert r"\$" not in literal.replace(r"\\", "")
        back = re.sub(
            rb"\\(?:([0-3][0-7]{2})|(.))",
            lambda one: bytes([int(one[1], 8)]) if one[1] else one[2],
            os.fsencode(whole[1]),
        )
        assert back == os.fsencode(text)


def test_shells_complete_and_commands_name_files_in_operands() -> None:
    assert quoting.operand("-rf") == "./-rf"
    assert quoting.operand("scan.ra") == "scan.ra"
    assert quoting.path("scan one.ra") == "scan one.ra"


# Programs ----------------------------------------------------------------------------------------


def made_files(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        with open(os.path.join(os.fsencode(folder), os.fsencode(name)), "wb") as file:
            file.write(number.to_bytes(4, "little"))


def stored(name: str) -> Stored:
    return Stored(name, 0, element_of(np.dtype("<u4")), False, (1,), "C")


def test_programs_in_python_read_the_file_of_that_name(tmp_path: Path) -> None:
    made_files(tmp_path, NAMES)
    texts = [programs(stored(name))["Python"] + "\nprint(x[0])" for name in NAMES]
    texts += [
        filled({"Python": "x = np.fromfile(FILE, '<u4')\nprint(x[0])"}, name, "")["Python"]
        for name in NAMES
    ]
    (tmp_path.parent / "program").write_text("\n".join(texts))
    found = subprocess.run(
        [sys.executable, str(tmp_path.parent / "program")],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    assert found.stdout.split() == [b"%d" % n for n in [*range(len(NAMES))] * 2]
    assert "PWNED" not in os.listdir(tmp_path)


def test_programs_in_octave_read_the_file_of_that_name(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    tool("octave-cli")
    made_files(tmp_path, NAMES)
    texts = [programs(stored(name))["MATLAB"] + "\nprintf('%d\\n', x(1));" for name in NAMES]
    (tmp_path.parent / "program.m").write_text("\n".join(texts))
    words = ["octave-cli", "--quiet", "--no-init-file", str(tmp_path.parent / "program.m")]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)

    assert found.stdout.split() == [b"%d" % n for n in range(len(NAMES))]
    assert "PWNED" not in os.listdir(tmp_path)


@pytest.mark.parametrize("standard", ["gnu17", "c99", "c11", "c17"])
def test_programs_in_c_read_the_file_of_that_name(
    standard: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """One program for all names, of the lines that open each."""
    tool("gcc")
    folder, source, made = tmp_path / "files", tmp_path / "read.c", tmp_path / "read"
    folder.mkdir()
    made_files(folder, NAMES)
    parts = [
        "#define _FILE_OFFSET_BITS 64",
        "#include <stdint.h>",
        "#include <stdio.h>",
        "#include <stdlib.h>",
    ]
    for number, name in enumerate(NAMES):
        body = programs(stored(name))["C"].partition("int main(void) {")[2]
        body = body.replace("return 0;", 'printf("%u\\n", (unsigned)x[0]); return 0;')
        parts.append(f"static int read_{number}(void) {{{body}")
    calls = " || ".join(f"read_{number}()" for number in range(len(NAMES)))
    source.write_text(
        "\n".join([*parts, f"int main(void) {{ return {calls}; }}"]), encoding="utf-8"
    )
    words = [
        "gcc",
        f"-std={standard}",
        "-D_GNU_SOURCE",
        "-Wno-trigraphs",
        "-o",
        str(made),
        str(source),
    ]
    subprocess.run(words, check=True, capture_output=True)
    found = subprocess.run([str(made)], cwd=folder, capture_output=True, check=True)

    assert found.stdout.split() == [b"%d" % n for n in range(len(NAMES))]
    assert "PWNED" not in os.listdir(folder)


def test_every_language_has_a_function() -> None:
    assert set(quoting.QUOTED) == set(LANGUAGES)


# Commands in errors -------------------------------------------------------------------------------


def unknown(name: str, folder: Path) -> RaconvertError:
    path = os.path.join(folder, name)
    with open(os.fsencode(path), "wb") as file:
        file.write(b'{"version":1,"refs":{}}')
    try:
        return unknown_source(Source(path), [])
    finally:
        os.unlink(path)


ERRORS: dict[str, Callable[[str, Path], RaconvertError]] = {
    "unknown format": unknown,
    "no destination": lambda name, _: no_destination([name]),
    "no folder": lambda name, _: write_failed(
        f"{name}/x.ra", FileNotFoundError(2, "No such file or directory")
    ),
}


def commands(error: RaconvertError, name: str) -> Iterator[str]:
    """The commands of an error as it is printed, up to the words behind them."""
    for line in str(error).splitlines()[1:]:
        found = re.search(r"(?:raconvert|mkdir) (?:.*?)(?= says what| has every| -o DST|$)", line)
        if found:
            yield found[0]


@pytest.mark.parametrize("kind", ERRORS)
def test_commands_in_errors_name_the_right_file(
    kind: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    tool("bash")
    stubs = [
        "raconvert() { for w; do last=$w; done; printf '%s\\0<end>\\0' \"$last\"; }",
        'mkdir() { raconvert "$@"; }',
    ]
    folder, names, lines = tmp_path / "files", [], []
    folder.mkdir()
    for name in NAMES:
        error = ERRORS[kind](name, folder)
        some = list(commands(error, name))
        assert some, str(error)
        shown = os.path.join(folder, name) if kind == "unknown format" else name
        if shown.startswith("-"):
            shown = f"./{shown}"
        names += [shown] * len(some)
        lines += some
    text = program(tmp_path, "\n".join([*stubs, *lines]))

    assert told(run(["bash", text], tmp_path)) == expected(names)
