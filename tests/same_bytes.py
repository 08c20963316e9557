"""Every format written, from many kinds of data: a digest of each file, as JSON.

Run by `test_same_bytes.py` in processes of its own, in surroundings that differ.

    python tests/same_bytes.py FOLDER [FORMAT ...]
    python tests/same_bytes.py --record  # the libraries that were used, for docs/formats.md
"""

from __future__ import annotations

import hashlib
import json
import locale
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import raconvert  # noqa: E402 - found by the line above
from raconvert.api import array_of  # noqa: E402
from raconvert.arrays.bundle import Bundle  # noqa: E402
from raconvert.arrays.metadata import Axis, Metadata  # noqa: E402
from raconvert.catalogue import ROWS, Row  # noqa: E402
from raconvert.inspect.info import format_details  # noqa: E402
from tests.bundles import save  # noqa: E402

RECORD = ROOT / "docs" / "formats" / "same-bytes.json"
ROW = np.dtype([("name", "S5"), ("value", "<f8"), ("count", "<i4")])
LARGE = 3 << 18  # elements: several blocks, and work for several threads
# Values of options that are any text; of the others each choice is tried.
TEXTS = {
    "compress": ("gzip:6", "zstd", "blosc:lz4:5"), "chunks": ("2,2",), "shards": ("4,4",),
    "levels": ("2",), "delimiter": (";",), "wide": ("",), "quality": ("60",), "level": ("0", "9"),
    "samples": ("2",), "unlimited": ("x",), "duration": ("70",),
}  # fmt: skip
# What is written with options, too; the large array with those of compression only
WITH_OPTIONS = ("grey", "volume", "labelled", "numbers", "mixed")
COMPRESSION = ("compress", "compression", "level", "encoding", "gzip")


def _pillow() -> str:
    from PIL import features

    codecs = (f"{word} {features.version(name)}" for name, word in PICTURES.items())
    return f"Pillow {version('pillow')} ({', '.join(codecs)})"


def _h5py() -> str:
    import h5py

    return f"h5py {version('h5py')} (HDF5 {h5py.version.hdf5_version})"


def _zlib() -> str:
    import zlib

    return f"zlib {zlib.ZLIB_RUNTIME_VERSION}"


PICTURES = {"libjpeg_turbo": "libjpeg-turbo", "webp": "libwebp"}
LIBRARIES: dict[str, Callable[[], str]] = {  # module -> the library with its version
    "PIL.Image": _pillow,
    "h5py": _h5py,
    "numcodecs": lambda: f"numcodecs {version('numcodecs')}",
    "tifffile": lambda: f"tifffile {version('tifffile')}",
    "pyarrow": lambda: f"pyarrow {version('pyarrow')}",
    "lz4": lambda: f"lz4 {version('lz4')}",
    "zlib": _zlib,
}


def watched() -> list[str]:
    """A list that is not empty any more when something was deflated."""
    import zlib

    calls: list[str] = []

    def watch(name: str) -> None:
        real = getattr(zlib, name)

        def called(*given: Any, **named: Any) -> Any:
            calls.append(name)
            return real(*given, **named)

        setattr(zlib, name, called)

    watch("compress")
    watch("compressobj")
    return calls


def about() -> Metadata:
    """Everything that is said of an array, in a dictionary with no order of its own."""
    axes = (
        Axis("region", labels=("north", "süd", "east")),
        Axis("time", units="day", spacing=0.5, origin=3.0),
    )
    said = {word: f"{word} of it" for word in ("alpha", "beta", "gamma", "delta")}
    return Metadata(axes=axes, description="Lines of sight", units="kelvin", attributes=said)


def kinds() -> dict[str, dict[str, Any]]:
    """Name -> arrays by their names."""
    rng = np.random.default_rng(7)
    numbers = {
        "bytes": np.arange(12, dtype="u1").reshape(3, 4), "whole": np.arange(5, dtype="<i4"),
        "double": np.linspace(0, 1, 24).reshape(2, 3, 4), "flags": np.arange(4) % 2 == 0,
        "complex": np.arange(4) * (1 + 2j),
    }  # fmt: skip
    texts = np.array([["a", "grün"], ["", "日本"]])
    records = np.zeros(4, ROW)
    records["name"], records["value"], records["count"] = [b"x", b"yy", b"", b"zzzzz"], 0.1, 7
    images = rng.integers(0, 255, (3, 3, 32, 32), "u1")
    return {
        "grey": {"x": images[0, 0]},
        "colours": {"x": np.ascontiguousarray(images[0].transpose(1, 2, 0))},
        "stack": {"x": images[:, 0]},
        "volume": {"x": rng.random((4, 5, 6), "f4")},
        "bfloat16": {"x": np.arange(6).astype(ml_dtypes.bfloat16)},
        "labelled": {"x": np.arange(6.0).reshape(3, 2)},
        "text": {"x": texts},
        "records": {"x": records},
        "numbers": numbers,
        "mixed": {"numbers/f4": np.ones((2, 2), "f4"), "texts": texts[0], "rows": records},
        "floats": {"A": np.arange(6, dtype="f4"), "B": np.ones((2, 3), "f4")},
        "cifar": {"labels": np.arange(3, dtype="u1"), "images": images},
        "pairs": {"x": (np.arange(6) * (1 + 2j)).astype("c8").reshape(2, 3)},
        "columns": {"n": np.arange(3), "v": np.linspace(0, 1, 3), "t": texts.ravel()[:3]},
        "large": {"x": np.arange(LARGE, dtype="<i4").reshape(-1, 256) // 5},
    }


def sources(folder: Path) -> dict[str, Path]:
    """Write each kind as a bundle, with the time of now."""
    made = {}
    for kind, arrays in kinds().items():
        listed = [array_of(values, name) for name, values in arrays.items()]
        if kind == "labelled":
            listed = [array.replace(meta=about()) for array in listed]
        made[kind] = folder / kind / "here"
        made[kind].parent.mkdir(parents=True)
        save(made[kind], Bundle(listed), to="bundle")
    return made


def become(user: int, files: Iterable[Path]) -> None:
    """Be another user, as far as a process sees it, who owns the files if that is allowed."""
    for name in ("getuid", "geteuid", "getgid", "getegid"):
        setattr(os, name, lambda: user)
    for file in files:
        with suppress(OSError):
            os.chown(file, user, user)


def choices(name: str) -> Iterator[dict[str, str]]:
    """Yield the options to write a format with: none, then each value of each option."""
    yield {}
    for option in format_details(name)["write_options"]:
        listed = option["choices"]
        values = listed if isinstance(listed, list) else TEXTS[option["name"]]
        yield from ({option["name"]: str(value)} for value in values if value != "")


def digests(path: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder."""
    files = sorted(one for one in path.rglob("*") if one.is_file())
    return {
        one.relative_to(path).as_posix(): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in files
    }


def written(
    place: Path, source: Path, row: Row, options: Mapping[str, str], suffix: str = ""
) -> Any:
    """Write one format; the digests of what is there, or the kind of the refusal."""
    place.mkdir()
    target = place / f"here{suffix or (row.suffixes[0] if row.suffixes else '')}"
    try:
        raconvert.convert(
            source, target, to=row.name, out_opts=dict(options), allow=["all"], sync=False
        )
    except raconvert.RaconvertError as error:
        return type(error).__name__
    if row.many:  # an array is added to what is there
        with suppress(raconvert.RaconvertError):
            added = place.parent / "added.npy"
            np.save(added, np.arange(6, dtype="f4").reshape(2, 3))
            raconvert.convert(added, f"{target}#ADDED", allow=["all"], sync=False)
    return digests(place)


def main(folder: str, *names: str) -> None:
    """Write all, and print the digests."""
    with suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, "")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    deflated = watched()
    found: dict[str, Any] = {}
    made = sources(place / "sources")
    if user := int(os.environ.get("OTHER_USER", "0")):
        become(user, (place / "sources").rglob("*"))
    for row in ROWS:
        if not row.writes or (names and row.name not in names):
            continue
        for number, options in enumerate(choices(row.name)):
            for kind, source in made.items():
                if options and kind not in (
                    WITH_OPTIONS + ("large",) * bool({*options} & {*COMPRESSION})
                ):
                    continue
                case = " ".join([row.name, kind, *(f"{k}={v}" for k, v in options.items())])
                here = place / f"{row.name}-{kind}-{number}"
                found[case] = written(here, source, row, options)
        for number, suffix in enumerate(row.suffixes[1:]):  # .nii.gz, .nhdr with a file beside it
            for kind in ("stack", "volume", "cifar"):
                here = place / f"{row.name}-{kind}-as-{number}"
                case = f"{row.name} {kind} {suffix}"
                found[case] = written(here, made[kind], row, {}, suffix)
    used = sorted(({*sys.modules} & {*LIBRARIES} - {"zlib"}) | ({"zlib"} if deflated else set()))
    day = time.strftime("%Y-%m-%d")
    sys.stdout.write(json.dumps({"day": day, "used": used, "files": found}))


def record() -> None:
    """Keep the versions of the libraries that write bytes here, each with its formats."""
    users: dict[str, list[str]] = {}
    for row in ROWS:
        if row.writes:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, folder, row.name]
                found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            for name in found["used"]:
                users.setdefault(name, []).append(row.name)
    rows = [[LIBRARIES[name](), formats] for name, formats in users.items()]
    text = json.dumps(sorted(rows, key=lambda one: str(one).lower()), indent=1)
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    record() if sys.argv[1:] == ["--record"] else main(*sys.argv[1:])
