"""Fixtures that all tests share: the corpus of real files, and real clients of the formats.

What is missing is skipped with a reason that `pytest -ra` prints in one line: the functions skip
when they are called, so that all such skips have one place. Where CI is set it is a failure
instead, so that a green run there means that everything ran. needs.py says how each program and
library from outside is probed; a test that starts one without a fixture of this file fails.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import attempts
import browsing
import cases
import cpu_times
import needs
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attempts import Answer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MEMORY = Path("/dev/shm")  # what is written there takes memory
ROOM = 8 << 30  # bytes that must be free there
OUTSIDE = "outside"  # the marker of tests that need a program or a C library
RUNNING: list[pytest.Item] = []  # the test of now, if one runs
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# No deadline: the machines are shared. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if IN_CI else "local")

# A copy of this process that a test lets crash says nothing of where it was.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=faulthandler.disable)


def _missing(reason: str, hint: str) -> NoReturn:
    if IN_CI:
        pytest.fail(f"{reason}; {hint}", pytrace=False)
    pytest.skip(f"{reason}; {hint}")


@pytest.fixture(scope="session")
def corpus() -> Callable[..., Path]:
    """Return `corpus(*parts)`, a path inside the corpus of real and hostile files.

    The corpus is at RACONVERT_CORPUS, else at ../shared/corpus beside the repository. Setting the
    variable to nothing says that there is none, which is no failure in CI either.
    """
    named = os.environ.get("RACONVERT_CORPUS")
    root = Path(named) if named else ROOT.parent / "shared" / "corpus"

    def find(*parts: str) -> Path:
        if named == "":
            pytest.skip("no corpus: RACONVERT_CORPUS is empty")
        if not root.is_dir():
            _missing(f"no corpus at {root}", "set RACONVERT_CORPUS to its folder")
        return root.joinpath(*parts)

    return find


@pytest.fixture(scope="session")
def tool() -> Callable[..., str]:
    """Return `tool(name, ...)`, the path of the first of these programs that works here."""

    def find(*names: str) -> str:
        for name in names:
            if path := needs.program(name):
                return path
        _missing(f"no {' or '.join(names)} that works here", "install it to run this test")

    return find


@pytest.fixture(scope="session")
def library(tool: Callable[..., str]) -> Callable[..., tuple[str, list[str]]]:
    """Return `library(name)`: the compiler for a C library of needs.py, and the flags to link it."""

    def find(name: str) -> tuple[str, list[str]]:
        one = needs.LIBRARIES[name]
        if compiler := needs.library(name):
            return compiler, list(one.flags)
        reason = f"no program that includes <{one.header}> can be compiled, linked and run here"
        _missing(reason, f"install {one.package} to run this test")

    return find


def _other_python(name: str, why: str) -> Any:
    """Make the fixture of a Python that has a package which cannot be in ours, as `why` says."""

    def fixture(tool: Callable[..., str]) -> str:
        path = needs.python_with(name)
        if path is None:
            other = needs.OTHER_PYTHONS[name]
            folder = f".{name}"
            _missing(
                f"no Python with {other.module} ({other.variable})",
                f"make one: python -m venv {folder} && {folder}/bin/pip install {other.install}",
            )
        return path

    fixture.__doc__ = f"Return the Python that has {name}, {why}."
    return pytest.fixture(scope="session", name=f"{name}_python")(fixture)


scidbpy_python = _other_python("scidbpy", "which needs an older numpy")
anndata_python = _other_python("anndata", "which needs an older pandas")
napari_python = _other_python("napari", "which is a plugin of pytest, too")


@pytest.fixture(scope="session")
def mounting(tool: Callable[..., str]) -> list[str]:
    """Return the words that start a command as root in a mount namespace of its own.

    A machine may forbid that, which is no failure in CI.
    """
    words = needs.mounting()
    if words is None:
        pytest.skip("no small file system can be mounted here: unshare and mount are not allowed")
    return list(words)


@pytest.fixture(scope="session")
def mounting_here(tool: Callable[..., str]) -> None:
    """Skip where file systems cannot be mounted for all to see; no failure in CI either."""
    if not needs.mounting_here():
        pytest.skip("this machine lets nobody mount")


@pytest.fixture(scope="session")
def package() -> Callable[..., None]:
    """Return `package(name, extra)`: the test goes on if this optional package can be imported."""

    def find(name: str, extra: str) -> None:
        try:
            importlib.import_module(name)
        except ImportError:
            _missing(f"no package {name}", f"pip install 'raconvert[{extra}]' to run this test")

    return find


@pytest.fixture(scope="module")
def browser(tool: Callable[..., str], package: Callable[..., None]) -> Iterator[Any]:
    """The Chromium of the machine, as playwright's browser."""
    path = tool("chromium", "chromium-browser")
    package("playwright", "test")
    with browsing.chromium(path) as browser:
        yield browser


@pytest.fixture(scope="session")
def r(tool: Callable[..., str]) -> Callable[..., str]:
    """Return `r(code, cwd=None)`, which runs code in R and returns its output."""

    def run(code: str, cwd: Path | str | None = None) -> str:
        command = [tool("Rscript"), "--vanilla", "-"]
        done = subprocess.run(
            command, cwd=cwd, input=code, capture_output=True, text=True, check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode == 0, f"R failed: {done.stderr}\n{code}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def octave(tool: Callable[..., str]) -> Callable[..., str]:
    """Return `octave(code, cwd=None)`, which runs code in GNU Octave and returns its output.

    The functions in tests/octave (`raread`, `rawrite`) are on its path.
    """

    def run(code: str, cwd: Path | str | None = None) -> str:
        command = [
            tool("octave-cli", "octave"),
            "--no-gui",
            "--no-init-file",
            "--no-history",
            "--quiet",
        ]
        command += ["--path", str(HERE / "octave"), "--eval", code]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"octave failed: {done.stderr}\n{code}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def attempt() -> Iterator[Callable[..., Answer]]:
    """Give `attempt(source, target, **options)`: a conversion in a process of its own."""
    with attempts.server() as run:
        yield run


@pytest.fixture
def refused(attempt: Callable[..., Answer], tmp_path: Path) -> Callable[..., str]:
    """Return a function that asserts that a file is refused as it should be."""
    out = tmp_path / "out"
    out.mkdir()

    def check(source: object, **options: object) -> str:
        found = attempt(source, out / "x.ra", **options)
        assert found.kind in attempts.REFUSALS, f"{found.kind}: {found.text}"
        named = source[-1] if isinstance(source, list) else source
        assert os.path.basename(str(named)) in found.text
        assert len(found.text) < 2000
        assert found.text.split(":", 1)[1].strip(), "no cause"
        assert found.peak < attempts.PEAK
        assert os.listdir(out) == []
        return found.text

    return check


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder on a disk, where those of pytest are in memory."""
    if not tmp_path_factory.getbasetemp().is_relative_to(MEMORY):
        yield tmp_path_factory.mktemp("disk")
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return the folder of pytest; for tests marked `disk`, one on a disk."""
    if not request.node.get_closest_marker("disk"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=request.getfixturevalue("disk")) as folder:
        yield Path(folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--case``, which `cases.every` looks at, and ``--cpu-times`` of cpu_times.py."""
    parser.addoption("--case", metavar="TEXT", help="run those cases whose name contains TEXT")
    parser.addoption("--cpu-times", metavar="FILE", help="write processor seconds of the tests")


def pytest_configure(config: pytest.Config) -> None:
    """Let programs start as a user starts them, wherever the tests were started from.

    A shell ignores Ctrl-C for what it runs in the background, and containers often set Python's
    output to be unbuffered and its compiled modules not to be kept: thousands of processes would
    compile them again. readline, which pytest imports, gives children the size of a terminal.
    """
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "LINES", "COLUMNS"):
        os.unsetenv(name)  # readline's are not in `os.environ`
        os.environ.pop(name, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _put_files_into_memory(config)
    if config.option.cpu_times:
        config.pluginmanager.register(cpu_times.Times(config.option.cpu_times))


def _put_files_into_memory(config: pytest.Config) -> None:
    """Put the files of tests into memory where there is room, unless a folder is given.

    Most tests write some small files; on a disk, a third of the time goes there.
    """
    if config.option.basetemp or hasattr(config, "workerinput") or not MEMORY.is_dir():
        return
    if shutil.disk_usage(MEMORY).free >= ROOM:
        config.option.basetemp = tempfile.mkdtemp(prefix="raconvert-tests-", dir=MEMORY)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note which test runs, for `_checked`."""
    RUNNING[:] = [item]


_start = subprocess.Popen.__init__


def _checked(self: subprocess.Popen[bytes], args: object, *rest: object, **options: object) -> None:
    """Start a process, but none of a program from outside for a test that asks no fixture for it."""
    words = args if isinstance(args, (list, tuple)) else [args]
    executable = "sh" if options.get("shell") else os.fsdecode(words[0])
    outside = RUNNING and RUNNING[0].get_closest_marker(OUTSIDE)
    path = dict(options.get("env") or os.environ).get("PATH")  # type: ignore[call-overload]
    assert not RUNNING or outside or needs.is_everywhere(executable, path), (
        f"{executable} is not on every system: the test must ask for it with the fixture `tool`"
    )
    _start(self, args, *rest, **options)  # type: ignore[arg-type]


subprocess.Popen.__init__ = _checked  # type: ignore[method-assign, assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need something from outside; leave the long ones to CI.

    The mark comes from the fixtures that a test uses, itself or through others. Tests that share
    what takes long to make (`xdist_group`) come first: there one worker gets many in a row, makes
    it once, and is not the last one to end.
    """
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    for item in items:
        if "tool" in getattr(item, "fixturenames", ()):
            item.add_marker(OUTSIDE)
    if IN_CI or os.environ.get("RACONVERT_LONG"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: RACONVERT_LONG=1 runs it, and CI does"))


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the 20,000 tests themselves, which stay until the end."""
    gc.collect()
    gc.freeze()
    gc.collect()  # how many objects there are says how often it looks at all of them


@pytest.fixture(autouse=True)
def _no_call_before() -> None:
    """What `convert` has learned in another test is forgotten."""
    cases.forget_calls()
