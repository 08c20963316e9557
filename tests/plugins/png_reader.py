"""PNG with pypng and Pillow, for the suites over all pairs of formats."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from pairs import GREY, Facts, Pairs


def write(path: Path, values: np.ndarray) -> None:
    import png as pypng

    height, width, *channels = values.shape
    planes = channels[0] if channels else 1
    writer = pypng.Writer(
        width,
        height,
        greyscale=planes < 3,
        alpha=planes in (2, 4),
        bitdepth=8 * values.itemsize,
    )
    with path.open("wb") as file:
        writer.write(file, values.reshape(height, -1).tolist())


def read(path: Path) -> np.ndarray:
    import png as pypng

    with path.open("rb") as file:
        width, height, rows, facts = pypng.Reader(file).read()
        values = np.array([list(row) for row in rows])
    if facts["bitdepth"] == 1:
        return values.astype("?")
    shape = (height, width) if facts["planes"] == 1 else (height, width, facts["planes"])
    return values.reshape(shape).astype(f"u{facts['bitdepth'] // 8}")


def say(path: Path, generator: random.Random) -> Facts:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    text = PngInfo()
    facts: Facts = {}
    if generator.random() < 0.7:
        facts["text"] = {"Author": "text", "Comment": "more"}
        for key, value in facts["text"].items():
            text.add_text(key, value)
    Image.fromarray(GREY).save(path, pnginfo=text)
    return facts


def said(path: Path) -> Facts:
    from PIL import Image

    with Image.open(path) as image:
        return {"text": dict(image.text)}


def can_write(values: np.ndarray) -> bool:
    """True if the shape is (height, width), or has channels as well; with 8 or 16 bits."""
    shape = values.shape
    image = len(shape) == 2 or (len(shape) == 3 and shape[2] in (2, 3, 4))
    return values.dtype.kind == "u" and values.itemsize < 3 and 0 not in shape and image


def special(name: str, shape: tuple[int, ...]) -> str:
    """Images of one bit have no channels."""
    return "x" if name == "bool" and len(shape) == 3 and shape[2] > 1 else ""


# 8 or 16 bits, and one bit, which every reader but Pillow gives as 0 and 255. The shape is (height,
# width), or has a last axis of 1 to 4 channels; one channel needs no axis.
IN_PAIRS = (
    Pairs(
        name="png",
        suffix=".png",
        read=read,
        write=write,
        can_write=can_write,
        order="C",
        types="""
            = uint8 uint16 uint16_big
            ~ bool
            x int8 int16 int32 int64 uint32 uint64 float16 float32 float64 complex64
              complex128 bfloat16 int16_big int64_big float32_big complex128_big bytes text
              text_big datetime seconds timedelta structured void
        """,
        shapes="""
            = 4,6 6,4 1,1 1,6,4 4,6,2 2,6,4 4,6,3 3,6,4 5,6,4
            ~ 4,6,1
            x () 5 0 4,0 0,4 4,6,5 2,0,3 3,0,2 1,1,3,1 1,3,1,1 2,3,4,3 3,4,3,2
        """,
        special=special,
        say=say,
        said=said,
    ),
)
