"""The program that changes tokens (tests/mutation): its changes are real, and its table is of today."""

from __future__ import annotations

import pytest

from tests.mutation.mutants import mutants
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
    assert AREAS[name].sources()
    assert AREAS[name].judges()
    assert all(mutants(path.read_text()) for path in AREAS[name].sources()[:1])


@pytest.mark.parametrize(("module", "line"), EQUIVALENT, ids=lambda part: part[:40])
def test_equivalent_changes_are_changes_of_today(module: str, line: str) -> None:
    assert line in {mutant.new_line for mutant in mutants((ROOT / module).read_text())}
