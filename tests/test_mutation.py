"""The program that changes tokens (tests/mutation): its changes are real, and its table is of today."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cases import every

from tests.mutation.lines import REACHED, marked
from tests.mutation.mutants import Mutant, candidates, compiles, mutants
from tests.mutation.table import AREAS, EQUIVALENT, ROOT

SOURCE = '''
from __future__ import annotations
MAX_SIZE = 1 << 20
def f(a: int | None, b: int) -> int | None:
    """Text with 1 < 2 and not 3."""
    if TYPE_CHECKING:
        c = 1 + 1
    if not a and b in (3, True):
        return a << b if a is not b else zip(a, b, strict=True)
    return "é" and a[b:]
'''


def test_every_kind_of_token_is_changed_and_nothing_else() -> None:
    found = {mutant.new_line for mutant in mutants(SOURCE)}
    assert found == {
        "if a and b in (3, True):",
        "if not a or b in (3, True):",
        "if not a and b not in (3, True):",
        "if not a and b in (4, True):",
        "if not a and b in (2, True):",
        "if not a and b in (3, False):",
        "return a >> b if a is not b else zip(a, b, strict=True)",
        "return a << b if a is b else zip(a, b, strict=True)",
        'return "é" or a[b:]',
    }


def test_a_change_is_of_one_line() -> None:
    for mutant in mutants(SOURCE):
        changed = mutant.applied(SOURCE).splitlines()
        different = [n for n, line in enumerate(SOURCE.splitlines()) if line != changed[n]]
        assert different == [mutant.line - 1]
        assert changed[mutant.line - 1].strip() == mutant.new_line


@pytest.mark.parametrize("name", AREAS)
def test_areas_have_modules_and_tests(name: str) -> None:
    for pattern in (*AREAS[name].modules, *AREAS[name].tests):
        assert list(ROOT.glob(pattern)), pattern
    source = AREAS[name].sources()[0].read_text()
    assert any(compiles(mutant, source) for mutant in candidates(source))


def test_lines_that_run_are_noted() -> None:
    """Each with all lines of its statement; what runs on import is not, and nothing else changes."""
    source = '''"""Text."""
from __future__ import annotations
ONE = 1
def f(a):
    """Text."""
    if (a and
            ONE):
        return [
            a]
    for n in (1, 2):
        pass
    else:
        a = 3
    return a
'''
    space: dict[str, Any] = {}
    REACHED.clear()
    exec(compile(marked(source, "m.py"), "m.py", "exec"), space)
    assert not REACHED
    assert space["f"](5) == [5]
    assert {(a, b) for _, a, b in REACHED} >= {(6, 7), (8, 9)}
    assert max(b for _, _, b in REACHED) == 9
    assert space["f"](0) == 3
    assert {("m.py", 10, 10), ("m.py", 11, 11), ("m.py", 13, 13), ("m.py", 14, 14)} <= REACHED


@every("module, line", EQUIVALENT, ids=lambda part: part[:40])
def test_equivalent_changes_are_changes_of_today(module: str, line: str) -> None:
    assert any(compiles(mutant, source_of(module)) for mutant in _changes(module).get(line, ()))


@cache
def _changes(module: str) -> dict[str, list[Mutant]]:
    """The changes of a module by what the line becomes."""
    found: dict[str, list[Mutant]] = {}
    for mutant in candidates(source_of(module)):
        found.setdefault(mutant.new_line, []).append(mutant)
    return found


def source_of(module: str) -> str:
    return (ROOT / module).read_text()
