"""The plain part of YAML is what PyYAML reads and writes, and nothing else is taken for it."""

from __future__ import annotations

import contextlib
import math
import random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from raconvert.errors import Corrupt
from raconvert.files.limits import DEFAULT
from raconvert.metadata import plain
from raconvert.metadata.yaml import dump, parse

WORDS = st.text("abcxyzNo019_./%-'\"# :é\n~=<", max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    WORDS,
    st.sampled_from(
        ["yes", "No", "null", "on", "y", "1e5", "0x1f", "0o7", "1_0", "=", "<<", "..."]
    ),
    st.sampled_from(["12e45678", "07654321", "0b010101", "1:30", "2020-01-01", "-", "- a", "a: b"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.one_of(WORDS, st.sampled_from(["a", "b1", "no"])), VALUES, max_size=6)


def by_library(text: str) -> object:
    """What PyYAML reads, with the decimal numbers of our dialect."""
    from raconvert.metadata.yaml import _loader

    return yaml.load(text, _loader())


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)


@settings(max_examples=600, deadline=None)
@given(FIELDS)
def test_what_is_written_is_what_pyyaml_reads(fields: dict) -> None:
    text, done, _ = plain.written(fields)
    first = dict(list(fields.items())[:done])
    assert same(by_library(text) or {}, first)
    assert same(yaml.safe_load(text) or {}, first)
    if done:
        assert same(plain.leading(text, 10_000)[0], first)


@settings(max_examples=400, deadline=None)
@given(FIELDS)
def test_fields_survive_whether_they_are_plain_or_not(fields: dict) -> None:
    text = dump(fields)
    assert same(parse(text, "", DEFAULT), fields)
    assert same(by_library(text.decode()), fields)


LINES = (
    """
a: 1|b: word|c:|  d: 2|  - 3|- 4|  e: 'x y'|- f: 1|  g: 2|h: []|i: {}||# c|  # d|j: >|  text|word
  word|k: 'x|l'|---|...|m: &a 1|n: *a|o: !!str 1|? p|: q|no: 1|r: yes|s: 0x1f|t: 1:30|u: [1, 2]
v: {w: 1}|'x': 1|y: 1 # c|z : 1|a:|b: true|%YAML 1.1|aa: -0|bb: 01|cc: 1.5e+3|dd: 1e3|ee: .5|ff: 5.
- - 1|    gg: 1|\t|hh: null|ii: No|jj: 7e5.x|kk: '0'|ll: ''|mm: a.b/c|-|  -|nn: "|oo: -1|  pp: q r
""".strip("\n")
    .replace("\n", "|")
    .split("|")
)


def test_lines_in_any_order_are_read_as_pyyaml_reads_them() -> None:
    random.seed(1)
    accepted = 0
    for _ in range(6000):
        lines = random.choices(LINES[:10], k=random.randint(1, 3))
        lines += random.choices(LINES, k=random.randint(0, 4))
        text = "".join(line + "\n" for line in lines)
        found, end, _ = plain.leading(text, 1000)
        if not found:
            continue
        accepted += 1
        try:
            expected = by_library(text)
        except yaml.YAMLError:
            with pytest.raises(Corrupt):
                parse(text.encode(), "", DEFAULT)
            assert end < len(text), text
            continue
        with contextlib.suppress(Corrupt):  # aliases, keys that stand twice
            assert same(parse(text.encode(), "", DEFAULT), expected), text
    assert accepted > 500


@pytest.mark.parametrize(
    ("text", "most"),
    [("a: 1\nb: 2\n", 1), ("a:\n- 1\n- 2\n", 2), ("a: 1\nb:\n  - c: 1\n    d: 2\n", 3)],
)
def test_too_many_values_are_not_plain(text: str, most: int) -> None:
    assert plain.leading(text, most)[1] < len(text)


def test_line_numbers_in_messages_count_from_the_beginning() -> None:
    with pytest.raises(Corrupt, match="line 3"):
        parse(b"a: 1\nb: 2\nc: *d\n", "x", DEFAULT)


def test_a_key_twice_is_refused_across_the_parts() -> None:
    with pytest.raises(Corrupt, match="twice"):
        parse(b"a: 1\nb: [1]\na: 2\n", "x", DEFAULT)


def test_numbers_keep_their_bits() -> None:
    values = [0.1, -0.0, 1e300, 5e-324, 2.0**60, math.pi]
    assert same(parse(dump({"a": values}), "", DEFAULT)["a"], values)
