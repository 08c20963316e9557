"""`Record` behaves as `typing.NamedTuple`, which type checkers take it for."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import pytest

from raconvert.declared import Record


class Ours(Record):
    """Two fields, one with a default."""

    first: int
    second: str = "x"

    def doubled(self) -> int:
        return 2 * self.first


class Theirs(NamedTuple):
    """Two fields, one with a default."""

    first: int
    second: str = "x"

    def doubled(self) -> int:
        return 2 * self.first


class Inherits(Ours):
    """A subclass with a constructor of its own."""

    __slots__ = ()

    def __new__(cls, *, first: int) -> Inherits:
        return super().__new__(cls, first, "mine")


GOOD: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "y"), {}),
    ((), {"first": 1}),
    ((1,), {"second": "y"}),
    ((), {"second": "y", "first": 1}),
]
BAD: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1, "y", 2), {}),
    ((1,), {"first": 2}),
    ((1, "y"), {"second": "z"}),
    ((1,), {"third": 3}),
    ((), {"second": "y"}),
]


@pytest.mark.parametrize(("values", "named"), GOOD)
def test_fields_by_place_and_by_name(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)

    assert ours == theirs
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (ours.first, ours.second, ours.doubled()) == (*theirs, theirs.doubled())
    assert ours._asdict() == theirs._asdict()
    assert ours._replace(second="z") == theirs._replace(second="z")
    assert Ours._make(ours) == Theirs._make(theirs)
    for odd in (ours[1:], (*ours, 1)):
        with pytest.raises(TypeError):
            Ours._make(odd)
    assert Ours._fields == Theirs._fields


@pytest.mark.parametrize(("values", "named"), BAD)
def test_missing_unknown_and_repeated_fields(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        Theirs(*values, **named)
    with pytest.raises(TypeError):
        Ours(*values, **named)


def test_copies_keep_the_class() -> None:
    ours = Ours(1, "y")
    for same in (pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy(ours)):
        assert same == ours
        assert type(same) is Ours
    assert Inherits(first=3)._replace(first=4) == (4, "mine")
    assert type(Inherits(first=3)._replace(first=4)) is Inherits
    match ours:
        case Ours(first, second):
            assert (first, second) == (1, "y")


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Ours(1).first = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Ours(1).other = 2  # type: ignore[attr-defined]
