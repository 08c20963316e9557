"""Many cases in one test, and samples of more cases than each run can take.

A test with `every` is one test to pytest. Each case of a parametrised one costs 3 ms beside its own
work: every worker collects it, and it is reported between processes. All cases run, and those that
fail are listed by name; ``--case TEXT`` runs those whose name contains the text, ``-x`` ends at the
first that fails.

`some`, `rounds`, `covering` and `meeting` take a sample that is the same in each run; with
``RACONVERT_FULL=1`` all cases run.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import random
import shutil
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("RACONVERT_FULL", "").lower() in {"1", "true", "yes"}
ParameterSet = type(pytest.param())
SHOWN = 2000  # characters of what is shown of each case that failed


def some(cases: Iterable[T], count: int, seed: object = 0) -> list[T]:
    """Return `count` of the cases in their order, chosen by the seed; all of them in a full run."""
    found = list(cases)
    if FULL or len(found) <= count:
        return found
    chosen = random.Random(str(seed)).sample(range(len(found)), count)
    return [found[number] for number in sorted(chosen)]


def rounds(full: int, sampled: int) -> int:
    """Return how many random cases to make: `full` of them in a full run, else `sampled`."""
    return full if FULL else sampled


def covering(*axes: Iterable[Any], together: int = 2, seed: object = 0) -> list[tuple[Any, ...]]:
    """Return combinations of the values such that each `together` of them meet in one.

    For two that is a small part of the product, which is returned as a whole in a full run. Most
    faults take two values that meet, as a type and a byte order; nearly all take three at most.
    """
    sides = [list(axis) for axis in axes]
    numbers = meeting(itertools.product(*(range(len(side)) for side in sides)), together, seed)
    return [tuple(side[number] for side, number in zip(sides, one, strict=True)) for one in numbers]


def meeting(
    cases: Iterable[tuple[Hashable, ...]], together: int = 2, seed: object = 0
) -> list[tuple[Any, ...]]:
    """Return some of the cases, in their order: whatever meets in one of all meets in one of them.

    Those that bring the most new meetings are taken first. All of them in a full run.
    """
    found = list(cases)
    if FULL:
        return found
    groups = list(itertools.combinations(range(len(found[0])), together))
    left = list(range(len(found)))
    random.Random(str(seed)).shuffle(left)
    met: set[tuple[Any, ...]] = set()
    chosen: list[int] = []
    for wanted in range(len(groups), 0, -1):
        others = []
        for number in left:
            here = [(group, *(found[number][axis] for axis in group)) for group in groups]
            if sum(one not in met for one in here) >= wanted:
                met.update(here)
                chosen.append(number)
            else:
                others.append(number)
        left = others
    return [found[number] for number in sorted(chosen)]


class Case(NamedTuple):
    """The arguments of one call of a test."""

    name: str
    values: dict[str, Any]


def every(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], Any] | Sequence[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each of the cases; its arguments are those of `pytest.mark.parametrize`.

    Each case has its own `tmp_path`; what it did with `monkeypatch` is undone behind it, and the
    output that `capsys` has caught is dropped before it. If cases were skipped and none failed, the
    test is reported as skipped, with their number.
    """
    words = [word.strip() for word in names.split(",")]
    made = [_case(words, number, value, ids) for number, value in enumerate(cases)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(test).parameters
        fixtures = [one for name, one in own.items() if name not in words]
        taken = "request" in own
        if not taken:
            fixtures.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(test)
        def run(**given: Any) -> None:
            request = given["request"] if taken else given.pop("request")
            _run(test, made, request.config, given)

        run.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _case(words: list[str], number: int, value: Any, ids: Any) -> Case:
    if isinstance(value, ParameterSet):
        assert not value.marks, "a case of `every` has no marks"
        made = _case(words, number, value.values[0] if len(words) == 1 else value.values, ids)
        return made if value.id is None else made._replace(name=str(value.id))
    values = [value] if len(words) == 1 else list(value)
    assert len(values) == len(words), f"case {number} of {words} has {len(values)} values"
    if ids is not None and not callable(ids):
        return Case(str(ids[number]), dict(zip(words, values, strict=True)))
    shown = [
        str((ids(one) if ids else None) or _shown(one, f"{word}{number}"))
        for word, one in zip(words, values, strict=True)
    ]
    return Case("-".join(shown), dict(zip(words, values, strict=True)))


def _shown(value: Any, otherwise: str) -> str:
    if isinstance(value, str | int | float | complex | bool | bytes | None):
        return str(value)
    return str(getattr(value, "__name__", otherwise))


def _run(
    test: Callable[..., None], cases: list[Case], config: pytest.Config, given: dict[str, Any]
) -> None:
    """Call the test with each case, and fail with the names of those that failed."""
    wanted, first_ends = config.getoption("case", None), config.getoption("maxfail", 0) == 1
    failed: list[tuple[str, BaseException]] = []
    skipped: list[str] = []
    for number, case in enumerate(cases):
        if wanted and wanted not in case.name and not _has_inner_cases(test):
            continue
        try:
            _call(test, number, case, given)
        except pytest.skip.Exception as error:
            skipped.append(str(error))
        except (Exception, pytest.fail.Exception) as error:
            if first_ends:
                error.add_note(f"case {case.name}")
                raise
            failed.append((case.name, error))
    if failed:
        lines = [f"{name}: {type(one).__name__}: {str(one)[:SHOWN]}" for name, one in failed]
        said = f"{len(failed)} of {len(cases)} cases failed:\n" + "\n".join(lines)
        raise AssertionError(said) from failed[0][1]
    if skipped:
        pytest.skip(f"{len(skipped)} of {len(cases)} cases: {skipped[0]}")


def _has_inner_cases(test: Callable[..., None]) -> bool:
    """True if the test is itself one of `every`, whose cases are then looked for by name."""
    return hasattr(test, "__signature__")


def _call(test: Callable[..., None], number: int, case: Case, given: dict[str, Any]) -> None:
    fixtures = dict(given)
    folder = None
    if "tmp_path" in fixtures:
        folder = fixtures["tmp_path"] = fixtures["tmp_path"] / str(number)
        folder.mkdir()
    if "capsys" in fixtures:
        fixtures["capsys"].readouterr()
    forget_calls()
    try:
        test(**case.values, **fixtures)
    finally:
        if "monkeypatch" in fixtures:
            fixtures["monkeypatch"].undo()
    if folder is not None:  # what passed leaves nothing behind
        shutil.rmtree(folder, ignore_errors=True)


def forget_calls() -> None:
    """Forget what earlier calls of `convert` in this process have learned."""
    converter = sys.modules.get("raconvert.conversion.converter")
    if converter is not None:
        converter.forget()
