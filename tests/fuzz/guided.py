"""One run of atheris over one parser: started by `run`, never by hand."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
with atheris.instrument_imports(include=["raconvert"]):
    from tests.fuzz.judge import judge
    from tests.fuzz.parsers import PARSERS, seeds
    from tests.fuzz.run import made

name, seed, scratch = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
rng = random.Random(seed)
pool = seeds(name)
room = scratch / "room"
room.mkdir()


def one(data: bytes) -> None:
    """Judge one input; what is raised here is a finding."""
    why, _ = judge(name, data, room)
    if why:
        raise AssertionError(why)


def mutated(data: bytes, most: int, number: int) -> bytes:
    """Change an input as our own loop would; half of the time as libFuzzer would."""
    rng.seed(number)
    if rng.random() < 0.5:
        return atheris.Mutate(data, most)
    return made(name, [bytes(data)], rng)[:most] if data else rng.choice(pool)[:most]


if name not in PARSERS:
    raise SystemExit(f"no parser {name}")
atheris.Setup([sys.argv[0], *sys.argv[4:]], one, custom_mutator=mutated)
atheris.Fuzz()
