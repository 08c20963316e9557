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
        if (node.module or "").startswith("raconvert.")
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


WRONG = {  # a line -> words of the errors of both checkers
    "raconvert.digest(1)": "rgument",
    "raconvert.read('x', 'a').nothing": '"nothing"',
    "raconvert.open_array('x', maximum=3)": '"maximum"',
    "raconvert.open('x', from_=3)": "",
    "raconvert.open('x', 'a', form_='npy')": "",
    "raconvert.convert('a', 'b', dtpye='f4')": '"dtpye"',
    "raconvert.convert('a', 'b', overwrite='yes')": '"overwrite"',
    "raconvert.convert('a', 'b', progress=3)": '"progress"',
    "raconvert.write('a', [1], sink=True)": '"sink"',
    "raconvert.migrate('a', 'b', to='ra', job=3)": '"job"',
    "raconvert.verify('a', 'b', recursive=1.5)": '"recursive"',
    "raconvert.diff('a', 'b', max_memory='1G')": '"max_memory"',
    "raconvert.info('a', arrays=3)": '"arrays"',
    "raconvert.refs('a', 'b', trusted=[])": '"trusted"',
    "raconvert.dask.from_file('a', index_odrer='C')": '"index_odrer"',
}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_find_what_is_misspelt_or_of_a_wrong_type(checker: str, tmp_path: Path) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install 'raconvert[types]'")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import raconvert.dask", *WRONG, ""]))
    command = [sys.executable, "-m", checker]
    if checker == "mypy":
        command += ["--strict", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache")]
    elif subprocess.run([*command, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright cannot run here: it needs node")

    found = run([*command, str(USER), str(wrong)])

    assert "typed_user.py:" not in found
    for number, (line, words) in enumerate(WRONG.items(), start=2):
        said = [one for one in found.splitlines() if f"wrong.py:{number}:" in one]
        assert said, line
        assert any("error" in one and words in one for one in said), (line, said)
