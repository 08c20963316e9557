"""Programs of pages that read images by libraries: run as they are on the page.

Pillow, pypng and tifffile by Python, GraphicsMagick by Octave's imread, and libpng by C.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tifffile
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.registry import by_name, load
from raconvert.views.pages.programs import filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
FOLDERS = ("png", "image")
OURS = [path for folder in FOLDERS for path in sorted((FIXTURES / folder).glob("*.*"))]


def encoded(paths: Iterable[Path]) -> list[tuple[Path, np.ndarray, dict[str, str]]]:
    """Images that can be read, and are not there as plain bytes, with their values and lines."""
    found = []
    for path in paths:
        try:
            with raconvert.open(path) as array:
                if array.extent is None:
                    asked = load(by_name(raconvert.info(path)["format"])).programs
                    lines = filled(asked(array), str(path), "") if asked else {}
                    found.append((path, np.asarray(array[...]), lines))
        except raconvert.RaconvertError:
            continue
    return found


def check_python(path: Path, values: np.ndarray, lines: dict[str, str]) -> None:
    space: dict[str, Any] = {}
    exec(lines["Python"], space)
    assert space["x"].shape == values.shape, path
    assert space["x"].dtype == values.dtype, path
    assert np.array_equal(space["x"], values), path


def test_the_python_lines_read_images_of_every_format(tmp_path: Path) -> None:
    Image.fromarray(np.eye(9, 11, dtype=bool)).save(tmp_path / "bits.pbm")
    images = [one for one in encoded([*OURS, tmp_path / "bits.pbm"]) if "Python" in one[2]]
    for one in images:
        check_python(*one)

    assert len(images) >= 15
    assert {path.suffix for path, _, _ in images} >= {
        ".png", ".bmp", ".gif", ".jpg", ".webp", ".tif", ".pbm",
    }  # fmt: skip


def test_the_python_lines_read_images_of_others(corpus: Callable[..., Path]) -> None:
    images = encoded(sorted(corpus("png", "pngsuite").glob("*.png")))
    for one in images:
        check_python(*one)

    assert len(images) >= 100


@pytest.mark.parametrize("options", [{"palette": "indices"}, {"depth": "native"}], ids=str)
def test_lines_are_left_out_where_options_make_another_array(options: dict[str, str]) -> None:
    asked = load(by_name("png")).programs
    assert asked is not None
    for name in ("pypng_palette2.png", "pypng_grey4_adam7.png"):
        usual = raconvert.open(FIXTURES / "png" / name)
        other = raconvert.open(FIXTURES / "png" / name, in_opts=options)
        same = usual.shape == other.shape and np.array_equal(usual[...], other[...])
        assert bool(asked(other)) == same


def test_planes_of_samples_are_read_by_lines_of_python_alone(tmp_path: Path) -> None:
    """As (samples, height, width), which MATLAB's imread does not give."""
    values = np.arange(3 * 40 * 50, dtype="u1").reshape(3, 40, 50)
    tifffile.imwrite(
        tmp_path / "x.tif", values, planarconfig="separate", photometric="rgb", compression="zlib",
        metadata=None,
    )  # fmt: skip
    ((path, found, lines),) = encoded([tmp_path / "x.tif"])
    assert np.array_equal(found, values)
    assert lines.keys() == {"Python"}
    check_python(path, found, lines)


def test_the_matlab_lines_read_images_in_octave(
    tmp_path: Path, octave: Callable[..., str], corpus: Callable[..., Path]
) -> None:
    """Octave makes logical values of an image of black and white alone, which MATLAB does not."""
    rng = np.random.default_rng(5)
    for dtype in ("u1", "u2"):
        values = rng.integers(0, 255, (9, 7, 3)).astype(dtype)
        tifffile.imwrite(tmp_path / f"{dtype}.tif", values, compression="zlib", photometric="rgb")
    images = encoded([*sorted(corpus("png", "pngsuite").glob("*.png")), *tmp_path.glob("*.tif")])
    script, count = [], 0
    for number, (path, values, lines) in enumerate(images):
        if "MATLAB" not in lines:
            continue
        values.ravel(order="F").tofile(tmp_path / f"{number}.raw")
        kind, count = values.dtype.name, count + 1
        script += [
            lines["MATLAB"],
            f"f = fopen('{tmp_path}/{number}.raw'); y = fread(f, Inf, '{kind}=>{kind}'); fclose(f);",
            f"if !isequal(x(:), y) || !strcmp(class(x), '{kind}') disp('{path.name}'), end",
        ]

    assert octave("\n".join(script)) == ""
    assert count > 20


def test_the_c_programs_read_images(
    tmp_path: Path,
    library: Callable[..., tuple[str, list[str]]],
    corpus: Callable[..., Path],
) -> None:
    """Compiled as on the page, but for what is done with the rows at the end."""
    compiler, flags = library("png")
    paths = [*sorted(corpus("png", "pngsuite").glob("*.png")), *OURS]
    made: Counter[tuple[str, str]] = Counter()
    for path, values, lines in encoded(paths):
        if "C" not in lines:
            continue
        kind = lines["C"].split("PNG_TRANSFORM_", 1)[1].split(",")[0], str(values.dtype)
        made[kind] += 1
        if made[kind] > 4:
            continue
        row = values.nbytes // len(values)
        code = lines["C"].replace(
            "    return !x;",
            f"    for (int r = 0; r < {len(values)}; r++)\n"
            f"        fwrite(x[r], 1, {row}, stdout);\n    return !x;",
        )
        (tmp_path / "read.c").write_text(code)
        words = ["-Wall", "-Wextra", "-Werror", "-o", "read", "read.c", *flags]
        subprocess.run([compiler, *words], check=True, cwd=tmp_path)
        out = subprocess.run(["./read"], check=True, cwd=tmp_path, capture_output=True).stdout
        assert out == values.tobytes(), path

    assert made.keys() >= {("IDENTITY", "uint8"), ("SWAP_ENDIAN", "uint16")}


def test_a_page_has_the_lines(tmp_path: Path) -> None:
    Image.fromarray(np.eye(9, dtype="u1")).save(tmp_path / "it's 1.png")
    page = tmp_path / "page.html"
    assert main(["info", str(tmp_path / "it's 1.png"), "--html", "-o", str(page)]) == 0
    found = re.search(
        '<pre class="program">(.*?)</pre>', page.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None
    assert """Image.open("it's 1.png") as image""" in html.unescape(found[1])
