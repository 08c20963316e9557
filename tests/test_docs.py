"""What the documentation says is what the code does: tables, links, and every command shown.

A block marked `console` shows commands after ``$ `` and exactly what they print (``...`` stands for
anything); blocks marked `python` must run. Both run in one folder that holds the README's images.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("docs")

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


# Texts ------------------------------------------------------------------------------------------


def test_generated_texts_are_current() -> None:
    run([sys.executable, "-m", "docs.generate", "--check"], cwd=ROOT)


def test_promises_are_held_by_tests() -> None:
    """What docs/testing.md names as the tests of SECURITY.md is there."""
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    section = text.partition("\n## What SECURITY.md promises\n")[2].partition("\n## ")[0]
    found = re.findall(r"`(tests/[a-z_0-9/]+\.py)(?:::(test_\w+))?`", section)
    assert len(found) > 50
    for file, name in found:
        code = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name or 'test_'}", code, re.MULTILINE), (file, name)
    for row in section.strip().splitlines()[2:]:
        assert "`tests/" in row, row


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda page: page.stem
)
def test_decisions_have_their_sections(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith(f"# {int(page.name[:4])}. ")
    assert lines[2].startswith("Status: ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == [
        "Context",
        "Decision",
        "Alternatives refused",
        "Consequences",
    ]


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    (tests,) = (block for block in blocks(ROOT / "README.md", "bash") if "pytest" in block)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert all(part in ci for part in tests.strip().split(" && "))


# Commands ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a folder with the README's images and files, and an environment to run commands in.

    `raconvert` there is this checkout, run by the interpreter that runs the tests.
    """
    folder = tmp_path_factory.mktemp("docs")
    programs = folder / ".bin"
    programs.mkdir()
    for name, module in (("raconvert", "-m raconvert"), ("python", "")):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
    }
    run([sys.executable, str(ROOT / "docs" / "examples" / "make_digits.py")], folder)
    run(["raconvert", "mnist/*.png", "-o", "mnist.ra"], folder, **environment)
    return folder, environment


def transcript(block: str) -> list[tuple[str, str]]:
    """Split a console block into (command, expected output)."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def agrees(expected: str, printed: str) -> bool:
    """Compare, where ``...`` stands for anything, also for several lines."""
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name_of)
def test_console_examples(page: Path, playground: tuple[Path, dict[str, str]]) -> None:
    folder, environment = playground
    space = folder / page.stem
    space.mkdir()
    for name in ("mnist", "mnist.ra"):
        (space / name).symlink_to(folder / name)
    for command, expected in [
        pair for block in blocks(page, "console") for pair in transcript(block)
    ]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=space,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert agrees(expected, done.stdout), f"$ {command}\n{done.stdout}\nexpected:\n{expected}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_examples(
    page: Path, playground: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, environment = playground
    for name in ("mnist", "mnist.ra"):
        (tmp_path / name).symlink_to(folder / name)
    run([sys.executable, "-c", "\n".join(blocks(page, "python"))], tmp_path, **environment)


@pytest.mark.parametrize(
    "words",
    [
        "png_stack.py --count 40 --peer-count 20 --dir .",
        "startup.py --dir .",
        "small_ra.py --count 20 --dir .",
        "large_copy.py --mib 8 --sparse-gib 1 --dir .",
        "leb128.py --count 20000",
        "hdf5_copy.py --mib 8 --gzip-mib 4 --dir .",
        "mat.py --mib 8 --dir .",
        "nrrd.py --mib 8 --dir .",
        "har.py --mb 4 --dir .",
        "scidb.py --records 20000 --few 2000 --repeats 1 --dir .",
        "transpose.py --mib 4 --dir .",
    ],
)
def test_benchmarks_run(words: str, tmp_path: Path) -> None:
    """They check their own results; how fast they are is not looked at here."""
    name, *options = words.split()
    command = [sys.executable, str(ROOT / "benchmarks" / name), "--rounds", "1", *options]

    run(command, tmp_path, PYTHONPATH=str(ROOT))

    assert os.listdir(tmp_path) == []


def test_the_first_commands_of_the_readme_on_a_clean_copy(tmp_path: Path) -> None:
    """The first `bash` block, verbatim, as someone who has just cloned the project.

    The second installs what tests need and runs them: that is what CI does on a clean checkout.
    """
    probe = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    if subprocess.run([*probe, "shtab"], capture_output=True, check=False).returncode:
        reason = "no package index within reach: the README's commands install from it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    clone = tmp_path / "clone"
    ignore = shutil.ignore_patterns(
        ".git", ".venv", "mnist*", "__pycache__", ".*_cache", "*.egg-info"
    )
    shutil.copytree(ROOT, clone, ignore=ignore)
    path = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), os.environ["PATH"]])

    first, _ = blocks(ROOT / "README.md", "bash")
    run(["bash", "-c", f"set -e\n{first}"], clone, PATH=path, PIP_DISABLE_PIP_VERSION_CHECK="1")

    assert (clone / "mnist.ra").stat().st_size == 48 + 3 * 8 + 2000 * 28 * 28
