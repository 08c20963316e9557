"""The way of the data: what a conversion opens, asks and enters, and how often.

Counted from outside: by the audit hook of the interpreter, by plugins whose functions count their
calls, and by a profiler.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert import registry
from raconvert.cli import main
from raconvert.conversion import isolated
from raconvert.plugin import Plugin

ROOT = Path(__file__).parent.parent
OURS = tuple(f"{ROOT / folder}{os.sep}" for folder in ("raconvert", "plugins"))
COUNTED = ("sniff", "read", "plan", "read_stack")

MOST_OF_A_PAGE = 119  # modules, most of them of the plugins that are asked

_opened: Counter[str] | None = None  # files, while somebody counts; hooks cannot be taken away


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str):
        # Only for reading: what is written has another name until it is whole.
        _opened[os.path.basename(arguments[0])] += 1


sys.addaudithook(_count)


@contextmanager
def opened() -> Iterator[Counter[str]]:
    """The number of times that each file is opened in the block, by its last name."""
    global _opened  # noqa: PLW0603 - the hook is global, too
    _opened = Counter()
    try:
        yield _opened
    finally:
        _opened = None


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often each function of each plugin is called."""
    counted: Counter[tuple[str, str]] = Counter()
    load = registry.load

    def counting(name: str, word: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            counted[name, word] += 1
            return function(*args, **named)

        return call

    def loaded(row: Any) -> Plugin:
        plugin = load(row)
        for word in COUNTED:
            if (function := getattr(plugin, word)) is not None:
                setattr(plugin, word, counting(row.name, word, function))
        return plugin

    monkeypatch.setattr(registry, "load", loaded)
    return counted


def npy(folder: Path, name: str = "a.npy") -> str:
    np.save(folder / name, np.arange(12.0).reshape(3, 4))
    return str(folder / name)


def images(folder: Path, count: int = 5) -> str:
    for number in range(count):
        Image.fromarray(np.full((28, 28), number, np.uint8)).save(folder / f"{number}.png")
    return str(folder / "*.png")


def hdf5(folder: Path) -> str:
    with h5py.File(folder / "scan.h5", "w") as file:
        file["a"] = np.arange(12.0).reshape(3, 4)
        file["g/b"] = np.arange(5, dtype="i4")
    return str(folder / "scan.h5")


# name -> sources, destination, source format, target format, modules of ours that are entered: those
# in which a function is called by `raconvert.convert`, once all that is needed is imported
WAYS = {
    "npy": (npy, "b.ra", "npy", "ra", 21),
    "stack": (images, "m.ra", "png", "ra", 28),
    "hdf5": (hdf5, "scan.mat", "hdf5", "mat", 41),
}


@pytest.mark.parametrize("way", ["npy", "hdf5"])
def test_one_source_is_read_once_and_its_target_planned_once(
    way: str, tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    make, target, form, to, _ = WAYS[way]
    raconvert.convert(make(tmp_path), str(tmp_path / target))

    assert calls[form, "read"] == 1
    assert calls[to, "plan"] == 1
    assert calls[to, "read"] == 1  # what was written is read back
    assert calls[form, "plan"] == 0


def test_a_source_of_bytes_is_opened_once(tmp_path: Path) -> None:
    source = npy(tmp_path)
    with opened() as found:
        raconvert.convert(source, str(tmp_path / "b.ra"))

    # Once as a source; its bytes are copied from a second descriptor, compared with the first.
    assert found["a.npy"] <= 2
    assert found["b.ra"] == 0  # it appears by its rename


def test_a_quick_stack_opens_every_file_once_and_the_first_to_know_what_they_are(
    tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    source = images(tmp_path)
    with opened() as found:
        raconvert.convert(source, str(tmp_path / "m.ra"))

    # Where the compiled loops read them, those do not count.
    assert found["0.png"] <= 3  # its format, the form of all, its pixels
    assert max(found[f"{number}.png"] for number in range(1, 5)) <= 1
    assert calls["png", "read_stack"] == 1
    assert calls["png", "read"] == 0
    assert calls["ra", "plan"] == 1


def test_a_stack_of_any_format_reads_every_file_twice(
    tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    for number in range(4):
        npy(tmp_path, f"{number}.npy")
    raconvert.convert(str(tmp_path / "*.npy"), str(tmp_path / "s.ra"))

    assert calls["npy", "read"] == 2 * 4  # headers first, so that an odd file is found early
    assert calls["ra", "plan"] == 1


@pytest.mark.parametrize("folder", ["out/", "bundle/"])
def test_a_container_that_becomes_a_bundle_is_read_once(
    folder: str, tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    raconvert.convert(hdf5(tmp_path), str(tmp_path / folder) + "/")

    assert calls["hdf5", "read"] == 1
    assert calls["bundle", "plan"] == 1


def test_files_of_one_folder_are_read_once_each(
    tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    for number in range(3):  # of several shapes: files that begin alike are planned once
        np.save(tmp_path / f"{number}.npy", np.zeros(number + 1))
    for _ in range(2):
        raconvert.convert(
            str(tmp_path / "*.npy"), out_dir=str(tmp_path / "out"), to="ra", skip_existing=True
        )

    assert calls["npy", "read"] == 3
    assert calls["ra", "plan"] == 3


@pytest.mark.parametrize("option", ["overwrite", "update"])
@pytest.mark.parametrize("form", ["npy", "png"])
def test_files_that_are_replaced_are_read_once_each(
    form: str, option: str, tmp_path: Path, calls: Counter[tuple[str, str]]
) -> None:
    make = {"npy": npy, "png": lambda folder, name: images(folder, 1)}[form]
    (tmp_path / "in").mkdir()
    for number in range(3):
        make(tmp_path / "in", f"{number}.npy")
    sources = sorted(str(path) for path in (tmp_path / "in").iterdir())
    for source in sources:
        (tmp_path / "out").mkdir(exist_ok=True)
        old = tmp_path / "out" / Path(source).with_suffix(".ra").name
        old.write_bytes(b"old")
        os.utime(old, (0, 0))
    with opened() as found:
        raconvert.convert(
            sources, out_dir=str(tmp_path / "out"), to="ra", stack="each", **{option: True}
        )

    assert calls[form, "read"] == len(sources)
    # As above, and once to see whether native code reads it, which may crash.
    assert max(found[os.path.basename(source)] for source in sources) <= 3
    assert b"old" not in [path.read_bytes() for path in (tmp_path / "out").iterdir()]


def entered(run: Callable[[], object]) -> set[str]:
    """The modules of ours in which a function is called."""
    found: set[str] = set()

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(OURS):
            found.add(os.path.relpath(code.co_filename, ROOT))

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_few_modules_are_entered(way: str, tmp_path: Path) -> None:
    make, target, _, _, most = WAYS[way]
    source = make(tmp_path)
    raconvert.convert(source, str(tmp_path / target))  # all that is needed is imported

    found = entered(lambda: raconvert.convert(source, str(tmp_path / target), overwrite=True))

    assert len(found) <= most, sorted(found)


@pytest.mark.parametrize("way", WAYS)
def test_the_command_line_enters_few_more(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its six modules, that of signals, and `errors`, which shows what is said of the target."""
    make, target, _, _, most = WAYS[way]
    words = [make(tmp_path), "-o", str(tmp_path / target), "--overwrite"]
    assert main(words) == 0  # all that is needed is imported

    found = entered(lambda: main(words))
    own = {path for path in found if path.startswith(os.path.join("raconvert", "cli"))}
    own.add(os.path.join("raconvert", "workers", "interrupts.py"))

    assert len(own) <= 7, sorted(own)
    assert len(found - own) <= most + 1, sorted(found - own)


def test_the_page_enters_few_modules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks every format that is written what would become of the file."""
    monkeypatch.setattr(isolated, "can_fork", bool)  # what a copy would do counts, too
    words = ["info", "--html", hdf5(tmp_path), "-o", str(tmp_path / "x.html"), "--overwrite"]
    assert main(words) == 0  # all that is needed is imported

    found = entered(lambda: main(words))

    assert len(found) <= MOST_OF_A_PAGE, sorted(found)


def test_a_plugin_that_lacks_a_promised_function_is_refused() -> None:
    from types import SimpleNamespace

    from raconvert.errors import Unsupported

    row = next(row for row in registry.ROWS if row.name == "npy")
    whole = registry.load(row)
    parts = {"FORMAT": whole.FORMAT, "sniff": whole.sniff, "read": whole.read, "__name__": "odd"}
    with pytest.raises(Unsupported, match="odd has no function `plan`"):
        Plugin(SimpleNamespace(**parts))
