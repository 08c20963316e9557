"""The pages that show the way: what they name is there."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest
from cases import every

import raconvert
from docs import changelog
from raconvert.plugin import API, PROPERTIES, Format

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
AUTHORS = (ROOT / "docs" / "plugin-authors.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The rows of the tables of a page, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rules = [n for n, line in enumerate(lines) if set(line) <= set("|-")]
    return [row for n, row in enumerate(cells) if n not in rules and n + 1 not in rules]


QUESTIONS = rows(ARCHITECTURE.split("## Where is")[1])


def names_in(path: Path) -> set[str]:
    """The names that a module defines: its functions, classes and tables, and those of classes."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        found |= {getattr(target, "id", "") for target in getattr(node, "targets", ())}
        found.add(_annotated(node))
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                own = [getattr(inner, "name", "")]
                own += [getattr(target, "id", "") for target in getattr(inner, "targets", ())]
                found |= {f"{node.name}.{name}" for name in [*own, _annotated(inner)] if name}
    return found


def _annotated(node: ast.stmt) -> str:
    return getattr(node.target, "id", "") if isinstance(node, ast.AnnAssign) else ""


# The way of the data ----------------------------------------------------------------------------


def test_ten_questions_are_answered() -> None:
    assert len(QUESTIONS) >= 10
    assert all(question.endswith("?") for question, _ in QUESTIONS)


@every("question, answer", QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_answers_name_what_is_there(question: str, answer: str) -> None:
    places = re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", answer)

    assert places
    for path, name in places:
        assert name in names_in(ROOT / path), f"{path} has no {name}"


def test_every_package_has_a_row_and_every_row_a_package() -> None:
    table = ARCHITECTURE.split("## The packages")[1].split("## Where is")[0]
    named = set(
        re.findall(r"`((?:raconvert/)?\w+(?:/|\.py))`", " ".join(r[0] for r in rows(table)))
    )
    here = {f"raconvert/{p.parent.name}/" for p in (ROOT / "raconvert").glob("*/__init__.py")}
    here |= {f"raconvert/{p.name}" for p in (ROOT / "raconvert").glob("[!_]*.py")}

    assert here - named == set()
    for path in named:
        assert (ROOT / path).exists(), path


def test_no_two_modules_begin_with_the_same_line() -> None:
    """Who reads the first lines to find a module must not find the same twice."""
    first: dict[str, list[str]] = {}
    for folder in ("raconvert", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "none"
            first.setdefault(text.splitlines()[0], []).append(str(path.relative_to(ROOT)))

    assert [paths for paths in first.values() if len(paths) > 1] == []


def test_the_picture_shows_the_stages() -> None:
    picture = ARCHITECTURE.split("```text")[1].split("```")[0]
    stages = re.search(r"inputs( → \w+)+(?= → destination)", picture)[0].split(" → ")

    for stage in stages:
        assert (ROOT / "raconvert" / "conversion" / f"{stage}.py").is_file(), stage


# Words ------------------------------------------------------------------------------------------


def test_glossary_is_sorted_and_says_every_word_once() -> None:
    words = [word for word, _ in rows(GLOSSARY)]

    assert words == sorted(words, key=str.casefold)
    assert len(words) == len(set(words))


def test_glossary_names_classes_that_are_there() -> None:
    core = importlib.import_module("raconvert.plugin")
    records = importlib.import_module("raconvert.declared")
    for name in re.findall(r"\(`([A-Z]\w+)`\)", GLOSSARY):
        assert hasattr(core, name) or hasattr(records, name), name


# Plugin authors ---------------------------------------------------------------------------------


def test_the_first_plugin_of_the_page_is_the_one_that_is_tested() -> None:
    toy = ROOT / "tests" / "third_party" / "raconvert-toy" / "raconvert_toy.py"
    first = re.search(r"^```py\n(.*?)^```$", AUTHORS, re.MULTILINE | re.DOTALL)[1]

    assert first == toy.read_text(encoding="utf-8")  # tests/test_third_party.py runs it
    assert len(first.splitlines()) <= 60


def test_every_field_of_a_format_is_explained() -> None:
    """In the docstring, which `help` shows and the table of the page is generated from."""
    told = re.findall(r"^    (\w+): \S", Format.__doc__ or "", re.MULTILINE)

    assert tuple(told) == Format._fields
    assert re.findall(r"^\| `(\w+)` \|", AUTHORS.split("fields: begin")[1], re.MULTILINE)[
        : len(told)
    ] == list(Format._fields)


def test_fields_of_a_format_have_names_and_usual_values() -> None:
    form = Format(name="x", title="X", suffixes=(".x",))

    assert (form.api, form.index_orders, form.samples, form.many) == (API, "C", {}, False)
    for wrong in ({"nam": "x"}, {"name": "x", "title": "X"}):
        with pytest.raises(TypeError, match="takes each of its fields once"):
            Format(**wrong)


def test_the_words_for_a_fit_are_the_same_everywhere() -> None:
    words = ", ".join(PROPERTIES)
    (row,) = [meaning for word, meaning in rows(GLOSSARY) if word == "property"]

    assert row.endswith(f": {words}")
    assert f"one of these words: {words}." in " ".join(AUTHORS.split())


def test_a_built_in_format_needs_at_most_eight_places() -> None:
    places = re.findall(
        r"^(\d+)\. ", AUTHORS.split("## A plugin in this repository")[1], re.MULTILINE
    )

    assert 1 <= len(places) <= 8


# The project ------------------------------------------------------------------------------------


def test_citation_has_the_version_and_the_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert f"\nversion: {raconvert.__version__}\n" in text
    assert f"\nlicense: {project['license']}\n" in text


def test_template_for_a_new_format_asks_for_what_it_needs() -> None:
    yaml = pytest.importorskip("yaml")
    path = ROOT / ".github" / "ISSUE_TEMPLATE" / "new-format.yml"
    body = yaml.safe_load(path.read_text(encoding="utf-8"))["body"]
    asked = {item["id"] for item in body if item.get("validations", {}).get("required")}

    assert asked == {"specification", "sample", "reader", "survive"}


def test_hooks_are_those_that_ci_runs() -> None:
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]

    assert [entry for entry in entries if entry.startswith("ruff check")] == ["ruff check"]
    assert "ruff check" in ci
    assert "ruff format --check" in ci


def test_fragments_of_the_changelog_are_named_as_they_should_be() -> None:
    for path in changelog.fragments():
        assert path.read_text(encoding="utf-8").strip(), path


def test_a_release_collects_the_fragments(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "changes"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("about\n")
    (folder / "b.fixed.md").write_text("It is\nright now.\n")
    (folder / "a.added.md").write_text("It is new.\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog.MARK}\n## 0.1.0 (old)\n")

    changelog.collect("0.2.0", tmp_path)

    text = (tmp_path / "CHANGELOG.md").read_text()
    assert re.sub(r"\d{4}-\d\d-\d\d", "DAY", text) == (
        f"# Changelog\n\n{changelog.MARK}\n## 0.2.0 (DAY)\n\n### Added\n\n- It is new.\n\n"
        "### Fixed\n\n- It is right now.\n\n## 0.1.0 (old)\n"
    )
    assert [path.name for path in folder.iterdir()] == ["README.md"]


def test_a_fragment_of_no_known_kind_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "changes"
    folder.mkdir(parents=True)
    (folder / "something.md").write_text("x\n")

    with pytest.raises(ValueError, match="WORDS.KIND.md"):
        changelog.fragments(tmp_path)
