"""The words of the code: forms that are not plain English are not used."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    path for folder in ("raconvert", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))
]
HEADS = re.compile(r"(Returns? (what|how|whether|where|which|when|why|who)|Tells?|Says?) ")
# A docstring begins with a verb or a noun: what the function does, or what the thing is.
OPENINGS = re.compile(
    r"(What|Where|Which|Whether|When|Who|Why|How|Whatever|Whoever|Whose)\b"
    r"|(Since|Of|Those|That|None|There)\b"
)
# Names that say nothing to a newcomer.
ODD_NAMES = {"told", "told_of", "parted"}
# "there is no", "is no longer", "None where there is no file": plain English.
NO_NOUN = re.compile(r"(?<!there )\b(is|are) no (?!longer\b|more\b)[a-z]", re.IGNORECASE)
# A message says what does not exist, or is missing: "there is no" is for docstrings.
THERE_IS_NO = re.compile(r"\bthere (is|are) no\b|\bno room\b", re.IGNORECASE)


def test_the_rules_find_what_they_are_for() -> None:
    assert HEADS.match("Return what a key picks.")
    assert HEADS.match("Tell whether a folder is a bundle.")
    assert HEADS.match("Return the part that a key picks.") is None
    assert OPENINGS.match("Where the record ends.")
    assert OPENINGS.match("None: it has no regions.")
    assert OPENINGS.match("The offset where the record ends.") is None
    assert NO_NOUN.search("'12x' is no size")
    assert NO_NOUN.search("these are no numbers")
    assert NO_NOUN.search("there is no place for it") is None
    assert THERE_IS_NO.search("cannot be read: there are no credentials")
    assert THERE_IS_NO.search("cannot be read: no credentials found") is None
    assert NO_NOUN.search("a comment is no longer than a name") is None


def texts(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module, with their lines: docstrings and messages."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_docstrings_messages_and_comments_are_plain_english() -> None:
    heads, nouns, missing = [], [], []
    for path in MODULES:
        tree = module(path)
        heads += [f"{named(path)}:{line}: {text.splitlines()[0]}"
                  for line, text in docstrings(tree) if HEADS.match(text)]  # fmt: skip
        nouns += [f"{named(path)}:{line}: {match[0]}" for line, text in texts(tree)
                  for match in NO_NOUN.finditer(" ".join(text.split()))]  # fmt: skip
        with path.open("rb") as file:
            nouns += [f"{named(path)}:{token.start[0]}: {token.string}"
                      for token in tokenize.tokenize(file.readline)
                      if token.type == tokenize.COMMENT and NO_NOUN.search(token.string)]  # fmt: skip
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        missing += [f"{named(path)}:{node.lineno}: {match[0]}" for node in ast.walk(tree)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                    and id(node) not in described
                    and (match := THERE_IS_NO.search(node.value))]  # fmt: skip

    assert missing == [], "write 'X does not exist', 'is missing', 'not enough space'"
    assert heads == [], "a docstring names the result, or says 'True if'"
    assert nouns == [], "write 'is not a ...'"


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in MODULES
        for line, text in docstrings(module(path))
        if OPENINGS.match(text)
    ]

    assert found == []


PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/decisions/*.md",
        "docs/guide/*.md",
        "docs/recipes/*.md",
        "docs/reference/*.md",
        "docs/tutorials/*.md",
    )
    for path in ROOT.glob(pattern)
)


def test_pages_are_plain_english() -> None:
    odd = {
        named(path): words
        for path in PAGES
        if (words := NO_NOUN.findall(" ".join(path.read_text(encoding="utf-8").split())))
    }

    assert odd == {}, "write 'is not a ...'"


def names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module gives to variables, arguments and functions."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


# Where names with a word of the glossary lie, that had other meanings as well: "plain" is said of
# values that YAML and JSON hold, and a companion is an array, not a file.
ONE_MEANING = {
    "plain": {
        "raconvert/arrays/interop/from_libraries.py", "raconvert/arrays/metadata.py",
        "raconvert/conversion/report.py",
        "raconvert/inspect/described.py", "raconvert/inspect/elements.py",
        "raconvert/inspect/info.py", "raconvert/metadata/json.py", "raconvert/metadata/yaml.py",
        "raconvert/metadata/plain.py", "raconvert/migration/report.py", "raconvert/views/peek.py",
        "raconvert/viewer/answers.py",
        "plugins/hdf5/attributes.py",
    },
    "companion": {
        "raconvert/arrays/metadata.py", "raconvert/conversion/combine.py",
        "raconvert/conversion/losses.py", "plugins/scidb/plan.py", "plugins/scidb/reader.py",
    },
}  # fmt: skip


def test_names_say_what_they_hold() -> None:
    """None is odd, and a word of the glossary is in names of modules that mean by it what that says."""
    found = {path: [*names(module(path))] for path in MODULES}

    assert [
        f"{named(path)}:{line}: {name}"
        for path, ones in found.items()
        for line, name in ones
        if name.lstrip("_") in ODD_NAMES
    ] == []
    assert {
        word: {
            named(path) for path, ones in found.items() if any(word in n.lower() for _, n in ones)
        }
        for word in ONE_MEANING
    } == ONE_MEANING
