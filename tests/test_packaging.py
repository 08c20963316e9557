"""The project as people get it: installed, editable, and built from its own source archive.

`plugins/` beside `raconvert/` is the package `raconvert.plugins`. Each way of installing must have
every module, from any folder, and the source tree must never be mixed with an installed copy.

The installs share the packages of the environment that runs the tests; nothing is downloaded.
"""

from __future__ import annotations

import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from cases import every

import raconvert
from docs.pages import modules as modules_of
from raconvert.catalogue import ROWS

pytestmark = pytest.mark.xdist_group("packaging")  # installs take long

ROOT = Path(__file__).resolve().parents[1]
PROJECT_FOLDERS = ("benchmarks", "docs", "fixtures", "plugins", "raconvert", "tests")
PROJECT_FILES = (
    ".ci/bill.py",
    ".ci/package",
    ".ci/run",
    ".gitattributes",
    ".github/ISSUE_TEMPLATE/new-format.yml",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "setup.py",
)
NOT_SOURCE = shutil.ignore_patterns(
    "__pycache__", "*.py[cod]", "*.so", ".*_cache", ".hypothesis", "*.egg-info"
)

COMPILED = {  # optional: a build without them is whole
    "raconvert/files/_small.abi3.so",
    "raconvert/files/_swap.abi3.so",
    "raconvert/plugins/png/_fast.abi3.so",
}

# Imports every module and says where each lies; run as a separate program in different folders.
PROBE = """\
import importlib, sys
for name in {modules!r}:
    print(importlib.import_module(name).__file__)
"""


class Install(NamedTuple):
    """One way of installing: its interpreter, its script, and where its modules must lie."""

    python: Path
    script: Path
    raconvert: Path
    plugins: Path


# The tree ---------------------------------------------------------------------------------------


def source_files(folder: str, base: Path = ROOT) -> set[str]:
    """Return the paths, relative to `base`, of the files below `folder` that are no by-products."""
    found = set()
    for place, folders, names in os.walk(base / folder):
        folders[:] = [f for f in folders if f not in NOT_SOURCE(place, folders)]
        relative = Path(place).relative_to(base)
        found |= {(relative / n).as_posix() for n in names if n not in NOT_SOURCE(place, names)}
    return found


def packaged_files(base: Path = ROOT) -> set[str]:
    """Return what a wheel must hold, as paths inside it: all but what is compiled."""
    plugins = {f"raconvert/{path}" for path in source_files("plugins", base)}
    files = source_files("raconvert", base) | plugins
    return {path for path in files if not path.endswith(".c")}


def modules() -> list[str]:
    """Return the dotted names of all modules of the tree."""
    found = []
    for path in sorted(p for p in packaged_files() if p.endswith(".py")):
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        if parts[-1] != "__main__":
            found.append(".".join(parts))
    return found


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_pyproject_lists_every_package() -> None:
    listed = pyproject()["tool"]["setuptools"]["packages"]
    packages = {
        path.removesuffix("/__init__.py") for path in packaged_files() if "/__init__" in path
    }

    assert sorted(listed) == listed
    assert set(listed) == {package.replace("/", ".") for package in packages}


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {os.path.dirname(path) for path in packaged_files() if path.endswith(".py")}

    assert {f"{folder}/__init__.py" for folder in folders} <= packaged_files()


@every("path", sorted(p for p in source_files("plugins") if p.endswith(".py")))
def test_plugins_import_the_core_absolutely_and_siblings_relatively(path: str) -> None:
    """Type checkers see plugin files of a checkout as `plugins.*`, installed ones elsewhere."""
    depth = path.count("/")
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= depth, (
                f"{path}:{node.lineno} leaves the plugins by a relative import"
            )
            assert not (node.module or "").startswith(("plugins", "raconvert.plugins")), path
        elif isinstance(node, ast.Import):
            assert not any(a.name.startswith(("plugins", "raconvert.plugins")) for a in node.names)


def test_version_is_a_literal_in_one_place() -> None:
    """The build back end reads it without importing anything, so that a build needs no numpy."""
    tree = ast.parse((ROOT / "raconvert" / "__init__.py").read_text(encoding="utf-8"))
    values = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and getattr(node.targets[0], "id", "") == "__version__"
    ]

    assert len(values) == 1
    assert "version" not in pyproject()["project"]


def imported_at_run_time(node: ast.AST) -> set[str]:
    """Return the top-level names of what a module imports, without `if TYPE_CHECKING` blocks."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return set()
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {node.module.split(".")[0]}
    return set().union(*(imported_at_run_time(child) for child in ast.iter_child_nodes(node)))


def test_dependencies_are_those_that_the_code_imports() -> None:
    """A dependency that nothing imports is a promise that nothing keeps."""
    distribution = {"PIL": "pillow", "yaml": "pyyaml", "google_crc32c": "google-crc32c"}
    imported = set()
    for path in source_files("raconvert") | source_files("plugins"):
        if path.endswith(".py"):
            text = (ROOT / path).read_text(encoding="utf-8")
            imported |= imported_at_run_time(ast.parse(text))
    imported -= {*sys.stdlib_module_names, "raconvert"}
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    listed = list(project["dependencies"])
    for name in extras.keys() - {"all", "docs", "test", "types"}:
        listed += extras[name]
    # Imported by imageio, fsspec and pydicom, which are told to by name.
    backends = {"tifffile", "s3fs", "aiohttp", "pyjpegls", "pylibjpeg", "pylibjpeg-openjpeg"}

    assert {distribution.get(name, name).lower() for name in imported} | backends == {
        requirement.split(">")[0].lower() for requirement in listed
    }


def test_what_a_format_needs_has_the_version_of_the_package() -> None:
    """`FORMAT.needs` is shown where a package is missing: it names no other version."""
    project = pyproject()["project"]
    listed = {
        requirement.partition(">=")[0]: requirement
        for one in (project["dependencies"], *project["optional-dependencies"].values())
        for requirement in one
    }
    needs = {requirement for row in ROWS for _, requirement in row.needs if ">=" in requirement}

    assert {listed[requirement.partition(">=")[0]] for requirement in needs} == needs


def test_conda_recipe_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "docs/packaging/recipe.yaml").read_text(encoding="utf-8"))
    run_, host = recipe["requirements"]["run"], recipe["requirements"]["host"]
    project, build = pyproject()["project"], pyproject()["build-system"]
    needs = {line.lower().replace(">=", " >=") for line in project["dependencies"]}
    (deflate,) = (line for line in needs if line.startswith("deflate"))  # not on conda-forge

    assert {line for line in run_ if not line.startswith("python ")} == needs - {deflate}
    assert {line.replace(">=", " >=") for line in build["requires"]} <= set(host)
    assert recipe["context"]["version"] == raconvert.__version__
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == f"raconvert = {project['scripts']['raconvert']}"
    assert recipe["about"]["license"] == project["license"]


def test_versions_of_python_are_those_that_are_tried() -> None:
    """In the classifiers, by tox, and in the container."""
    project, tool = pyproject()["project"], pyproject()["tool"]
    prefix = "Programming Language :: Python :: 3."
    named = [line.removeprefix(prefix) for line in project["classifiers"] if prefix in line]
    container = (ROOT / "docs/packaging/Containerfile").read_text(encoding="utf-8")
    used = re.findall(r"^FROM python:3\.(\d+)-", container, re.MULTILINE)

    assert [f"3.{minor}" for minor in named] == tool["tox"]["env_list"]
    assert project["requires-python"] == f">=3.{named[0]}"
    assert tool["mypy"]["python_version"] == f"3.{named[0]}"
    assert tool["cibuildwheel"]["build"] == [f"cp3{named[0]}-*"]
    assert len(used) == 2
    assert {*used} <= {*named}


def test_ways_of_installing_are_those_that_ci_tries() -> None:
    """The lines for `uvx` and `pipx` of the pages, with a wheel in the place of the checkout."""
    ci = (ROOT / ".ci" / "package").read_text(encoding="utf-8")
    pages = ("README.md", "docs/index.md", "docs/packaging/README.md")
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    found = {*re.findall(r"\b(uvx --from|pipx run --spec|pipx install) \.", text)}

    assert found == {"uvx --from", "pipx run --spec", "pipx install"}
    for words in found:
        tool, option = words.rsplit(" ", 1)
        assert re.search(rf'{tool}( --quiet)? {option}( --quiet)? "\$wheel"', ci), words


def test_every_extra_is_explained() -> None:
    text = (ROOT / "docs/packaging/README.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", text.split("| Extra |")[1].split("\n\n")[0], re.MULTILINE)
    extras = pyproject()["project"]["optional-dependencies"]
    for_work = {"docs", "test", "types"}

    assert sorted(told) == sorted(extras.keys() - for_work)
    users = set(extras) - {"all", "test", "docs", "types"}
    assert extras["all"] == [f"raconvert[{','.join(sorted(users))}]"]


def test_container_installs_extras_that_are_there() -> None:
    """And nothing in it runs as root."""
    text = (ROOT / "docs/packaging/Containerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r'"/src\[(.+?)\]"', text)

    assert set(extras.split(",")) <= pyproject()["project"]["optional-dependencies"].keys()
    last = text.rpartition("\nFROM ")[2].splitlines()
    assert "USER 65534:65534" in last
    assert 'ENTRYPOINT ["raconvert"]' in last


# The installs -----------------------------------------------------------------------------------


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program without the caller's Python settings; return its output."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**clean, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip_install(
    place: Path, *what: str | Path, cwd: Path, **environment: str
) -> tuple[Path, Path, Path]:
    """Install into a new environment that also sees the packages of this one, except raconvert."""
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    shared = place.parent / "shared"  # at one path, so that mypy knows the packages again
    shared.mkdir(exist_ok=True)
    for folder in (p for p in sys.path if p.endswith(("site-packages", "dist-packages"))):
        for entry in Path(folder).iterdir():
            ours = entry.name.lower().startswith(("raconvert", "__editable__"))
            if not ours and not (shared / entry.name).exists():
                (shared / entry.name).symlink_to(entry)
    (site / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, "install", *options, *what, cwd=cwd, **environment)
    return python, place / "bin" / "raconvert", site


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def tree(space: Path) -> Path:
    """Return a copy of the project, so that nothing is built inside the real one."""
    tree = copy_project(space / "tree")
    for folder in ("raconvert", "plugins"):  # once, not in each of the programs that import all
        compileall.compile_dir(tree / folder, quiet=1)
    return tree


def copy_project(copy: Path) -> Path:
    for folder in PROJECT_FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=NOT_SOURCE)
    for file in PROJECT_FILES:
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def sdist(space: Path, tree: Path) -> Path:
    build = [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", space / "dist"]
    run(*build, cwd=tree)
    (archive,) = (space / "dist").glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(space: Path, sdist: Path) -> Path:
    """Return the wheel that is built from the source archive, as an index would get it."""
    unpacked = space / "unpacked"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", space / "dist"]
    run(*build, cwd=source)
    (built,) = (space / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def regular(space: Path, tree: Path) -> Install:
    python, script, site = pip_install(space / "regular", ".", cwd=tree)
    return Install(python, script, site / "raconvert", site / "raconvert" / "plugins")


@pytest.fixture(scope="module")
def editable(space: Path, tree: Path) -> Install:
    python, script, _ = pip_install(space / "editable", "-e", ".", cwd=tree)
    return Install(python, script, tree / "raconvert", tree / "plugins")


@pytest.fixture(scope="module")
def from_wheel(space: Path, wheel: Path) -> Install:
    python, script, site = pip_install(space / "from-wheel", wheel, cwd=space)
    return Install(python, script, site / "raconvert", site / "raconvert" / "plugins")


@pytest.fixture(params=["regular", "editable", "from_wheel"])
def install(request: pytest.FixtureRequest) -> Install:
    return request.getfixturevalue(request.param)


def check_places(output: str, core: Path, plugins: Path) -> None:
    """Every module is there, core and plugins each from one place."""
    places = [Path(line).resolve() for line in output.splitlines()]

    assert len(places) == len(modules())
    for name, place in zip(modules(), places, strict=True):
        expected = plugins if name.startswith("raconvert.plugins") else core
        assert place.is_relative_to(expected.resolve()), name


@pytest.mark.long
def test_every_module_from_elsewhere(install: Install, tmp_path: Path) -> None:
    output = run(install.python, "-c", PROBE.format(modules=modules()), cwd=tmp_path)

    check_places(output, install.raconvert, install.plugins)


@pytest.mark.long
def test_every_module_from_the_repository_root(install: Install, tree: Path) -> None:
    """There the checkout's `raconvert` hides the installed one; it must bring its own plugins."""
    output = run(install.python, "-c", PROBE.format(modules=modules()), cwd=tree)

    check_places(output, tree / "raconvert", tree / "plugins")


@pytest.mark.long
def test_every_module_under_pytest_in_the_root(install: Install, tree: Path) -> None:
    log = tree.parent / "places"
    probe = tree / "tests" / "test_probe.py"
    probe.write_text(
        f"import importlib\n\n\ndef test_probe() -> None:\n"
        f"    places = [importlib.import_module(n).__file__ for n in {modules()!r}]\n"
        f"    open({str(log)!r}, 'w').write('\\n'.join(places))\n",
        encoding="utf-8",
    )
    command = [install.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default"]

    try:
        output = run(*command, "tests/test_probe.py", cwd=tree)
    finally:
        probe.unlink()

    assert "1 passed" in output
    check_places(log.read_text(encoding="utf-8"), tree / "raconvert", tree / "plugins")


def test_command_line(install: Install, tmp_path: Path) -> None:
    (version,) = (
        line.split('"')[1]
        for line in (ROOT / "raconvert" / "__init__.py").read_text(encoding="utf-8").splitlines()
        if line.startswith("__version__")
    )

    assert run(install.script, "--version", cwd=tmp_path).split() == ["raconvert", version]
    assert run(install.python, "-m", "raconvert", "--version", cwd=tmp_path).split()[-1] == version


def test_conversion_through_the_script(install: Install, tmp_path: Path) -> None:
    """One conversion that takes a plugin of a folder and one of a file, and the core between."""
    numpy_side = "import numpy, PIL.Image; a = numpy.arange(12, dtype='u1').reshape(3, 4); "
    run(install.python, "-c", numpy_side + "PIL.Image.fromarray(a).save('a.png')", cwd=tmp_path)

    run(install.script, "a.png", "-o", "a.ra", cwd=tmp_path)
    run(install.script, "a.ra", "-o", "a.npy", cwd=tmp_path)

    check = numpy_side + "assert (numpy.load('a.npy') == a).all()"
    run(install.python, "-c", check, cwd=tmp_path)


def test_new_plugin_file_is_seen_by_an_editable_install(
    editable: Install, tree: Path, tmp_path: Path
) -> None:
    new = tree / "plugins" / "appeared_later.py"
    new.write_text("HERE = True\n", encoding="utf-8")
    try:
        run(editable.python, "-c", "import raconvert.plugins.appeared_later", cwd=tmp_path)
    finally:
        new.unlink()


@pytest.mark.long
@pytest.mark.parametrize("how", ["regular", "editable"])
def test_type_checkers_pass_the_python_of_the_pages(
    how: str, space: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As printed, and by mypy and pyright as they find the package by themselves."""
    for name in ("mypy", "pyright", "xarray", "nibabel", "SimpleITK"):
        pytest.importorskip(name)
    programs = {"user.py": (ROOT / "tests" / "typed_user.py").read_text(encoding="utf-8")}
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]:
        stem = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())
        programs |= modules_of(page.read_text(encoding="utf-8"), stem)
    assert {"README.py", "docs_guide_python.py", "docs_tutorials_scans_prove.py"} <= set(programs)
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    python = request.getfixturevalue(how).python
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    mypy += ["--config-file", ROOT / "pyproject.toml", "--cache-dir", space / "mypy"]

    run(*mypy, "--python-executable", python, *programs, cwd=tmp_path)
    pyright = [sys.executable, "-m", "pyright"]
    if subprocess.run([*pyright, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright cannot run here: it needs node")
    run(*pyright, "--pythonpath", python, *programs, cwd=tmp_path)


def test_a_folder_called_plugins_does_no_harm(install: Install, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "__init__.py").write_text("raise SystemExit('wrong')", encoding="utf-8")

    output = run(install.python, "-c", PROBE.format(modules=modules()), cwd=tmp_path)

    check_places(output, install.raconvert, install.plugins)


# What is compiled -------------------------------------------------------------------------------

LOOPS = "from raconvert.plugins.png import engine; print(engine.fast and engine.fast.__file__)"
# Two images alike, so that they go through what is compiled or stands in for it.
STACK = (
    "import numpy, PIL.Image; a = numpy.arange(12, dtype='u1').reshape(3, 4); "
    "[PIL.Image.fromarray(a + n).save(f'{n}.png') for n in range(2)]"
)


@pytest.fixture(scope="module")
def compiler(library: Callable[..., tuple[str, list[str]]]) -> None:
    """Skip where Python's extensions cannot be compiled: raconvert works, with loops in Python."""
    library("python")


@pytest.mark.usefixtures("compiler")
def test_every_install_compiles_the_loops(install: Install, tmp_path: Path) -> None:
    place = Path(run(install.python, "-c", LOOPS, cwd=tmp_path).strip())

    assert place.resolve() == (install.plugins / "png" / "_fast.abi3.so").resolve()


@pytest.mark.usefixtures("compiler")
def test_one_wheel_for_every_later_python(wheel: Path) -> None:
    assert wheel.name.split("-")[2:4] == ["cp311", "abi3"]
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) >= COMPILED


@pytest.mark.long
@pytest.mark.parametrize("how", ["regular", "editable"])
def test_install_without_a_compiler(space: Path, tmp_path: Path, how: str) -> None:
    source = copy_project(space / f"no-compiler-{how}")
    what = ["."] if how == "regular" else ["-e", "."]
    place = tmp_path / "environment"

    python, script, _ = pip_install(place, *what, cwd=source, CC="false")

    assert run(python, "-c", LOOPS, cwd=tmp_path) == "None\n"
    run(python, "-c", STACK, cwd=tmp_path)
    run(script, "0.png", "1.png", "-o", "both.npy", cwd=tmp_path)
    check = "import numpy; a = numpy.load('both.npy'); assert (a[0] + 1 == a[1]).all(), a"
    run(python, "-c", check, cwd=tmp_path)


# The archives -----------------------------------------------------------------------------------


def test_wheel_holds_the_tree_and_nothing_else(wheel: Path, tree: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        pages = {name for name in names if ".data/data/share/man/man1/" in name}

    assert {Path(name).name for name in pages} == {p.name for p in (ROOT / "docs/man").iterdir()}
    names -= pages
    assert names - COMPILED == packaged_files(tree)
    assert "raconvert/py.typed" in names


def test_wheel_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
        licences = [n for n in archive.namelist() if n.endswith("/LICENSE")]

    assert "License-Expression: MIT" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "\nDescription-Content-Type: text/markdown\n" in metadata
    assert "\n# raconvert\n" in metadata
    for name, address in pyproject()["project"]["urls"].items():
        assert f"\nProject-URL: {name}, {address}\n" in metadata
    assert len(licences) == 1


def test_sdist_holds_the_whole_project(sdist: Path, tree: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
    names = {member.name.split("/", 1)[1] for member in members}
    made = {name for name in names if ".egg-info/" in name or name in ("PKG-INFO", "setup.cfg")}

    project = set(PROJECT_FILES).union(*(source_files(part, tree) for part in PROJECT_FOLDERS))
    assert names - made == project
