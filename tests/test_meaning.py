"""The law of meaning (`tests.meaning`) over a sample; all of it is a command of its own."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from meaning.__main__ import observed
from meaning.cases import Known, array_of, made
from meaning.judge import alone, judge, judged, parts, written

import raconvert
from raconvert import Axis, Metadata, plugin
from raconvert.catalogue import ROWS

PAGES = Path(__file__).parents[1] / "docs" / "formats"
TABLES = json.loads((PAGES / "meaning.json").read_text(encoding="utf-8"))

CASES, BLOCKS = 500, 20


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_an_array_is_about_arrives_or_is_named(block: int, tmp_path: Path) -> None:
    pytest.importorskip("SimpleITK")
    faults = []
    for seed in range(block * CASES // BLOCKS, (block + 1) * CASES // BLOCKS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        verdict = judged(seed, folder)
        faults += [f"seed {seed}: {' '.join(verdict.chain)}: {fault}" for fault in verdict.faults]
    assert faults == []


def test_the_law_finds_facts_on_another_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault put in by hand, names on the wrong axes, is found."""
    turned = Metadata.permuted
    monkeypatch.setattr(Metadata, "permuted", lambda meta, order: turned(meta, order[::-1]))
    for seed in range(40):
        chance = random.Random(seed)
        first, second = tmp_path / f"{seed}.zip", tmp_path / f"{seed}.h5"
        known = parts(chance, "moved", written({"X": made(chance)}, first), first, second)
        if judge(known, second, ["h5"]).faults:
            return
    pytest.fail("no case has shown it")


def test_the_law_finds_a_report_that_names_another_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = plugin.facts_of_axes
    monkeypatch.setattr(plugin, "facts_of_axes", lambda array, lost: named(array, lost[::-1]))
    found = []
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += alone(seed, "npy", folder).faults
    assert found


@pytest.mark.parametrize(
    ("named", "shape", "said"),
    [
        ({0: "x"}, (3,), "axis 0 'x' (name)"),
        ({2: "z"}, (3, 4, 5), "axis 2 'z' (name)"),
        ({0: "x", 2: "z"}, (3, 4, 5), "axes 0 'x' and 2 'z' (name)"),
        ({0: "x", 1: "y", 3: "a" * 40}, (1,) * 4, f"axes 0 'x', 1 'y' and 3 '{'a' * 21}…' (name)"),
        ({0: "x", 1: "y", 2: "z"}, (3, 4, 5), "every axis (name)"),
        (dict.fromkeys(range(1, 6), "x"), (1,) * 8, "axes 1 to 5 (name)"),
        (dict.fromkeys(range(0, 24, 2), "x"), (1,) * 24,
         "axes 0, 2, 4, 6, 8, 10, 12, 14, and 4 more (name)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_report_numbers_axes_as_they_are_indexed(
    named: dict[int, str], shape: tuple[int, ...], said: str, order: str
) -> None:
    axes = [Axis(named.get(place)) for place in range(len(shape))]
    values = np.zeros(shape, order=order)
    array = raconvert.Array(values, name="x", meta=Metadata(axes=axes))
    assert plugin.facts_of(array) == [said]


def test_every_format_that_is_written_has_a_table_that_says_what_is_observed() -> None:
    """A few cases more than the tables were made of."""
    assert TABLES.keys() == {row.name for row in ROWS if row.writes}
    for name, facts in observed(range(10_000, 10_003)).items():
        for fact, outcomes in facts.items():
            assert {*outcomes} <= {*TABLES[name][fact]}, (name, fact)


def test_what_a_format_says_to_keep_is_what_is_observed() -> None:
    """A word of `Format.holds` stands for facts of which one at least arrives in some file."""
    facts = {
        "names": {"name"}, "labels": {"labels"}, "spacing": {"spacing", "origin"},
        "space": {"positions"}, "scale": {"scale"}, "units": {"units", "array units"},
        "description": {"description"}, "attributes": {"attributes"},
    }  # fmt: skip
    assert (*facts,) == plugin.MODEL
    for row in (row for row in ROWS if row.writes):
        arrive = {fact for fact, outcomes in TABLES[row.name].items() if {*outcomes} - {"named"}}
        held = tuple(word for word in plugin.MODEL if facts[word] & arrive)
        assert row.holds == held, row.name


def test_cases_are_cut_as_arrays_are() -> None:
    """The hand-written rule of the law and `slicer` agree."""
    chance = random.Random(4)
    for _ in range(200):
        known: Known = made(chance)
        key = tuple(
            chance.choice([slice(None), slice(None, None, -1), slice(1, None), slice(0, n, 2)])
            for n in known.values.shape
        )
        wanted, got = known.cut(key), array_of(known).slicer[key]
        assert np.array_equal(wanted.values, got)
        if wanted.values.size:
            assert [a.values(n) is None for a, n in zip(wanted.axes, got.shape, strict=True)] == [
                a.values(n) is None for a, n in zip(got.axes, got.shape, strict=True)
            ]
