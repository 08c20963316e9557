"""Types: what checkers know of the public names, which are imported lazily."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
USER = ROOT / "tests" / "typed_user.py"


@pytest.mark.parametrize("module", ["raconvert", "raconvert.ra"])
def test_checkers_see_the_names_that_are_there_at_run_time(module: str) -> None:
    """The imports under TYPE_CHECKING, and the table that is used instead of them."""
    loaded = importlib.import_module(module)
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = {
        alias.name: (node.module, alias.asname)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if node.module != "raconvert"
    }

    assert imports == {name: (place, name) for name, place in loaded._PUBLIC.items()}


def run(command: list[str]) -> str:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    env = {**os.environ, "PYTHONPATH": path, "MYPYPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def test_the_program_of_a_user_runs(tmp_path: Path) -> None:
    printed = run([sys.executable, str(USER), str(tmp_path)])

    assert printed == "grid: int (3, 4), sum 66 3.0\n"
    assert (tmp_path / "grid.npy").exists()


def test_mypy_knows_the_types_of_a_program_of_a_user(tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install 'raconvert[types]'")
    wrong = tmp_path / "wrong.py"
    lines = [
        "raconvert.digest(1)",
        "raconvert.read('x', 'a').nothing",
        "raconvert.open_array('x', maximum=3)",
    ]
    wrong.write_text("\n".join(["import raconvert", "", *lines, ""]))
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    mypy += ["--cache-dir", str(ROOT / ".mypy_cache")]

    assert run([*mypy, str(USER)]) == ""
    found = run([*mypy, str(wrong)])
    assert 'wrong.py:3: error: Argument 1 to "digest"' in found
    assert all(f"wrong.py:{line}: error:" in found for line in range(4, 6))
