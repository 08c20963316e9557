"""What must hold for every file: errors of ours only, bounded memory and time, the same again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import traceback
from pathlib import Path
from typing import Any

import shapes
from raconvert.plugins.hdf5.files import UNTOLD

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.conversion.read import open_bundle
from raconvert.errors import RaconvertError
from raconvert.inspect.info import describe

from .parsers import PARSERS, SPLIT

MAX_MEMORY = 64 << 20  # what reading may hold at once
MAX_READ = 16 << 20  # of one array; larger ones are opened, not read
MAX_PEAK = 700 << 20  # of the process, with everything imported
MAX_MESSAGE = 4000


def place(name: str, data: bytes, folder: Path) -> Path:
    """Write the files of an input into an empty folder; return the one to open."""
    for old in folder.iterdir():
        old.unlink()
    names = PARSERS[name].names
    for part, content in zip(names, data.split(SPLIT, len(names) - 1), strict=False):
        (folder / part).write_bytes(content)
    if names[0].startswith("x.ra."):  # what lies beside an .ra
        made = shapes.described("items: true\n", (1, 2) if name == "items" else (3,))
        made[f".{names[0].removeprefix('x.ra.')}"] = data
        for end, content in made.items():
            (folder / f"x.ra{end}").write_bytes(content)
        return folder / "x.ra"
    return folder / names[-1]


def told(path: Path, from_: str | None, in_opts: dict[str, Any] | None = None) -> list[Any] | str:
    """Return everything that a file is, in values that compare; or the text of the refusal."""
    if from_ is None and path.suffix == ".json":
        return told_of_view(path)
    try:
        with open_bundle(path, from_=from_, in_opts=in_opts, max_memory=MAX_MEMORY) as bundle:
            found: list[Any] = [json.dumps(describe(bundle, "x"), sort_keys=True)]
            for array in bundle.arrays:
                digest = hashlib.sha256()
                if array.nbytes <= MAX_READ:
                    for block in blocks(array):
                        digest.update(block.tobytes())
                items = None if array.meta.items is None else list(array.meta.items())
                found.append(
                    (array.name, digest.hexdigest(), _text(array.meta.to_dict()), _text(items))
                )
            return [*found, list(bundle.notes)]
    except RaconvertError as error:
        return f"{type(error).__name__}: {error}"


def told_of_view(path: Path) -> list[Any] | str:
    """Return what is said of references and of the files that they name; or why nothing is."""
    try:
        facts = raconvert.info(path, max_memory=MAX_MEMORY)
        found = raconvert.verify(path, max_memory=MAX_MEMORY)
    except RaconvertError as error:
        return f"{type(error).__name__}: {error}"
    return [json.dumps(one, sort_keys=True) for one in (facts, found)]


def _text(value: object) -> str:
    """Return a value as text, without where in memory its parts are."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _is_untold(*both: object) -> bool:
    """True for two refusals of which one says that the library's reason cannot be read."""
    texts = [text for text in both if isinstance(text, str)]
    starts = [text.partition(UNTOLD)[0] for text in texts if UNTOLD in text]
    return len(texts) == 2 and bool(starts) and all(text.startswith(starts[0]) for text in texts)


def judge(
    name: str, data: bytes, folder: Path, in_opts: dict[str, Any] | None = None
) -> tuple[str | None, str]:
    """Return what is wrong with how an input is taken, or None; and what became of it."""
    path = place(name, data, folder)
    before, used = sorted(os.listdir(folder)), _peak()
    try:
        first = told(path, PARSERS[name].from_, in_opts or None)
        again = told(path, PARSERS[name].from_, in_opts or None)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return traceback.format_exc(), "raw"
    outcome = first if isinstance(first, str) else "read"
    if first != again and not _is_untold(first, again):
        return f"reading again gives something else:\n{first!r:.2000}\n{again!r:.2000}", outcome
    if sorted(os.listdir(folder)) != before:
        return f"files were written: {sorted(set(os.listdir(folder)) - set(before))}", outcome
    if isinstance(first, str) and len(first) > MAX_MESSAGE:
        return f"a message of {len(first)} characters: {first:.300}", outcome
    peak = _peak()
    too_much = peak > max(used, MAX_PEAK)  # what the process has used before is not of this input
    return (f"{peak >> 20} MB of memory" if too_much else None), outcome


def _peak() -> int:
    """Return the largest memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
