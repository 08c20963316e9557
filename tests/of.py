"""Run the tests of a module or a folder: ``python -m tests.of PATH [PYTEST OPTIONS]``.

The tests of a path are those that the mutation table gives it, those named after it, and those
that import it. ``--list`` prints them and runs nothing.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

from tests.mutation.table import AREAS, ROOT

EVERY_FORMAT = ("tests/test_conformance.py", "tests/test_pairs.py")


def imported(path: Path) -> set[str]:
    """The dotted names that a test file imports, of modules and of what is in them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def dotted(path: Path) -> str:
    """The name under which a module or folder is imported: ``plugins`` is ``raconvert.plugins``."""
    parts = list(path.with_suffix("").parts)
    if parts[0] == "plugins":
        parts.insert(0, "raconvert")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def importers(name: str) -> list[Path]:
    """The modules of the package that import a module, the first step to those of the users."""
    files = [*(ROOT / "raconvert").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    return [
        path for path in files if name in imported(path) and dotted(path.relative_to(ROOT)) != name
    ]


def tests_of(path: Path) -> list[Path]:
    """The test files of a module or folder; `path` is relative to the root of the project.

    For a module that no test knows, those of the modules that import it.
    """
    name, seen = dotted(path), {path}
    if path.parts[0] == "tests":
        return [ROOT / path]
    near = [path]
    while near:
        found = {test for one in near for test in _own_tests(one)}
        if found:
            return sorted(found)
        farther = {user.relative_to(ROOT) for one in near for user in importers(dotted(one))}
        near = sorted(farther - seen)
        seen |= farther
    raise LookupError(f"no test is named after {name}, imports it or its users")


def _own_tests(path: Path) -> set[Path]:
    name = dotted(path)
    word = name.split(".")[2] if name.startswith("raconvert.plugins.") else name.rpartition(".")[2]
    found = set()
    for area in AREAS.values():
        sources = [source.relative_to(ROOT) for source in area.sources()]
        if any(source == path or path in source.parents for source in sources):
            found |= set(area.judges())
    for test in (ROOT / "tests").rglob("test_*.py"):
        named = f"{test.stem}_".startswith(f"test_{word}_")
        if named or any(f"{one}.".startswith(f"{name}.") for one in imported(test)):
            found.add(test)
    if name.startswith("raconvert.plugins"):
        found |= {ROOT / one for one in EVERY_FORMAT}
    return found


def main() -> int:
    """Run pytest on the tests of the paths; returns its exit code, or 2 for a path without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.of", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a module or a folder")
    parser.add_argument("--list", action="store_true", help="print the files, run nothing")
    args, more = parser.parse_known_args()
    try:
        paths = [path.resolve(strict=True).relative_to(ROOT) for path in args.paths]
        found = {str(test.relative_to(ROOT)) for path in paths for test in tests_of(path)}
    except (OSError, ValueError, LookupError) as error:
        parser.error(str(error))
    if args.list:
        sys.stdout.writelines(f"{one}\n" for one in sorted(found))
        return 0
    command = [sys.executable, "-m", "pytest", *sorted(found), *more]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
