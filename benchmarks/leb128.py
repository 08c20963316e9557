"""The integer codec of Julia's RA files: LEB128 groups, decoded and encoded in memory.

    python benchmarks/leb128.py [--count 1000000] [--rounds 7]

The base is the loop over bytes that one writes first, on a hundredth of the values and scaled.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from _measure import Sample, in_process, interleave, machine, middle, ratios, record

from raconvert.ra.leb128 import decode_blocks, encode_blocks

FEWER = 100  # the loop decodes only one value in so many


def values(count: int) -> dict[str, Any]:
    """Return int64 arrays whose groups have one byte, one or two, some, and nine or ten."""
    rng = np.random.default_rng(128)
    return {
        "1 byte": rng.integers(-64, 64, count),
        "1-2 bytes": rng.integers(-1000, 1000, count),
        "1-6 bytes": rng.lognormal(6, 4, count).clip(0, 2**40).astype("i8"),
        "9-10 bytes": rng.integers(-(2**63), 2**63 - 1, count),
    }


def loop_decode(data: bytes, count: int) -> list[int]:
    """Decode zigzag LEB128 one byte at a time."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append((value >> 1) ^ -(value & 1))
            if len(found) == count:
                break
            value = shift = 0
    return found


def decode(data: bytes, count: int) -> Any:
    """Decode with raconvert, in blocks."""
    blocks = decode_blocks(
        io.BytesIO(data).read, count, "int", 8, path="-", offset=0, max_bytes=1 << 20
    )
    return np.concatenate([block.copy() for block in blocks])


def scaled(loop: Callable[[], object]) -> Callable[[], Sample]:
    """Return a contender for the loop on fewer values, its time multiplied."""

    def measure() -> Sample:
        sample = in_process(loop)()
        return Sample(sample.wall * FEWER, sample.cpu * FEWER, 0)

    return measure


def main() -> None:
    """Print one line per kind of value; decoded values are compared first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    machine("numpy")
    print(f"{'':12}  {'decode':>12}  {'x the loop':>10}  {'encode':>12}   (of decoded bytes)")
    for name, array in values(options.count).items():
        data = b"".join(encode_blocks([array]))
        few = options.count // FEWER
        assert np.array_equal(decode(data, options.count), array)
        assert loop_decode(data, few) == array[:few].tolist()
        contenders = {
            "decode": in_process(lambda d=data: decode(d, options.count)),  # type: ignore[misc]
            "encode": in_process(lambda a=array: b"".join(encode_blocks([a]))),  # type: ignore[misc]
            "loop": scaled(lambda d=data, n=few: loop_decode(d, n)),  # type: ignore[misc]
        }
        samples = interleave(contenders, options.rounds)
        speed = {way: array.nbytes / 1e6 / middle(samples[way], "cpu") for way in samples}
        rows = {
            way: {"cpu_ratio": ratios(samples, way, "loop", "cpu")} for way in ("decode", "loop")
        }
        record("loop", rows, "cpu", f"decode {name}")
        gain = speed["decode"] / speed["loop"]
        print(f"{name:12}  {speed['decode']:7.0f} MB/s  {gain:10.1f}  {speed['encode']:7.0f} MB/s")


if __name__ == "__main__":
    main()
