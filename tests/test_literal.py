"""The literals of NPY headers, compared with Python's own parser; and that hostile ones are cheap."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from raconvert.files.limits import DEFAULT
from raconvert.metadata.literal import parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.sampled_from(["", " ", "\n", "   \n"]))
def test_what_python_writes_is_read_as_python_reads_it(
    fields: dict[str, object], padding: str
) -> None:
    assert parse(repr(fields) + padding, DEFAULT) == list(fields.items())


@given(st.text("\\'\"xuU01afn\n{}[](),: L9-Trueu", max_size=24))
def test_what_is_taken_is_what_python_takes(inside: str) -> None:
    for text in (f"{{'k': {inside}}}", f"{{'k': '{inside}'}}", f"{{{inside}}}"):
        try:
            found = parse(text, DEFAULT)
        except ValueError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes
            try:
                expected = ast.literal_eval(text)
            except SyntaxError:
                assert "L" in text or "l" in text, "only Python 2's long integers"
                continue
        assert dict(found) == expected
        assert repr(dict(found)) == repr(expected)


@every(
    "text",
    ["", "{", "{'a'", "{'a':", "{'a': }", "{'a': 1", "{'a': 1,, }", "{'a': (,)}", "{'a': '}", "{'a': 1} 2",
     "{1: 2}", "{'a': {}}", "{'a': 1.5}", "{'a': 1_0}", "{'a': 007}", "{'a': 0x1}", "{'a': b'x'}", "{'a': 'x' 'y'}",
     "{'a': '\\x4'}", "{'a': '\\N{DIGIT ONE}'}", "{'a': '\\U00110000'}", "{'a': [1)}", "{'a': Truex}", "{'a': f()}",
     "{'a': 1+1}", "{'a': '''x'''}", "{'a': 'x\ny'}", "{'a': -}", "[]", "()", "'a'"],
)  # fmt: skip
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text, DEFAULT)


def test_brackets_and_digits_have_limits() -> None:
    def nested(depth: int) -> str:
        return f"{{'a': {'[' * depth}{']' * depth}}}"

    most = DEFAULT.literal_levels
    assert parse(nested(most - 1), DEFAULT)
    with pytest.raises(ValueError, match="brackets inside each other"):
        parse(nested(most), DEFAULT)
    with pytest.raises(ValueError, match="a number of 4301 digits"):
        parse(f"{{'a': {'9' * 4301}}}", DEFAULT)


@pytest.mark.parametrize("name", ["redos.npz", "redos_16000.npy"])
def test_the_files_of_the_review(
    corpus: Callable[..., Path], refused: Callable[..., str], name: str
) -> None:
    assert "not a Python literal" in refused(corpus("review", "attack", name))
