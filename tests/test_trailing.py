"""Bytes behind the end of a file: one rule for all formats, a note that counts them, or an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt

VALUES = np.arange(24, dtype="<f4").reshape(4, 6)
BYTES = np.arange(24, dtype="u1").reshape(4, 6)
TAILS = {"zeros": bytes(7), "junk": b"junk!!!", "block": bytes(1024)}
# What follows is noted, kept (RA), or forbidden, since the format knows its own end.
RULES = {"npy": "noted", "npz": "noted", "zip": "noted", "nrrd": "noted", "png": "noted",
         "pgm": "noted", "tar": "padded", "ra": "kept", "har": "forbidden"}  # fmt: skip


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("form", RULES)
def test_trailing_bytes(form: str, tail: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    values = BYTES if form in ("png", "pgm") else VALUES
    raconvert.write(path, values)
    with open_bundle(path) as bundle:
        assert not any("ignored" in note for note in bundle.notes)
    path.write_bytes(path.read_bytes() + TAILS[tail])
    if RULES[form] == "forbidden":
        with pytest.raises(Corrupt):
            raconvert.read(path)
        return
    with open_bundle(path) as bundle:
        told = [note for note in bundle.notes if "ignored" in note]
        assert np.array_equal(np.array(bundle.arrays[0]), values)
        if RULES[form] == "padded":  # zeros fill up the last record of a tape
            assert len(told) == (tail == "junk")
        if RULES[form] == "noted":
            assert len(told) == 1
            assert told[0].startswith(f"{len(TAILS[tail])} bytes after the ")
    if RULES[form] == "kept":
        raconvert.convert(path, tmp_path / "y.ra")
        assert (tmp_path / "y.ra").read_bytes() == path.read_bytes()
