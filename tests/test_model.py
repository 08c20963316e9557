"""Bundles, and the reports of what was done with them: what is found, and with how little work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bundles import save

from raconvert.api import array_of
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.bundle.members import files_of
from raconvert.conversion.report import Report
from raconvert.files import names
from raconvert.plugin import equivalent

MANY = 2000
OFTEN = 10 * MANY  # far below MANY * MANY


def arrays_of(*listed: str) -> list[Array]:
    return [array_of(np.arange(place), name) for place, name in enumerate(listed)]


# Looking up arrays -------------------------------------------------------------------------------


def test_arrays_are_found_by_name() -> None:
    arrays = arrays_of("a", "g/b", "")
    bundle = Bundle(arrays)

    assert [bundle[name] for name in ("a", "g/b", "")] == arrays
    assert bundle.get("b") is None
    assert "b" not in bundle
    with pytest.raises(KeyError, match="b"):
        bundle["b"]


def test_of_two_arrays_of_one_name_the_first_is_found() -> None:
    bundle = Bundle(arrays_of("a", "b", "b"))

    assert bundle["b"] is bundle.arrays[1]


def test_other_arrays_are_found_once_they_are_there() -> None:
    bundle = Bundle(arrays_of("a", "b"))
    assert "a" in bundle

    bundle.arrays = arrays_of("c", "d")
    assert ("a" in bundle, bundle["d"]) == (False, bundle.arrays[1])

    bundle.arrays.append(*arrays_of("e"))
    assert bundle["e"] is bundle.arrays[2]

    bundle.arrays.reverse()
    assert [bundle[name] for name in "edc"] == bundle.arrays

    del bundle.arrays[0]
    assert ("e" in bundle, bundle["c"]) == (False, bundle.arrays[1])

    bundle["c"].name = "f"
    assert ("c" in bundle, bundle["f"]) == (False, bundle.arrays[1])

    bundle.arrays[1] = bundle.arrays[1].replace(name="g")
    assert "f" not in bundle
    assert bundle["g"] is bundle.arrays[1]


def test_looking_up_every_array_looks_at_each_only_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def name(array: Array) -> str:
        nonlocal looks
        looks += 1
        return array._name

    listed = [f"a{number}" for number in range(MANY)]
    bundle = Bundle([array_of(np.zeros(1), name) for name in listed])
    monkeypatch.setattr(Array, "name", property(name))

    assert all(one in bundle and bundle[one] is not None for one in listed)
    assert not any(f"{one}x" in bundle for one in listed)
    assert looks < OFTEN


# Reports -----------------------------------------------------------------------------------------


class Counted(str):
    """Text that counts how often it was compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_reports_of_many_files_are_put_together_once_each() -> None:
    report = Report([])
    for number in range(3):
        part = Report([])
        part.add_notes(["twice", "twice", f"note {number}"])
        part.equivalent += [equivalent("x", "type", "one"), equivalent("x", "type", f"{number}")]
        report.absorb(part)
        report.allowed += [fit for fit in part.equivalent if fit not in report.allowed]

    assert report.notes == ["twice", "note 0", "note 1", "note 2"]
    assert [fit.reason for fit in report.equivalent] == ["one", "0", "1", "2"]
    assert report.allowed == report.equivalent


def test_putting_reports_together_compares_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "compared", 0)
    report = Report([])
    for number in range(MANY):
        part = Report([])
        part.add_notes([Counted(f"note {number}")])
        part.equivalent.append(equivalent("x", "type", Counted(number)))
        part.allowed.append(equivalent("x", "type", Counted(number)))
        report.absorb(part)

    assert len(report.notes) == len(report.equivalent) == len(report.allowed) == MANY
    assert Counted.compared < OFTEN


# Files of names ----------------------------------------------------------------------------------


def test_names_that_are_one_file_are_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    folded = names.folded

    def counted(path: str) -> str:
        nonlocal looks
        looks += 1
        return folded(path)

    monkeypatch.setattr(names, "folded", counted)
    stem = "abcdefghijkl"
    listed = [
        "".join(c.upper() if number >> place & 1 else c for place, c in enumerate(stem))
        for number in range(MANY)
    ]

    files = files_of(listed, ".ra")

    assert files[:3] == ["abcdefghijkl.ra", "Abcdefghijkl%2.ra", "aBcdefghijkl%3.ra"]
    assert files[-1].endswith(f"%{MANY}.ra")
    assert looks < OFTEN


def test_a_bundle_of_renamed_arrays_has_the_new_names(tmp_path: Any) -> None:
    bundle = Bundle(arrays_of("a", "b"))
    bundle["a"].name = "c"

    assert save(tmp_path / "x.zip", bundle).arrays[0][0] == "c"
