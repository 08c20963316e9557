"""The installed package at work, in seconds: `python tests/smoke.py [--compiled]`.

For wheels, and for versions of Python on which the whole suite does not run: every module is there
and none of a checkout, every format that writes takes an array and gives it back, the command line
runs, and numpy, h5py and Pillow read what they know. Needs nothing but what raconvert needs.
With `--compiled` the optional compiled code must be there.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path = [p for p in sys.path if not p or Path(p).resolve() not in (CHECKOUT, CHECKOUT / "tests")]

import h5py  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

import raconvert  # noqa: E402
from raconvert.catalogue import ROWS  # noqa: E402
from raconvert.errors import MissingDependency, WouldLose  # noqa: E402

VALUES = np.arange(28 * 20, dtype=np.uint8).reshape(28, 20)
LEFT_OUT = {"jpeg", "cifar"}  # one is lossy, one holds labelled images and nothing else
COMPILED = ["raconvert.files._swap", "raconvert.plugins.png._fast"]
COMPILED += ["raconvert.files._small"] * (sys.platform == "linux")
NEEDED = {
    {"pillow": "PIL", "pyyaml": "yaml"}.get(name, name)
    for line in metadata.requires("raconvert") or ()
    if "extra ==" not in line
    for name in [re.split(r"[^\w-]", line.lower())[0]]
}
# Where a format has no place for this array: what it has one for.
FITTING = {
    "cfl": VALUES.astype(np.complex64),
    "csv": VALUES.astype(np.int64),  # the text of integers, which has no width
    "har": VALUES.astype(np.float32),
    "mrc": VALUES.astype(np.uint16),
    "webp": np.dstack([VALUES, VALUES // 2, VALUES // 3]),
}


def check(condition: object, what: str) -> None:
    """End with an error unless the condition holds."""
    if not condition:
        raise SystemExit(f"smoke: {what}")


def modules() -> int:
    """Import every module; return how many there are."""
    place = Path(raconvert.__file__).resolve().parent
    check(not place.is_relative_to(CHECKOUT / "raconvert"), f"{place} is the checkout")
    found = [found.name for found in pkgutil.walk_packages([str(place)], "raconvert.")]
    for name in found:
        try:
            if not name.endswith("__main__"):
                importlib.import_module(name)
        except (ModuleNotFoundError, MissingDependency) as error:
            cause = error.__cause__ if isinstance(error, MissingDependency) else error
            missing = (getattr(cause, "name", None) or "").partition(".")[0]
            check(missing not in {"", "raconvert", *NEEDED}, f"{name}: {error}")
    return len(found)


def formats() -> int:
    """Write and read back an array in every format that writes; return how many did."""
    done = 0
    for row in ROWS:
        extra = any(module not in NEEDED and not is_there(module) for module, _ in row.needs)
        if not row.writes or row.name in LEFT_OUT or extra:
            continue
        values = FITTING.get(row.name, VALUES)
        np.save("in.npy", values)
        target = f"out-{row.name}{row.suffixes[0] if row.suffixes else ''}"
        raconvert.convert("in.npy", target, to=row.name)
        raconvert.convert(target, f"{row.name}.npy")
        back = np.load(f"{row.name}.npy")
        same = back.dtype == values.dtype and np.array_equal(back, values)
        check(same, f"{row.name}: {values.dtype} came back as {back.dtype} {back.shape}")
        done += 1
    with h5py.File("out-hdf5.h5") as file:
        check((next(iter(file.values()))[:] == VALUES).all(), "h5py reads other values")
    with Image.open("out-png.png") as image:
        check((np.asarray(image) == VALUES).all(), "Pillow reads other values")
    return done


def command_line() -> str:
    """Run the command of this environment as people do; return its version."""
    name = "raconvert.exe" if os.name == "nt" else "raconvert"
    script = Path(sys.executable).parent / name

    def run(*words: str) -> str:
        return subprocess.run([script, *words], check=True, capture_output=True, text=True).stdout

    run("out-ra.ra", "-o", "by-command.npy")
    check((np.load("by-command.npy") == VALUES).all(), "the command line converts to other values")
    refused = subprocess.run(
        [script, "in.npy", "-o", "by-command.npy"], capture_output=True, check=False
    )
    check(refused.returncode == 5, f"an existing file: exit code {refused.returncode}, not 5")
    check("shape (28, 20)" in run("info", "out-png.png"), "info shows no shape")
    return run("--version").split()[-1]


def refusals() -> None:
    """What would be lost is refused, and nothing is written."""
    np.save("wide.npy", np.full((2, 2), 0.5))
    try:
        raconvert.convert("wide.npy", "wide.png")
    except WouldLose:
        check(not os.path.exists("wide.png"), "a refused conversion has written a file")
    else:
        check(False, "float64 became PNG")


def main() -> None:
    """Do all of it in a folder of its own, and say what was done."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            count, written = modules(), formats()
            version = command_line()
            refusals()
        finally:
            os.chdir(before)  # Windows removes no folder that is in use
    compiled = [name for name in COMPILED if is_there(name)]
    if "--compiled" in sys.argv:
        check(compiled == COMPILED, f"of what is compiled there is only {compiled}")
    python = ".".join(map(str, sys.version_info[:3]))
    print(
        f"raconvert {version} on Python {python}, {sys.platform}: {count} modules, "
        f"{written} formats there and back, compiled: {', '.join(compiled) or 'nothing'}"
    )


def is_there(name: str) -> bool:
    """True if a module can be imported."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main()
