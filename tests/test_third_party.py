"""A format of a third party: installed by pip, found by its entry point, held to the same rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import registry
from raconvert.cli import main
from raconvert.errors import MissingDependency, UnknownFormat, UsageError
from raconvert.inspect.info import why

ROOT = Path(__file__).resolve().parents[1]
TOY = Path(__file__).resolve().parent / "third_party" / "raconvert-toy"
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
VALUES = np.arange(24, dtype="<f8").reshape(2, 3, 4) / 7
TOY_FILE = b"TOY1 f8 2 3 4\n" + VALUES.tobytes()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the toy distribution, and nothing else."""
    if int(version("setuptools").split(".")[0]) < 77 and not IN_CI:
        pytest.skip("setuptools is too old to build a wheel; pip install 'raconvert[test]'")
    source = tmp_path_factory.mktemp("source") / "raconvert-toy"
    shutil.copytree(TOY, source, ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder)]
    done = subprocess.run(
        [*pip, *options, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def python(*words: object, site: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with raconvert and a folder of installed distributions."""
    path = os.pathsep.join([str(ROOT), str(site)])
    command = [sys.executable, *map(str, words)]
    env = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def cli(site: Path, tmp_path: Path) -> Callable[..., str]:
    """Return `cli(*words)`, which runs raconvert in tmp_path and returns its standard output."""

    def run(*words: object) -> str:
        done = python("-m", "raconvert", *words, site=site, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def known(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the installed toy known to this process, and forget it afterwards."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "raconvert_toy", raising=False)
    raconvert.refresh()
    yield
    sys.modules.pop("raconvert_toy", None)
    registry.refresh()


@pytest.fixture
def fresh() -> Iterator[None]:
    """Forget the scanned entry points before and after."""
    raconvert.refresh()
    yield
    raconvert.refresh()


def claim(folder: Path, distribution: str, name: str, module: str, code: str | None) -> None:
    """Put a distribution into a folder that claims a format name, as an installer leaves it."""
    info = folder / f"{distribution}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[raconvert.formats]\n{name} = {module}\n")
    if code is not None:
        (folder / f"{module}.py").write_text(code)


# Installed ---------------------------------------------------------------------------------------


def test_the_toy_is_small() -> None:
    lines = (TOY / "raconvert_toy.py").read_text(encoding="utf-8").splitlines()

    assert len(lines) < 60


def test_formats_lists_it(cli: Callable[..., str]) -> None:
    lines = cli("formats").splitlines()
    (line,) = [line for line in lines if line.startswith("toy ")]

    assert ".toy" in line
    assert "toy: package raconvert_toy" in lines


def test_formats_shows_its_details(cli: Callable[..., str]) -> None:
    assert "other types than uint8, int32 and float64 are refused" in cli("formats", "toy")


@pytest.mark.parametrize("name", ["x.toy", "x.bin", "x"])
def test_detection_by_content(name: str, cli: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(TOY_FILE)

    cli(name, "-o", "x.npy")

    assert np.array_equal(np.load(tmp_path / "x.npy"), VALUES)


def test_destination_by_suffix(cli: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)

    cli("x.npy", "-o", "y.toy")

    assert (tmp_path / "y.toy").read_bytes() == TOY_FILE


def test_destination_by_name(cli: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)

    cli("x.npy", "-o", "y.bin", "--to", "toy")

    assert (tmp_path / "y.bin").read_bytes() == TOY_FILE


def test_source_by_name(cli: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(TOY_FILE)

    cli("x.bin", "--from", "toy", "-o", "x.npy")

    assert np.array_equal(np.load(tmp_path / "x.npy"), VALUES)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("between", ["ra", "npy", "npz"])
def test_conversion_both_ways(between: str, tmp_path: Path) -> None:
    (tmp_path / "x.toy").write_bytes(TOY_FILE)

    raconvert.convert(tmp_path / "x.toy", tmp_path / f"x.{between}")
    raconvert.convert(tmp_path / f"x.{between}", tmp_path / "y.toy")

    assert (tmp_path / "y.toy").read_bytes() == TOY_FILE


@pytest.mark.usefixtures("known")
def test_column_major_sources_are_transposed_for_it(tmp_path: Path) -> None:
    """TOY is row-major: element [i, j, k] keeps its index, so the bytes move."""
    np.save(tmp_path / "x.npy", np.asfortranarray(VALUES))

    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.toy")

    assert (tmp_path / "x.toy").read_bytes() == TOY_FILE


@pytest.mark.usefixtures("known")
def test_read_write_and_open(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.toy", VALUES)

    assert np.array_equal(raconvert.read(tmp_path / "x.toy"), VALUES)
    with raconvert.open(tmp_path / "x.toy") as array:
        assert np.array_equal(array[1, 2], VALUES[1, 2])


@pytest.mark.usefixtures("known")
def test_damaged_file_is_known_by_its_suffix(tmp_path: Path) -> None:
    """As for a built-in format: the format named by the suffix says what is wrong."""
    (tmp_path / "x.toy").write_bytes(b"NOT" + TOY_FILE)

    with pytest.raises(raconvert.RaconvertError, match="has no TOY header"):
        raconvert.read(tmp_path / "x.toy")


def test_conformance_kit_passes(site: Path, tmp_path: Path) -> None:
    code = "import raconvert_toy as toy\nfrom raconvert.testing import CHECKS\n"
    code += "assert CHECKS\nfor check in CHECKS: check(toy)"

    done = python("-c", code, site=site, cwd=tmp_path)

    assert done.returncode == 0, done.stderr


def test_newly_installed_is_found_after_refresh(
    site: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    with pytest.raises(UnknownFormat):
        registry.by_name("toy")
    monkeypatch.syspath_prepend(site)
    with pytest.raises(UnknownFormat):
        registry.by_name("toy")
    raconvert.refresh()

    assert registry.by_name("toy").module == "raconvert_toy"


def test_not_installed_is_an_unknown_name(fresh: None) -> None:
    with pytest.raises(UnknownFormat, match="no format is called 'toy'"):
        registry.by_name("toy")


# Claims ------------------------------------------------------------------------------------------


def test_two_plugins_of_one_name_are_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    code = (TOY / "raconvert_toy.py").read_text(encoding="utf-8")
    claim(tmp_path, "one", "twice", "first_module", code)
    claim(tmp_path, "two", "twice", "second_module", code)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(UsageError, match="'twice': first_module and second_module"):
        registry.by_name("twice")
    (row,) = [row for row in raconvert.formats() if row["name"] == "twice"]
    assert "first_module and second_module" in row["broken"]


def test_two_plugins_that_are_sure_of_one_file(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    code = "from raconvert_toy import *\nFORMAT = FORMAT._replace(name='toy_too')\n"
    claim(tmp_path, "another", "toy_too", "another_toy", code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(site)
    (tmp_path / "x.bin").write_bytes(TOY_FILE)

    with pytest.raises(UnknownFormat, match="toy and toy_too claim this file with equal right"):
        raconvert.read(tmp_path / "x.bin")
    assert np.array_equal(raconvert.read(tmp_path / "x.bin", from_="toy_too"), VALUES)
    for module in ("another_toy", "raconvert_toy"):
        sys.modules.pop(module, None)


def test_built_in_wins_over_a_plugin_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    claim(tmp_path, "usurper", "npy", "usurper", "raise SystemExit('was imported')")
    monkeypatch.syspath_prepend(tmp_path)

    (row,) = [row for row in raconvert.formats() if row["name"] == "npy"]

    assert row["built_in"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "broken_module"),
        ("import no_such_package", "no_such_package"),
        ("from raconvert_toy import *\nFORMAT = FORMAT._replace(api=3)", "version 3"),
        ("sniff = None", "broken_module"),
        ("FORMAT = 1", "broken_module"),
        ("1 / 0", "broken_module"),
        ("raise SystemExit('gone')", "broken_module"),
    ],
    ids=[
        "no_module", "missing_package", "another_version", "no_format", "odd_format", "fails",
        "ends",
    ],
)  # fmt: skip
def test_a_broken_plugin_is_named_and_stops_no_other(
    code: str | None,
    message: str,
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fresh: None,
) -> None:
    for module in ("broken_module", "raconvert_toy"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    claim(tmp_path, "broken", "broken", "broken_module", code)
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)

    rows = {row["name"]: row for row in raconvert.formats()}
    assert message in rows["broken"]["broken"]
    assert (rows["broken"]["reads"], rows["broken"]["writes"]) == (False, False)
    assert rows["toy"]["broken"] is None
    assert main(["formats"]) == 0
    assert "broken: " in capsys.readouterr().out

    with pytest.raises(raconvert.RaconvertError, match=message) as caught:
        registry.by_name("broken")
    assert not isinstance(caught.value, UnknownFormat)
    with pytest.raises(UnknownFormat, match=message):
        registry.by_name("tyo")
    assert registry.by_name("toy").name == "toy"

    (tmp_path / "x.toy").write_bytes(TOY_FILE)
    assert np.array_equal(raconvert.read(tmp_path / "x.toy"), VALUES)
    (tmp_path / "x").write_bytes(b"of no format")
    with pytest.raises(UnknownFormat, match=rf"broken: broken \(.*{message}"):
        raconvert.read(tmp_path / "x")
    verdicts = {c["name"]: c["verdict"] for c in why(str(tmp_path / "x"))["candidates"]}
    assert verdicts["broken"] == "broken"


def test_a_broken_plugin_is_named_where_its_suffix_is_written_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fresh: None,
) -> None:
    claim(tmp_path, "xyzr", "xyzr", "broken_xyzr", "1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    np.save(tmp_path / "x.npy", VALUES)

    for name in ("x.xyzr", "x.onnx", "x.xyzr.gz"):  # of no format, a foreign one, a wrapped one
        assert main([str(tmp_path / "x.npy"), "-o", str(tmp_path / name)]) == 3
        line = "1 installed plugin cannot be loaded: xyzr (see `raconvert formats`)"
        assert line in capsys.readouterr().err


def test_no_plugin_is_called_broken_where_none_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fresh: None
) -> None:
    np.save(tmp_path / "x.npy", VALUES)

    assert main([str(tmp_path / "x.npy"), "-o", str(tmp_path / "x.xyzr")]) == 3
    assert "cannot be loaded" not in capsys.readouterr().err


def test_an_entry_point_of_another_name_than_the_format_is_broken(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    claim(tmp_path, "alias", "toys", "toys_module", "from raconvert_toy import *")
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toys_module", raising=False)

    rows = {row["name"]: row for row in raconvert.formats()}
    assert "must be called 'toy'" in rows["toys"]["broken"]
    assert rows["toy"]["broken"] is None
    with pytest.raises(raconvert.RaconvertError, match="is of format 'toy', not 'toys'"):
        registry.by_name("toys")
    for module in ("toys_module", "raconvert_toy"):
        sys.modules.pop(module, None)


def test_plugin_of_a_missing_package_stays_listed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    code = "from raconvert_toy import *\n"
    code += "FORMAT = FORMAT._replace(name='needy', needs=(('no_such', 'no-such>=2'),))\n"
    claim(tmp_path, "needy", "needy", "needy_module", code)
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)

    (row,) = [row for row in raconvert.formats() if row["name"] == "needy"]

    assert row["missing"] == ["no-such>=2"]
    with pytest.raises(MissingDependency, match="pip install no-such>=2"):
        raconvert.write(tmp_path / "x", VALUES, to="needy")
    for module in ("needy_module", "raconvert_toy"):
        sys.modules.pop(module, None)


# No scan where none is needed --------------------------------------------------------------------

NO_SCAN = """
import sys
import importlib.metadata
def scan(**_):
    raise SystemExit("entry points were scanned")
importlib.metadata.entry_points = scan
import numpy as np, raconvert
np.save("x.npy", np.arange(6, dtype="u1").reshape(2, 3))
for source, target in zip("npy ra npz png".split(), "ra npz png npy".split()):
    raconvert.convert(f"x.{source}", f"x.{target}", overwrite=True, sync=False)
    raconvert.info(f"x.{source}")
print([name for name in sys.modules if "toy" in name])
"""


def test_built_in_conversions_scan_no_entry_points(site: Path, tmp_path: Path) -> None:
    done = python("-c", NO_SCAN, site=site, cwd=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_built_in_conversions_do_not_even_load_the_scanner(site: Path, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"")
    np.save(tmp_path / "x.npy", VALUES)
    code = "import sys, raconvert; raconvert.convert('x.npy', 'x.ra')\n"
    code += "print('importlib.metadata' in sys.modules, 'raconvert_toy' in sys.modules)"

    done = python("-S", "-c", code, site=site, cwd=tmp_path)

    assert done.stdout == "False False\n", done.stderr
