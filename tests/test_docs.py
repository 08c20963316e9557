"""What the documentation says is what the code does: tables, links, and every command shown.

A block marked `console` shows commands after ``$ `` and exactly what they print (``...`` stands for
anything); blocks marked `python` must run. Both run in one folder that holds the README's images. A
block with a file name, such as `python make_scan.py`, is a file that the commands below it use.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import needs
import pytest
from cases import every

import raconvert
from docs.pages import programs, steps

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


@every("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@every("page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda page: page.stem)
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


def test_the_api_page_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(
        r"^\.\. auto(?:function|class|exception):: raconvert\.(\w+)$", text, re.MULTILINE
    )

    assert sorted(named) == sorted(raconvert.__all__)


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    (tests,) = (block for block in blocks(ROOT / "README.md", "bash") if "pytest" in block)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert all(part in ci for part in tests.strip().split(" && "))


def test_the_readme_names_the_programs_that_tests_want() -> None:
    """Those of every Unix need no name, but CI must know the package of each."""
    text = README.partition("\n## Tests\n")[2].partition("\n## ")[0]
    unix = {"bash", "mount", "od", "sha256sum", "stat", "tar", "unshare"}
    named = {*re.findall(r"`([\w./-]+)`", text)}
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    calls = [{*re.findall(r'"([\w.-]+)"', one)} for one in re.findall(r"\btool\((\"[^)]+)\)", code)]
    installed = {*needs.PACKAGES, *needs.SAME_NAME}

    assert len(calls) > 40
    assert [names for names in calls if not names & installed] == []
    assert sorted(installed - named - unix) == []
    assert {one.header for one in needs.LIBRARIES.values()} - {"stdio.h"} <= named


def test_pictures_are_small_and_shown() -> None:
    pictures = {path.name: path for path in (ROOT / "docs" / "pictures").glob("*.[ps][nv]g")}
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert pictures
    for name, path in pictures.items():
        assert re.search(rf"pictures/{re.escape(name)}[)\"]", text), name
        assert path.stat().st_size < 40_000, name


def test_the_guide_is_a_walk_and_chapters() -> None:
    """The walk takes five minutes, no chapter is longer than 3,000 words, and each is listed."""
    walk = ROOT / "docs" / "guide.md"
    chapters = sorted((ROOT / "docs" / "guide").glob("*.md"))
    reference = sorted((ROOT / "docs" / "reference").glob("*.md"))
    text = walk.read_text(encoding="utf-8")
    index = (ROOT / "docs" / "reference" / "README.md").read_text(encoding="utf-8")

    assert len(text.split()) < 1000  # at 200 words a minute
    assert text.count("only-light") == text.count("only-dark") == 3
    assert len(chapters) >= 11
    for path in chapters:
        assert len(path.read_text(encoding="utf-8").split()) < 3000, path.name
        assert f"(guide/{path.name})" in text
        assert f"\nguide/{path.stem}\n" in text
    for path in reference:
        assert path.name == "README.md" or f"({path.name})" in index


# Commands ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a folder with the README's images and files, and an environment to run commands in."""
    folder = tmp_path_factory.mktemp("docs")
    environment = programs(folder)
    environment["OCTAVE_HISTFILE"] = (
        os.devnull
    )  # without a folder for one, Octave ends with an error
    run([sys.executable, str(ROOT / "docs" / "examples" / "make_digits.py")], folder)
    run(["raconvert", "mnist/*.png", "-o", "mnist.ra"], folder, **environment)
    return folder, environment


def agrees(expected: str, printed: str) -> bool:
    """Compare, where ``...`` stands for anything, also for several lines."""
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


# Programs of needs.py that pages of some fields run inside programs of their own.
NEEDS = {"matlab-and-julia": {"octave-cli"}, "scans": {"bart"}}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name_of)
def test_console_examples(
    page: Path,
    playground: tuple[Path, dict[str, str]],
    tool: Callable[..., str],
    request: pytest.FixtureRequest,
) -> None:
    folder, environment = playground
    words = {
        word
        for _, command, _ in steps(page.read_text(encoding="utf-8"))
        for word in command.split()
    }
    known = {*needs.PACKAGES, *needs.SAME_NAME}
    for name in sorted({"bash"} | known & words | NEEDS.get(page.stem, set())):
        tool(name)
    if "scidb-python" in words:
        request.getfixturevalue("scidbpy_python")
    space = folder / page.stem
    space.mkdir()
    for name in ("mnist", "mnist.ra"):
        (space / name).symlink_to(folder / name)
    if page.stem == "checkpoints":
        (space / "checkpoint.pth").symlink_to(ROOT / "fixtures" / "models" / "checkpoint.pth")
    for file, command, expected in steps(page.read_text(encoding="utf-8")):
        if file:
            (space / file).write_text(expected, encoding="utf-8")
            continue
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


def test_commands_in_sentences_of_the_readme(
    playground: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    """Those that stand among words run, too, with a file in the place of FILE."""
    folder, environment = playground
    (tmp_path / "mnist").symlink_to(folder / "mnist")
    text = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    commands = re.findall(r"`(raconvert [^`]+)`", text)

    assert len(commands) >= 5
    assert "raconvert peek FILE" in README.split("\n", 10)[6], "within the first ten lines"
    for command in commands:
        words = command.replace("FILE", "mnist/7.png").replace("NEW", "new").split()
        run(words, tmp_path, **environment)


# Blocks that neither of these two tests runs -> the test that does, or why nothing can.
# A block with the name of a file is part of the `console` blocks of its page.
ELSEWHERE = {
    (
        "README.md",
        "bash",
    ): "tests/test_docs.py::test_the_first_commands_of_the_readme_on_a_clean_copy",
    ("CONTRIBUTING.md", "sh"): ".ci/run does the same in an environment of its own",
    ("docs/architecture.md", "text"): "not a program: a diagram",
    (
        "docs/guide/buckets.md",
        "sh",
    ): "a bucket of one's own: tests/remote/test_recipe.py has another",
    (
        "docs/guide/look.md",
        "sh",
    ): "tests/test_viewer.py::test_ctrl_c_ends_it_without_a_word_too_many",
    ("docs/museum.md", "py"): "tests/test_museum.py",
    ("docs/museum.md", "sh"): "tests/test_museum.py",
    (
        "docs/packaging/README.md",
        "sh",
    ): ".ci/package tries pip, uvx and pipx; containers, conda and "
    "other systems are not there: tests/test_packaging.py reads their files",
    ("docs/performance.md", "sh"): "hours, not minutes: tests/test_docs.py::test_benchmarks_run",
    ("docs/plugin-authors.md", "py"): "tests/test_docs.py::test_the_plugin_of_the_page",
    ("docs/plugin-authors.md", "sh"): "tests/test_third_party.py",
    ("docs/plugin-authors.md", "toml"): "tests/test_docs.py::test_the_plugin_of_the_page",
    ("docs/recipes/dask.md", "bash"): "tests/migration/test_recipes.py",
    ("docs/recipes/s3.md", "shell-session"): "tests/remote/test_recipe.py",
    ("docs/recipes/slurm.md", "bash"): "tests/migration/test_recipes.py",
    ("docs/reference/not-read.md", "py"): "tests/test_foreign.py",
    ("docs/testing.md", "sh"): "tests/test_fuzz.py tests/test_mutation.py",
    ("docs/tutorials/matlab-and-julia.md", "julia"): "not run: machines that test have no Julia",
}


def test_every_block_is_run() -> None:
    """Or it is said why not; a command does not hide in an indented block."""
    found, hidden = set(), []
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"):
        text, name = page.read_text(encoding="utf-8"), name_of(page)
        fences = re.findall(r"^`{3,}([^`\n]+)$", text, re.MULTILINE)
        found |= {(name, words) for words in fences if " " not in words and words[0] != "{"}
        bare = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        if "docs/formats/" not in name:  # which show layouts, and are made from docstrings
            command = r"\n\n {4}((?:raconvert|python|pip|import|sha256sum)\b.*)"
            hidden += [(name, line) for line in re.findall(command, bare)]

    assert {one for one in found if one[1] not in ("console", "python")} == ELSEWHERE.keys()
    for says in ELSEWHERE.values():
        for file, test in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", says):
            code = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {test or 'test_'}", code, re.MULTILINE), (file, test)
    assert hidden == []


def test_the_plugin_of_the_page(tmp_path: Path) -> None:
    """It passes the kit as the page says, and by pytest; its entry point is that of the package."""
    page = ROOT / "docs" / "plugin-authors.md"
    module, kit, tests = blocks(page, "py")
    (tmp_path / "raconvert_toy.py").write_text(module, encoding="utf-8")
    (tmp_path / "test_toy.py").write_text(tests, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    quick = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]

    run([sys.executable, "-c", kit], tmp_path, PYTHONPATH=path)
    said = run([sys.executable, "-m", "pytest", *quick, "test_toy.py"], tmp_path, PYTHONPATH=path)

    assert re.search(r"^\d+ passed", said, re.MULTILINE), said
    (entry,) = blocks(page, "toml")
    toy = ROOT / "tests" / "third_party" / "raconvert-toy" / "pyproject.toml"
    assert entry in toy.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        "png_stack.py --count 40 --peer-count 20 --dir .",
        "startup.py --dir .",
        "small_ra.py --count 20 --dir .",
        "large_copy.py --mib 8 --sparse-gib 1 --dir .",
        "leb128.py --count 20000",
        "hdf5_copy.py --mib 4 --gzip-mib 1 --dir .",
        "mat.py --mib 8 --dir .",
        "nrrd.py --mib 8 --dir .",
        "har.py --mb 4 --dir .",
        "scidb.py --records 4000 --few 400 --repeats 1 --dir .",
        "transpose.py --mib 4 --dir .",
        "references.py --files 20 --gib 1 --dir .",
        "reading.py --mib 1 --dir .",
    ],
)
def test_benchmarks_run(words: str, tmp_path: Path) -> None:
    """They check their own results; how fast they are is not looked at here."""
    name, *options = words.split()
    command = [sys.executable, str(ROOT / "benchmarks" / name), "--rounds", "1", *options]

    run(command, tmp_path, PYTHONPATH=str(ROOT))

    assert os.listdir(tmp_path) == []


def test_benchmarks_by_one_command(tmp_path: Path) -> None:
    """Every program is listed; what one printed is kept, and drawn as well-formed XML."""
    command = [sys.executable, "-m", "benchmarks"]
    listed = run([*command, "--list"], ROOT)
    programs = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    kept, drawn = tmp_path / "all.json", tmp_path / "drawn"
    options = ["--quick", "--only", "leb128", "--json", str(kept), "--svg", str(drawn)]

    said = run([*command, *options], ROOT)
    result = json.loads(kept.read_text(encoding="utf-8"))
    other = {**result["tables"][0], "program": "transpose"}
    kept.write_text(json.dumps({**result, "tables": [*result["tables"], other]}), encoding="utf-8")
    run([*command, *options], ROOT)
    again = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**result, "machine": "another"}), encoding="utf-8")
    mixed = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, check=False)

    assert [table["program"] for table in again["tables"]] == ["transpose", *4 * ["leb128"]]
    assert again["tables"][0] == other
    assert b"measured otherwise (machine: another" in mixed.stderr
    tables = {table["title"]: table["rows"]["decode"]["cpu_ratio"] for table in result["tables"]}
    picture = ElementTree.parse(drawn / "leb128.svg").getroot()
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {line.split()[0] for line in listed.splitlines()} == programs
    assert set(tables) == {
        f"decode {n}" for n in ("1 byte", "1-2 bytes", "1-6 bytes", "9-10 bytes")
    }
    assert all(len(found) == 2 for found in tables.values())
    assert [text for text in texts if text == "loop"] == 4 * ["loop"]
    assert result["peers"].keys() >= {"numpy", "mat73", "tensorstore"}
    missing = [name for name, version in result["peers"].items() if version is None]
    assert all(f"{name:12} skipped: not installed" in said for name in missing)
    assert result["failed"] == []


def test_pictures_of_the_benchmarks_are_of_what_was_measured(tmp_path: Path) -> None:
    """Each program has a picture, drawn from the tables that are kept, and the page shows it."""
    folder = ROOT / "docs" / "performance"
    result = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    names = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    drawn = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")

    again = ["--draw", str(folder / "results.json"), "--svg", str(tmp_path)]
    run([sys.executable, "-m", "benchmarks", *again], ROOT)

    assert {table["program"] for table in result["tables"]} == names
    assert drawn.keys() == {f"{name}.svg" for name in names} | {"results.md"}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == drawn
    assert [n for n in sorted(names) if f"](performance/{n}.svg)" not in page] == []
    told = drawn["results.md"].decode()
    for text in (result["date"], result["machine"], f"raconvert {result['raconvert']}"):
        assert text in told


def test_what_is_slower_is_named() -> None:
    """Of each table by the time that counts there; not of those whose base does less."""

    def table(base: str, by: str = "cpu", **rows: float) -> dict:
        found = {base: 1.0, **rows}
        other = {"cpu": "wall", "wall": "cpu"}[by]
        both = {name: {f"{by}_ratio": [r, r, 99], f"{other}_ratio": [0.0]}
                for name, r in found.items()}  # fmt: skip
        return {"program": "x", "title": "t", "base": base, "by": by, "rows": both}

    sys.path.insert(0, str(ROOT))
    try:
        losses = importlib.import_module("benchmarks.__main__").losses
    finally:
        sys.path.remove(str(ROOT))
    found = losses(
        [
            table("raconvert", numpy=0.5, h5py=1.2, scipy=0.99),
            table("cp", "wall", **{"raconvert a": 1.2, "raconvert b": 0.8, "dd": 3.0}),
            table("bytes", raconvert=2.0),
            table("raconvert", **{"raconvert --jobs 2": 1.4, "verify": 0.5}),
        ]
    )

    assert [(one["row"], one["peer"], one["ratio"]) for one in found] == [
        ("raconvert", "numpy", 2.0),
        ("raconvert a", "cp", 1.2),
    ]


@pytest.mark.long
def test_the_first_commands_of_the_readme_on_a_clean_copy(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
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
    run(
        [tool("bash"), "-c", f"set -e\n{first}"],
        clone,
        PATH=path,
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )

    assert (clone / "mnist.ra").stat().st_size == 48 + 3 * 8 + 2000 * 28 * 28
