"""Run the tests that need something from outside where it is missing: none of them may fail.

    python .ci/bare.py [WORDS FOR PYTEST]

Three times at once, as on machines that have less than CI:

- `nothing`: PATH leads to what POSIX asks of every system, and to Python;
- `gcc without headers`: a compiler, in a mount namespace where /usr/include is empty;
- `gcc without libraries`: a compiler that works, without the headers of all libraries but libc.

Where this system gives nobody a mount namespace, gcc is told by its options to look nowhere for
headers, and the third run is left out. The exit code is 1 if a test failed, or if none was found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import needs  # noqa: E402 - where it lies is said above

PYTEST = (sys.executable, "-m", "pytest", "-q", "-m", "outside")
TOOLCHAIN = ("gcc", "as", "ld", "h5cc")
DROPPED = ("CI", "RACONVERT_LONG", "RACONVERT_SCIDBPY", "RACONVERT_SITE")  # variables
HEADERS = (Path("/usr/include"), Path("/usr/local/include"), Path(sysconfig.get_path("include")))


def main() -> int:
    """Run the tests in each of the surroundings."""
    surroundings = {
        "nothing": ((), ()),
        "gcc without headers": (TOOLCHAIN, tuple(filter(Path.is_dir, HEADERS))),
        "gcc without libraries": (TOOLCHAIN, headers_of_libraries()),
    }
    if needs.mounting() is None:
        del surroundings["gcc without libraries"]
    files = files_of_tests()
    failed = not files
    with ThreadPoolExecutor() as pool, tempfile.TemporaryDirectory() as folder:
        runs = [
            pool.submit(run, Path(folder, str(number)), files, *surrounding)
            for number, surrounding in enumerate(surroundings.values())
        ]
        for name, one in zip(surroundings, runs, strict=True):
            done = one.result()
            print(f"--- {name}\n{done.stdout}", flush=True)
            failed |= done.returncode != 0
    return int(failed)


def files_of_tests() -> list[str]:
    """Return the files that have tests which need something: the others are not loaded thrice."""
    command = [*PYTEST, "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(  # noqa: S603 - pytest, with our own words
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    return sorted({line.partition("::")[0] for line in lines if "::" in line})


def headers_of_libraries() -> tuple[Path, ...]:
    """Return the files that programs include for the libraries of needs.py, but for libc."""
    names = {one.header for one in needs.LIBRARIES.values()} - {"stdio.h"}
    return tuple(
        sorted({
            path.resolve()
            for folder in HEADERS
            for path in folder.rglob("*.h")
            if any(path.as_posix().endswith(f"/{name}") for name in names)
        })
    )  # fmt: skip


def run(
    folder: Path, files: list[str], programs: tuple[str, ...], hidden: tuple[Path, ...]
) -> subprocess.CompletedProcess[str]:
    """Run the tests with a PATH of their own, behind mounts that hide folders and files.

    In one process: most are skipped, and each one more would load all files once more.
    """
    (folder / "bin").mkdir(parents=True)
    (folder / "empty").mkdir()
    for name in (*needs.EVERYWHERE, *programs):
        if path := shutil.which(name):
            (folder / "bin" / name).symlink_to(path)
    for name in ("python", "python3"):  # a link would lose the environment
        script(folder / "bin" / name, f'exec "{sys.executable}" "$@"')
    words = [*PYTEST, "-n", "0", *sys.argv[1:], *files]
    if hidden and needs.mounting() is not None:
        covers = [folder / "empty" if path.is_dir() else Path(os.devnull) for path in hidden]
        mounts = [f"mount --bind '{c}' '{p}'" for c, p in zip(covers, hidden, strict=True)]
        mount = shutil.which("mount") or "mount"
        lines = " && ".join([*mounts, f'PATH="{folder / "bin"}" exec "$@"'])
        lines = lines.replace("mount --bind", f"{mount} --bind")
        words = [*needs.mounting(), shutil.which("sh") or "sh", "-c", lines, "sh", *words]
    elif hidden:
        gcc = folder / "bin" / "gcc"
        real = gcc.readlink()
        gcc.unlink()
        script(gcc, f'exec "{real}" -nostdinc "$@"')
    environment = {name: text for name, text in os.environ.items() if name not in DROPPED}
    environment["PATH"] = str(folder / "bin")
    return subprocess.run(  # noqa: S603 - as above
        words, env=environment, cwd=ROOT, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def script(path: Path, line: str) -> None:
    """Write a program of one line."""
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
