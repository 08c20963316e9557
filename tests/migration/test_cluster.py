"""`migrate --scheduler`: the same tree through Dask, whose processes die while it runs."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert import __version__
from raconvert.errors import MissingDependency, ReadFailed, TooLarge, UsageError
from raconvert.migration import cluster
from raconvert.migration.batches import Batches
from raconvert.migration.records import DONE, Batch, Job, Unit
from raconvert.migration.report import Event
from tests.chaos import dask as kills
from tests.chaos._dask import Dask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What Dask leaves to the garbage collector must not be told of in other tests: see `collected`.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
COUNT = 60
SMALL = {"batch_seconds": 0.004}  # some ten batches


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect what is left of connections before other tests begin."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three folders with 60 arrays in all, and a damaged file."""
    root = tmp_path_factory.mktemp("tree") / "source"
    for number in range(COUNT):
        folder = root / ("a", "b/c", "d")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"x{number}.npy", np.arange(number + 1.0))
    (root / "bad.npy").write_bytes(b"hello")
    return root


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run in one process leaves."""
    target = tmp_path_factory.mktemp("whole") / "out"
    raconvert.migrate(source, target, to="ra", jobs=1)
    return contents(target)


@pytest.fixture(scope="session")
def distributed(package: Callable[..., None]) -> None:
    """Skip where Dask is not installed."""
    package("distributed", "distributed")


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory, distributed: None) -> Iterator[Dask]:
    """A scheduler and two workers, which any file of the name `poison.npy` kills."""
    folder = tmp_path_factory.mktemp("dask")
    with Dask(folder, RACONVERT_TEST_POISON="poison.npy") as processes:
        yield processes


def contents(root: Path) -> dict[str, bytes]:
    """The files of a tree without the journal; temporary ones are among them."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".raconvert-migration")
    }


def kill_once(dask: Dask, phase: str, file: Path) -> None:
    """Have the worker die that comes there first."""
    dask.tell_workers(
        f"import raconvert.migration.killpoints as k; k._ASKED = {f'{phase}:{file}'!r}"
    )


def command(source: Path, target: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "raconvert", "migrate", str(source), str(target), "--to", "ra",
            "--batch-seconds", "0.004", *more]  # fmt: skip


def test_a_tree_through_dask_is_the_same(
    dask: Dask, source: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    done = subprocess.run(
        command(source, tmp_path / "out", "--scheduler-file", str(dask.file)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert f"{COUNT} converted, 1 failed" in done.stdout
    assert "distributed" not in done.stderr
    assert contents(tmp_path / "out") == whole


@pytest.mark.long
@pytest.mark.parametrize(
    "phase", ["worker-begun:1", "worker-written:2", "worker-synced:3", "worker-begun:5"]
)
def test_a_worker_dies(
    phase: str, dask: Dask, source: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    kill_once(dask, phase, tmp_path / "reached")

    result = raconvert.migrate(source, tmp_path / "out", to="ra", scheduler=dask.address, **SMALL)

    assert (tmp_path / "reached").exists()
    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize("alone", [True, False])
def test_exactly_the_file_is_named_that_kills_its_worker(
    alone: bool, dask: Dask, tmp_path: Path
) -> None:
    (tmp_path / "s").mkdir()
    for name in ["poison"] if alone else [*(f"a{n}" for n in range(9)), "poison", "z"]:
        np.save(tmp_path / "s" / f"{name}.npy", np.arange(3.0))

    result = raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", scheduler=dask.address)

    assert [path for path, _ in result.failed] == ["poison.npy"]
    assert "ended the workers" in str(result.failed[0][1])
    assert result.done == (0 if alone else 10)
    names = {f"{name}.ra" for name in ["z", *(f"a{n}" for n in range(9))]}
    assert set(contents(tmp_path / "out")) - {"SHA256SUMS"} == (set() if alone else names)


@pytest.mark.long
@pytest.mark.parametrize("phase", ["begun:2", "synced:3", "recorded:1"])
def test_the_driver_dies(
    phase: str, dask: Dask, source: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    words = command(source, tmp_path / "out", "--scheduler", dask.address)

    killed = subprocess.run(
        words, env={**os.environ, "RACONVERT_TEST_KILL": phase}, capture_output=True, check=False
    )
    again = subprocess.run(words, capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL
    assert again.returncode == 1, again.stderr
    assert "1 failed" in again.stdout
    assert contents(tmp_path / "out") == whole


def test_a_run_that_was_interrupted_goes_on(
    dask: Dask, source: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    kinds = []

    def interrupt(event: Event) -> None:
        kinds.append(event.kind)
        if kinds.count("file") == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        raconvert.migrate(
            source, tmp_path / "out", to="ra", scheduler=dask.address, progress=interrupt, **SMALL
        )
    result = raconvert.migrate(source, tmp_path / "out", to="ra", scheduler=dask.address)

    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert contents(tmp_path / "out") == whole


@pytest.mark.usefixtures("distributed")
def test_a_destination_that_is_a_url_is_refused(tmp_path: Path) -> None:
    job = Job(str(tmp_path), "s3://bucket/x", "ra", {"max_memory": 1})
    batches = Batches([Unit("x.npy", "x.ra", 1, 1)], 1.0, lambda batch: None)
    with pytest.raises(UsageError, match="all workers see"):
        list(cluster.carried_out(job, batches, "tcp://127.0.0.1:1", None))


@pytest.mark.long
@pytest.mark.usefixtures("distributed")
def test_the_scheduler_dies(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    kinds = []
    with Dask(tmp_path / "dask") as dask:

        def restart(event: Event) -> None:
            kinds.append(event.kind)
            if kinds.count("batch") == 4 and event.kind == "batch":
                dask.kill_scheduler()
                dask.start_scheduler()
                dask.start_worker()

        result = raconvert.migrate(
            source, tmp_path / "out", to="ra", scheduler_file=str(dask.file), progress=restart,
            **SMALL,
        )  # fmt: skip

    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert contents(tmp_path / "out") == whole


def test_all_kills_are_fifty_different_ones() -> None:
    assert len(set(map(str, kills.cases()))) == 50


# As on the command line, but for how much work is worth the start of processes: none.
PROCESSES = """
import sys
from raconvert.cli import main
from raconvert.migration import cluster
if __name__ == "__main__":
    cluster.WORTH = 0
    code = main(sys.argv[1:])
    assert "distributed" in sys.modules
    sys.exit(code)
"""


@pytest.mark.usefixtures("distributed")
def test_processes_of_this_machine(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROCESSES)
    words = command(source, tmp_path / "out", "--scheduler", "local:2")
    words[1:3] = [str(tmp_path / "program.py")]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stderr
    assert "distributed" not in done.stderr
    assert contents(tmp_path / "out") == whole


@pytest.mark.usefixtures("distributed")
def test_little_work_starts_no_processes(
    source: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "local_cluster", lambda _: pytest.fail("started"))
    monkeypatch.setattr(cluster, "WORTH", math.inf)

    raconvert.migrate(source, tmp_path / "out", to="ra", scheduler="local:2")

    assert contents(tmp_path / "out") == whole


def without_times(value: object) -> object:
    """A certificate without what is different in each run: times, and where it was."""
    if isinstance(value, dict):
        mine = {"made", "began", "ended", "when", "target", "python", "libraries"}
        return {name: without_times(one) for name, one in value.items() if name not in mine}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def test_certificate_and_checksums_are_those_of_one_process(
    dask: Dask, source: Path, tmp_path: Path
) -> None:
    kill_once(dask, "worker-written:2", tmp_path / "reached")
    ways: dict[str, dict[str, object]] = {
        "dask": {"scheduler_file": str(dask.file), **SMALL}, "one": {"jobs": 1}
    }  # fmt: skip
    for name, options in ways.items():
        report = tmp_path / f"{name}.json"
        raconvert.migrate(source, tmp_path / name, to="ra", report=report, **options)
    facts = {name: json.loads((tmp_path / f"{name}.json").read_bytes()) for name in ways}
    sums = {name: (tmp_path / name / "SHA256SUMS").read_bytes() for name in ways}

    assert (tmp_path / "reached").exists()
    assert without_times(facts["dask"]) == without_times(facts["one"])
    assert len(facts["dask"]["files"]) == COUNT + 1
    assert all(file.get("sha256") for file in facts["dask"]["files"] if "written" in file)
    assert sums["dask"] == sums["one"]
    assert sums["one"].count(b"\n") >= COUNT


@pytest.mark.usefixtures("distributed")
def test_what_needs_more_than_a_share_of_the_memory_runs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "WORTH", 0)
    (tmp_path / "s").mkdir()
    for name, side in (("a", 16), ("large", 1500), ("b", 16)):
        raconvert.write(tmp_path / "s" / f"{name}.png", np.zeros((side, side), "u1"))
    with pytest.raises(TooLarge):  # the share of one of two
        raconvert.convert(tmp_path / "s/large.png", tmp_path / "x.ra", max_memory=15_000_000)

    result = raconvert.migrate(
        tmp_path / "s", tmp_path / "out", to="ra", scheduler="local:2", max_memory=30_000_000
    )

    assert result.failed == []
    assert raconvert.read(tmp_path / "out/large.ra").shape == (1500, 1500)


# Without Dask -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["", "local", "local:0", "local:x", "local:-1", "localhost:8786", "tcp://", "tcp://x"],
)
def test_what_is_no_address_is_refused(address: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at scheduler"):
        raconvert.migrate(source, tmp_path / "out", to="ra", scheduler=address)
    assert not (tmp_path / "out").exists()


def test_two_engines_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="jobs and scheduler exclude"):
        raconvert.migrate(source, tmp_path / "out", to="ra", jobs=2, scheduler="local:2")


@pytest.mark.usefixtures("distributed")
def test_a_scheduler_that_is_not_there_is_an_error(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "AT_FIRST", 0.5)
    with pytest.raises(ReadFailed, match="scheduler cannot be reached"):
        raconvert.migrate(source, tmp_path / "a", to="ra", scheduler="tcp://127.0.0.1:1")
    for text in ("", "[]", "{}", '{"address": 3}'):
        (tmp_path / "file.json").write_text(text)
        with pytest.raises(ReadFailed, match="scheduler cannot be reached"):
            raconvert.migrate(
                source, tmp_path / "b", to="ra", scheduler_file=str(tmp_path / "file.json")
            )


def test_without_dask_the_line_to_install_it_is_said(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependency) as caught:
        raconvert.migrate(source, tmp_path / "out", to="ra", scheduler="local:2")
    assert caught.value.remedy == "pip install 'raconvert[distributed]'"


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., dict[str, object]]:
    """Call what a worker runs, with a batch of one file."""
    (tmp_path / "s").mkdir()
    (tmp_path / "t").mkdir()
    np.save(tmp_path / "s/x.npy", np.arange(3.0))
    job = Job(str(tmp_path / "s"), str(tmp_path / "t"), "ra", {}, 0.0, "feedbeef")
    Path(cluster.sign_of_driver(job, "run")).touch()

    def run(version: str = __version__, name: str = "run", **changes: object) -> dict[str, object]:
        mine, batch = job._replace(**changes), Batch(7, [Unit("x.npy", "x.ra", 1, 1)])
        if name == "died":
            Path(cluster.sign_of_driver(job, name)).touch()
            Path(cluster.sign_of_batch(job, name, batch)).touch()
        return json.loads(cluster.carry_out(version, json.dumps(mine), json.dumps(batch), name))

    return run


def test_a_worker_says_what_is_not_as_it_is_for_the_driver(
    call: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    assert "the driver has 0.0" in str(call("0.0")["refused"])
    assert "does not see" in str(call(name="other")["refused"])
    assert "does not see" in str(call(source=str(tmp_path / "elsewhere"))["refused"])
    assert "does not see" in str(call(target=str(tmp_path / "s"))["refused"])
    assert not (tmp_path / "t/x.ra").exists()


def test_a_batch_that_was_begun_before_is_not_begun_again(
    call: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    assert call(name="died") == {"lost": True}
    assert not (tmp_path / "t/x.ra").exists()


def test_a_batch_leaves_nothing_but_its_files(
    call: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    (row,) = call()["outcomes"]

    assert row[0] == DONE
    assert sorted(os.listdir(tmp_path / "t")) == [".raconvert-0-feedbeefrun-driver.tmp", "x.ra"]


class Answers:
    """A scheduler whose tasks end as a test says."""

    status = "running"

    def __init__(self, endings: list[str], job: Job) -> None:
        self.endings = endings
        self.job = job
        self.scheduler = type("Scheduler", (), {"ncores": None})

    def sync(self, *_: object, **__: object) -> dict[str, int]:
        return {"tcp://a": 1}

    def submit(self, function: Callable[..., str], *words: str, **_: object) -> object:
        return Ending(self.endings.pop(0), function, words, self.job)

    def close(self, timeout: int) -> None: ...

    def cancel(self, futures: object) -> None: ...


class Ending:
    """A task that ends so."""

    def __init__(
        self, how: str, function: Callable[..., str], words: tuple[str, ...], job: Job
    ) -> None:
        self._how, self._function, self._words, self._job = how, function, words, job
        self.status = "error" if how.startswith("killed") else "finished"
        if how == "killed at it":
            batch = cluster.batch_of(json.loads(words[2]))
            Path(cluster.sign_of_batch(job, words[3], batch)).touch()

    def add_done_callback(self, function: Callable[[object], object]) -> None:
        function(self)

    def done(self) -> bool:
        return True

    def release(self) -> None: ...

    def exception(self) -> BaseException:
        from distributed import KilledWorker

        return KilledWorker("key", None, 0)

    def result(self, **_: object) -> str:
        return self._function(*self._words)


@pytest.mark.usefixtures("distributed")
@pytest.mark.parametrize(
    ("endings", "failed"),
    [
        (["fine"], 0),
        (["killed at it", "fine"], 0),
        (["killed at it", "killed at it"], 1),
        (["killed beside it", "killed beside it", "killed beside it", "fine"], 0),
        (["killed at it", "killed beside it", "fine"], 0),
        (["killed beside it"] * 10, 1),  # somebody is to blame at last
    ],
)
def test_a_file_is_blamed_for_what_dies_of_it_alone(
    endings: list[str], failed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "t").mkdir()
    np.save(tmp_path / "s/x.npy", np.arange(3.0))
    job = Job(str(tmp_path / "s"), str(tmp_path / "t"), "ra", {"max_memory": 1 << 30}, 0.0, "feed")
    client = Answers(list(endings), job)
    monkeypatch.setattr(cluster, "client_of", lambda find, seconds: client)
    batches = Batches([Unit("x.npy", "x.ra", 1, 1)], 1.0, lambda batch: None)

    ((_, (outcome,)),) = cluster.carried_out(job, batches, "tcp://127.0.0.1:1", None)

    assert (outcome.error is not None) == bool(failed)
    assert [name for name in os.listdir(tmp_path / "t") if name.startswith(".")] == []
