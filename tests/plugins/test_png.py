"""What is special to PNG: values of the corpus, metadata, stacks; pypng and Pillow as oracles."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import png as pypng
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, PngImagePlugin
from raconvert.plugins import png
from raconvert.plugins.png import engine

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.plugin import EQUIVALENT, NO, REFUSED, SURE, Fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "png"
NATIVE = {"palette": "indices", "depth": "native"}


@pytest.fixture(scope="module", autouse=True, params=["compiled", "python"])
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run everything twice, with the compiled loops and with what stands in for them."""
    if request.param == "compiled" and engine.fast is None:
        pytest.skip("the compiled loops were not built (no C compiler?)")
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "python":
            patched.setattr(engine, "fast", None)
        yield


def read(path: Path | str, **options: str) -> tuple[Array, list[str]]:
    """Read with the plugin: the one array, and the notes."""
    bundle = png.read(Source(str(path)), **options)
    assert bundle.names == [Path(path).stem]
    return bundle.arrays[0], bundle.notes


def values_of(path: Path | str, **options: str) -> np.ndarray:
    """Read the pixels; what the header promised must be what comes."""
    array, _ = read(path, **options)
    values = as_ndarray(array)
    assert values.shape == array.shape == array.data.shape
    assert values.dtype == array.dtype
    return values


def fields_of(path: Path | str, **options: str) -> dict[str, Any]:
    """Return the metadata of the format's own namespace."""
    return read(path, **options)[0].meta.formats.get("png", {})


def array_of(values: np.ndarray, fields: dict[str, Any] | None = None, **more: Any) -> Array:
    """Return a core array over an ndarray, with metadata of the format."""
    meta = more.pop("meta", None) or Metadata(formats={"png": fields} if fields else None)
    return Array(
        element_of(values.dtype),
        values.shape[::-1],
        name="x",
        index_order="C",
        meta=meta,
        data=values,
    )


def write(path: Path, array: Array, **options: Any) -> Path:
    """Write with the plugin through a target, as the core does."""
    with Target(str(path)) as target:
        png.plan(Bundle([array]), **options).write(target)
        target.commit(sync=False)
    return path


def with_pypng(path: Path) -> np.ndarray:
    """Read the samples as they are in the file with pypng (palette indices, raw depth)."""
    width, height, rows, info = pypng.Reader(bytes=path.read_bytes()).read()
    values = np.array([list(row) for row in rows], "<u2" if info["bitdepth"] == 16 else "u1")
    channels = values.shape[1] // width
    return values.reshape((height, width) if channels == 1 else (height, width, channels))


def with_pillow(path: Path) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(path.read_bytes())))


def write_pypng(path: Path, values: np.ndarray, **options: Any) -> Path:
    with path.open("wb") as file:
        rows = values.reshape(len(values), -1).tolist()
        pypng.Writer(values.shape[1], values.shape[0], **options).write(file, rows)
    return path


def ramp(shape: tuple[int, ...], dtype: str = "u1", step: int = 1) -> np.ndarray:
    return (np.arange(np.prod(shape)) * step).astype(dtype).reshape(shape)


def sha256(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


# The corpus -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(corpus: Callable[..., Path]) -> dict[str, Any]:
    path = corpus("png", "expected.json")
    return json.loads(path.read_text()) if path.is_file() else {}


def matches(values: np.ndarray, promised: dict[str, Any]) -> bool:
    found = (list(values.shape), values.dtype.name, sha256(values))
    return found == (promised["shape"], promised["dtype"], promised["sha256"])


def images(expected: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the images that have this expectation."""
    found = {
        name: entry
        for name, entry in expected.items()
        if key in entry and not name.startswith(("idx", "cifar"))
    }
    assert found
    return found


def test_corpus_native(corpus: Callable[..., Path], expected: dict[str, Any]) -> None:
    for name, entry in images(expected, "native").items():
        assert matches(values_of(corpus("png", name), **NATIVE), entry["native"]), name


def test_corpus_expanded(corpus: Callable[..., Path], expected: dict[str, Any]) -> None:
    for name, entry in images(expected, "native").items():
        promised = entry.get("expanded", "same as native")
        promised = entry["native"] if promised == "same as native" else promised
        assert matches(values_of(corpus("png", name)), promised), name


def test_corpus_color_key_as_alpha(corpus: Callable[..., Path], expected: dict[str, Any]) -> None:
    for name, entry in images(expected, "with_trns_alpha").items():
        promised = entry["with_trns_alpha"]
        assert matches(values_of(corpus("png", name), trns="alpha"), promised), name


def test_corpus_damaged_files_are_refused(
    corpus: Callable[..., Path], expected: dict[str, Any]
) -> None:
    damaged = [
        corpus("png", name)
        for name, entry in images(expected, "expect").items()
        if not name.endswith("/")
        and entry["expect"] not in ("ok", "documented; all decoders accept")
    ]
    damaged += sorted(corpus("hostile").glob("png_*.png"))
    for path in damaged:
        with pytest.raises(RaconvertError) as caught:
            values_of(path)
        assert caught.value.path == str(path)
        assert isinstance(caught.value, (Corrupt, TooLarge)), path


def test_corpus_default_image_of_every_animation(
    corpus: Callable[..., Path], expected: dict[str, Any]
) -> None:
    for name, entry in images(expected, "default_image").items():
        assert matches(values_of(corpus("png", name)), entry["default_image"]), name


def rgba(frames: np.ndarray) -> np.ndarray:
    """Return frames (n, H, W[, channels]) of 8 bits as RGBA."""
    frames = frames[..., None] if frames.ndim == 3 else frames
    channels = frames.shape[3]
    alpha = frames[..., -1:] if channels in (2, 4) else np.full_like(frames[..., :1], 255)
    colors = frames[..., :3] if channels >= 3 else frames[..., [0, 0, 0]]
    return np.concatenate([colors, alpha], axis=-1)


def test_corpus_frames_on_which_two_decoders_agree(
    corpus: Callable[..., Path], expected: dict[str, Any]
) -> None:
    agreed = [
        name
        for name, entry in images(expected, "default_image").items()
        if entry.get("frames_second_decoder_agrees")
    ]
    assert agreed
    for name in agreed:
        promised = expected[name]["frames_rgba8_pillow"]
        assert matches(rgba(values_of(corpus("png", name), frames="all")), promised), name


def test_corpus_animations_out_of_order_are_refused(
    corpus: Callable[..., Path], expected: dict[str, Any]
) -> None:
    broken = [
        name
        for name, entry in images(expected, "default_image").items()
        if isinstance(entry["frames_rgba8_pillow"], str)
    ]
    assert broken
    for name in broken:
        with pytest.raises(Corrupt, match="animation"):
            read(corpus("png", name), frames="all")


def test_corpus_files_written_by_other_programs(corpus: Callable[..., Path]) -> None:
    index = np.arange(15).reshape(3, 5)
    depth = corpus("png", "depth")
    assert (values_of(depth / "g16.png") == (4369 * index + 7) % 65536).all()
    colors = 4000 * index[..., None] + 37 * np.arange(3) + 1
    assert (values_of(depth / "rgb16.png") == colors).all()
    assert values_of(depth / "bit1.png").sum() == 1785
    assert values_of(depth / "bit1.png", **NATIVE).sum() == 7
    assert values_of(depth / "g2.png").sum() == 1275
    assert values_of(depth / "g2.png", **NATIVE).sum() == 15
    assert values_of(depth / "g4.png").sum() == 1785
    assert values_of(depth / "g4.png", **NATIVE).sum() == 105
    assert values_of(depth / "pal.png").sum() == 3825
    assert values_of(depth / "pal.png", **NATIVE).sum() == 1
    animated = corpus("png", "apng_u8_written_by_imageio.png")
    assert (values_of(animated, frames="all") == np.arange(60).reshape(3, 4, 5) * 4).all()
    assert values_of(corpus("detect", "png_named.jpg")).shape == (271, 255, 4)
    for path in sorted(corpus("ra").glob("*.png")):
        assert (values_of(path) == with_pillow(path)).all()


@pytest.mark.parametrize("folder", ["stack_flat_grey", "stack_mnist_labels"])
def test_corpus_stacks(corpus: Callable[..., Path], expected: dict[str, Any], folder: str) -> None:
    paths = sorted(
        corpus("png", folder).rglob("*.png"), key=lambda p: (p.parent.name, len(p.stem), p.stem)
    )
    assert matches(stack_of(paths), expected[f"{folder}/"]["stack_natural"])


def test_corpus_odd_stacks_name_the_odd_file(corpus: Callable[..., Path]) -> None:
    def message(folder: str) -> str:
        paths = sorted(corpus("png", folder).glob("*.png"), key=lambda p: (len(p.stem), p.stem))
        with pytest.raises(RaconvertError) as caught:
            stack_of(paths)
        return str(caught.value)

    mode = message("mixed_mode_grey_rgb")
    assert "2.png" in mode
    assert "grey" in mode
    assert "RGB" in mode
    shape = message("mixed_shape")
    assert "c.png" in shape
    assert "(28, 27)" in shape
    assert "(28, 28) as in" in shape
    assert "a.png" in shape
    assert "3.png" in message("one_truncated_of_12")


# Fixtures ---------------------------------------------------------------------------------------


def test_fixtures() -> None:
    def fixture(name: str, **options: str) -> np.ndarray:
        return values_of(FIXTURES / name, **options)

    assert (fixture("pypng_rgb16.png") == ramp((3, 4, 3), "u2", 1829)).all()
    assert (fixture("pypng_grey_alpha16.png") == ramp((2, 5, 2), "u2", 6553)).all()
    assert (fixture("pypng_grey4_adam7.png") == ramp((9, 7)) % 16 * 17).all()
    assert (fixture("pypng_grey4_adam7.png", depth="native") == ramp((9, 7)) % 16).all()
    colors = np.array([(0, 0, 255, 128), (255, 0, 0, 255), (0, 255, 0, 255)], "u1")
    assert (fixture("pypng_palette2.png") == colors[ramp((3, 5)) % 3]).all()
    assert (fixture("pypng_palette2.png", palette="indices") == ramp((3, 5)) % 3).all()
    grey = ramp((4, 4), step=17)
    assert (fixture("pypng_grey_key.png") == grey).all()
    with_alpha = np.stack([grey, np.where(grey == 34, 0, 255)], axis=-1)
    assert (fixture("pypng_grey_key.png", trns="alpha") == with_alpha).all()
    assert (fixture("pillow_rgb_text.png") == ramp((5, 6, 3), step=3)).all()
    frames = ramp((4, 6), step=5) + np.arange(3, dtype="u1")[:, None, None]
    assert (fixture("pillow_animated.png", frames="all") == frames).all()


def test_metadata_of_the_fixtures() -> None:
    assert fields_of(FIXTURES / "pypng_rgb16.png") == {}
    assert fields_of(FIXTURES / "pypng_grey4_adam7.png") == {"bit_depth": 4}
    assert fields_of(FIXTURES / "pypng_grey4_adam7.png", depth="native")["native"] is True
    assert fields_of(FIXTURES / "pypng_palette2.png") == {
        "bit_depth": 2,
        "color_type": 3,
        "palette": ["#0000ff", "#ff0000", "#00ff00"],
        "trns": [128],
    }
    assert fields_of(FIXTURES / "pypng_grey_key.png") == {"trns": [34]}
    assert fields_of(FIXTURES / "pypng_grey_key.png", trns="alpha") == {}
    assert fields_of(FIXTURES / "pillow_rgb_text.png") == {
        "text": [
            ["Title", "Größe in µm", "tEXt"],
            ["Comment", "日本", "iTXt", "ja", "コメント"],
        ],
        "phys": [11811, 11811, 1],
    }


def test_an_animation_is_noted() -> None:
    _, notes = read(FIXTURES / "pillow_animated.png")
    assert len(notes) == 1
    assert "3 frames" in notes[0]
    assert 'in_opts={"frames": "all"}' in notes[0]
    array, notes = read(FIXTURES / "pillow_animated.png", frames="all")
    assert notes == []
    assert array.meta.formats["png"]["animation"]["delays"] == [[1, 25]] * 3


# What pypng and Pillow write, we read -------------------------------------------------------------

COLORS = {
    "grey": {"greyscale": True},
    "grey+alpha": {"greyscale": True, "alpha": True},
    "RGB": {"greyscale": False},
    "RGBA": {"greyscale": False, "alpha": True},
}
CHANNELS = {"grey": 1, "grey+alpha": 2, "RGB": 3, "RGBA": 4}


@every("interlace", [False, True], ids=["rows", "Adam7"])
@every("depth", [8, 16])
@every("color", COLORS)
def test_reads_what_pypng_writes(tmp_path: Path, color: str, depth: int, interlace: bool) -> None:
    channels = CHANNELS[color]
    for height, width in [(1, 1), (3, 2), (9, 13), (1, 8), (8, 1), (17, 5)]:
        shape = (height, width) if channels == 1 else (height, width, channels)
        values = np.random.default_rng(0).integers(0, 1 << depth, shape).astype(f"<u{depth // 8}")
        path = write_pypng(
            tmp_path / "x.png", values, bitdepth=depth, interlace=interlace, **COLORS[color]
        )
        found = values_of(path)
        assert found.dtype == values.dtype
        assert found.tobytes() == values.tobytes()


@pytest.mark.parametrize("interlace", [False, True], ids=["rows", "Adam7"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_reads_low_depths(tmp_path: Path, depth: int, interlace: bool) -> None:
    for height, width in [(1, 1), (3, 2), (9, 13), (5, 33)]:
        values = np.random.default_rng(1).integers(0, 1 << depth, (height, width), "u1")
        path = write_pypng(
            tmp_path / "x.png", values, bitdepth=depth, greyscale=True, interlace=interlace
        )
        assert (values_of(path, depth="native") == values).all()
        assert (values_of(path) == values * (255 // (2**depth - 1))).all()
        indexed = tmp_path / "p.png"
        palette = [(i, 255 - i, 7) for i in range(1 << depth)]
        write_pypng(indexed, values, bitdepth=depth, palette=palette, interlace=interlace)
        assert (values_of(indexed, palette="indices") == values).all()
        assert (values_of(indexed) == np.array(palette, "u1")[values]).all()


def test_reads_every_filter_over_slabs_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large image goes through in slabs; the filters look back over their borders."""
    from raconvert.plugins.png import pixels

    values = np.random.default_rng(2).integers(0, 256, (40, 11, 3), "u1")
    for channels in (1, 3):
        shown = values[:, :, 0] if channels == 1 else values
        for name in ("none", "sub", "up", "average", "paeth", "adaptive"):
            path = write(tmp_path / f"{name}.png", array_of(shown), filter=name)
            assert (with_pillow(path) == shown).all()
            with monkeypatch.context() as patched:
                patched.setattr(pixels, "SLAB_BYTES", 100)
                assert (values_of(path) == shown).all()


def test_palette_with_opaque_transparency_has_no_alpha(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    image = Image.fromarray(ramp((2, 2)), "L").convert("P")
    image.putpalette([1, 2, 3] * 4)
    image.save(path, transparency=bytes([255, 255]))
    assert values_of(path).shape == (2, 2, 3)
    image.save(path, transparency=bytes([255, 254]))
    assert values_of(path).shape == (2, 2, 4)


def test_importing_the_plugin_imports_neither_numpy_nor_pillow() -> None:
    code = "import sys, raconvert.plugins.png; print([m for m in ('numpy', 'PIL') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_reading_the_header_decodes_nothing() -> None:
    code = (
        "import sys; from raconvert.plugins import png; from raconvert.files.source import Source;"
        f"a = png.read(Source({str(FIXTURES / 'pypng_palette2.png')!r})).arrays[0];"
        "print(a.shape, a.element[:2], [m for m in ('numpy', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.strip() == "(3, 5, 4) ('uint', 1) []"


# What we write, pypng and Pillow read -------------------------------------------------------------

SHAPES = st.one_of(
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4)),
)
PIXELS = st.sampled_from(["|u1", "<u2", ">u2"]).flatmap(lambda t: hnp.arrays(t, SHAPES))


@given(PIXELS, st.sampled_from(["auto", "none", "sub", "up", "average", "paeth", "adaptive"]))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, filter: str
) -> None:
    path = write(tmp_path_factory.mktemp("png") / "x.png", array_of(values), filter=filter)
    plain = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    plain = plain.astype(plain.dtype.newbyteorder("<"))
    for found in (values_of(path), with_pypng(path)):
        assert found.dtype == plain.dtype
        assert found.shape == plain.shape
        assert found.tobytes() == plain.tobytes()
    if plain.itemsize == 1:
        assert (with_pillow(path) == plain).all()
    assert read(path)[0].meta.to_dict() == {}


@given(hnp.arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 20))))
def test_bool_becomes_one_bit(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray) -> None:
    path = write(tmp_path_factory.mktemp("png") / "x.png", array_of(values))
    assert (with_pypng(path) == values).all()
    assert (with_pillow(path) == values).all()
    assert (values_of(path) == values * np.uint8(255)).all()


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 256, (64, 64, 3), "u1")
    first = write(tmp_path / "a.png", array_of(values)).read_bytes()
    assert write(tmp_path / "b.png", array_of(values)).read_bytes() == first


def test_large_images_are_written_in_several_chunks(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(0, 256, (1200, 1000, 3), "u1")
    path = write(tmp_path / "x.png", array_of(values), level=0)
    assert path.read_bytes().count(b"IDAT") > 1
    assert (with_pillow(path) == values).all()
    assert (values_of(path) == values).all()


def test_levels(tmp_path: Path) -> None:
    values = np.zeros((50, 50), "u1")
    sizes = [write(tmp_path / f"{n}.png", array_of(values), level=n).stat().st_size for n in (0, 9)]
    assert sizes[0] > 2500 > sizes[1]
    with pytest.raises(UsageError, match="compression level"):
        write(tmp_path / "x.png", array_of(values), level=10)


# Palettes, low depths and metadata, there and back ------------------------------------------------


def again(path: Path, tmp_path: Path, **options: str) -> tuple[Path, dict[str, Any]]:
    """Read a file and write what was read; return the new file, and its metadata."""
    array, _ = read(path, **options)
    copy = write(tmp_path / f"again_{path.name}", array)
    return copy, fields_of(copy, **options)


@pytest.mark.parametrize("options", [{}, NATIVE], ids=["expanded", "native"])
@pytest.mark.parametrize(
    "name",
    ["pypng_palette2.png", "pypng_grey4_adam7.png", "pypng_grey_key.png", "pillow_rgb_text.png"],
)
def test_what_was_read_is_written_back(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    path = FIXTURES / name
    copy, fields = again(path, tmp_path, **options)
    assert fields == fields_of(path, **options)
    assert (with_pypng(copy) == with_pypng(path)).all()  # raw samples: same palette, same depth


def test_corpus_is_written_back(
    corpus: Callable[..., Path], expected: dict[str, Any], tmp_path: Path
) -> None:
    """Raw samples and metadata of every intact image survive being read and written."""
    for name in images(expected, "native"):
        path = corpus("png", name)
        for options in ({}, NATIVE):
            copy, fields = again(path, tmp_path, **options)
            assert fields == fields_of(path, **options), name
            found, wanted = values_of(copy, **NATIVE), values_of(path, **NATIVE)
            if "palette" in fields and not options:  # equal colours share their first index
                found, wanted = values_of(copy), values_of(path)
            assert found.tobytes() == wanted.tobytes(), name


def test_a_changed_image_is_not_forced_into_its_old_palette(tmp_path: Path) -> None:
    fields = fields_of(FIXTURES / "pypng_palette2.png")
    values = values_of(FIXTURES / "pypng_palette2.png").copy()
    values[1, 1] = (9, 9, 9, 9)
    path = write(tmp_path / "x.png", array_of(values, fields))
    assert (values_of(path) == values).all()
    assert (with_pillow(path) == values).all()


def test_a_changed_grey_image_gets_all_its_bits(tmp_path: Path) -> None:
    values = np.array([[0, 17, 34], [255, 18, 0]], "u1")
    path = write(tmp_path / "x.png", array_of(values, {"bit_depth": 4, "trns": [2]}))
    assert (values_of(path) == values).all()
    assert fields_of(path) == {"trns": [34]}  # the colour key moved along with the values
    native = {"bit_depth": 4, "native": True, "trns": [2]}
    path = write(tmp_path / "y.png", array_of(np.array([[15, 16]], "u1"), native))
    assert values_of(path).tolist() == [[15, 16]]
    assert fields_of(path) == {"trns": [2]}


ANCILLARY = {
    "gama": 45455,
    "srgb": 0,
    "chrm": [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000],
    "cicp": [1, 13, 0, 1],
    "clli": [10000000, 4000000],
    "mdcv": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "sbit": [5, 6, 5],
    "bkgd": [1, 2, 3],
    "phys": [3, 4, 0],
    "time": "1999-12-31T23:59:60",
    "iccp": {"name": "a profile", "profile": "AAECAw=="},
    "exif": "TU0AKg==",
    "splt": [{"name": "few", "depth": 8, "entries": "AAECAwQF"}],
    "text": [
        ["Title", "a\nb", "tEXt"],
        ["Title", "again", "zTXt"],
        ["Comment", "日本" * 2000, "iTXt", "ja-JP", "コメント"],
    ],
    "other": [["ruNk", "AQID"]],
}


def test_every_ancillary_chunk_round_trips(tmp_path: Path) -> None:
    path = write(tmp_path / "x.png", array_of(ramp((3, 4, 3)), ANCILLARY))
    assert fields_of(path) == ANCILLARY
    assert read(path)[1] == []
    found = [kind for kind, _ in pypng.Reader(bytes=path.read_bytes()).chunks()]
    first, last = found.index(b"IDAT"), found.index(b"IEND")
    assert set(found[1:first]) == {
        b"cICP", b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"sBIT", b"mDCV", b"cLLI", b"bKGD", b"pHYs",
        b"eXIf", b"tIME", b"sPLT", b"tEXt", b"zTXt", b"iTXt", b"ruNk",
    }  # fmt: skip
    assert last == len(found) - 1
    image = Image.open(io.BytesIO(path.read_bytes()))
    image.load()
    assert image.text["Comment"] == "日本" * 2000
    assert image.info["icc_profile"] == bytes([0, 1, 2, 3])


def test_metadata_of_another_image_is_left_out(tmp_path: Path) -> None:
    """Sample values that do not fit colour type and depth belong to what the array was before."""
    fields = {"sbit": [5, 6, 5], "bkgd": [300], "hist": [1, 2], "trns": [1, 2, 3]}
    assert fields_of(write(tmp_path / "x.png", array_of(ramp((2, 2)), fields))) == {}


@every(
    "fields",
    [
        {"gama": "much"},
        {"chrm": [1, 2]},
        {"text": 7},
        {"text": [["Title"]]},
        {"text": [["", "x", "tEXt"]]},
        {"time": "yesterday"},
        {"iccp": {"name": "x"}},
        {"exif": "?"},
        {"other": [["IDAT", ""]]},
        {"palette": ["red"], "color_type": 3},
        {"palette": ["#ff0000"], "color_type": 3, "trns": "x"},
        {"sbit": 8},
        {"trns": 5},
    ],
    ids=str,
)
def test_metadata_of_the_wrong_form_is_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    key = "trns" if "trns" in fields else next(iter(fields))
    with pytest.raises(Unsupported, match=rf"png\.{key}"):
        write(tmp_path / "x.png", array_of(ramp((2, 2)), fields))
    assert not (tmp_path / "x.png").exists()


def test_pillow_texts_are_read(tmp_path: Path) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Software", "x" * 50, zip=True)
    text.add_itxt("Author", "Ω" * 50, zip=True)
    path = tmp_path / "x.png"
    Image.fromarray(ramp((2, 2))).save(path, pnginfo=text, exif=b"Exif\0\0MM")
    assert fields_of(path)["text"] == [
        ["Software", "x" * 50, "zTXt"],
        ["Author", "Ω" * 50, "iTXt", "", ""],
    ]


# What fits ----------------------------------------------------------------------------------------


def fits(array: Array) -> list[Fit]:
    return png.plan(Bundle([array])).fits


@every("dtype", ["u1", "<u2", ">u2"])
@every("shape", [(2, 3), (2, 3, 2), (2, 3, 3), (2, 3, 4)])
def test_images_fit(dtype: str, shape: tuple[int, ...]) -> None:
    assert fits(array_of(np.zeros(shape, dtype), {"gama": 1})) == []


def test_what_changes_its_form_is_named() -> None:
    assert [f[:3] for f in fits(array_of(np.zeros((2, 3), bool)))] == [(EQUIVALENT, "x", "type")]
    assert [f[:3] for f in fits(array_of(np.zeros((2, 3, 1), "u1")))] == [
        (EQUIVALENT, "x", "shape")
    ]
    meta = Metadata("a scan", "K", [Axis("x")], {"a": 1}, {"npy": {"b": 2}, "png": {"gama": 1}})
    (fit,) = fits(array_of(np.zeros((2, 3), "u1"), meta=meta))
    assert fit.outcome == EQUIVALENT
    assert fit.property == "metadata"
    assert "description, units, axis 0 'x' (name), attributes (a), namespace npy" in fit.reason


@pytest.mark.parametrize("dtype", ["i1", "i2", "u4", "i8", "f2", "f4", "f8"])
def test_other_numbers_need_a_cast_or_a_scale(dtype: str) -> None:
    (fit,) = fits(array_of(np.zeros((2, 3), dtype)))
    assert (fit.outcome, fit.array, fit.property) == (REFUSED, "x", "type")
    assert np.dtype(dtype).name in fit.reason
    assert "--scale" in fit.flag


@pytest.mark.parametrize("dtype", ["c8", "S3", "M8[s]", [("a", "u1")]])
def test_what_no_flag_can_write(dtype: Any) -> None:
    (fit,) = fits(array_of(np.zeros((2, 3), dtype)))
    assert (fit.outcome, fit.flag) == (REFUSED, None)


@pytest.mark.parametrize(
    ("shape", "flag"),
    [
        ((5,), None),
        ((), None),
        ((0, 3), None),
        ((3, 28, 28), "--planes"),
        ((10, 28, 28), "--planes"),
        ((10, 28, 28, 3), "--planes"),
    ],
)
def test_shapes_that_are_no_image(shape: tuple[int, ...], flag: str | None) -> None:
    (fit,) = fits(array_of(np.zeros(shape, "u1")))
    assert (fit.outcome, fit.property, fit.flag) == (REFUSED, "shape", flag)
    assert ("--axes 1,2,0" in fit.reason) == (shape == (3, 28, 28))


def test_bool_with_channels_is_refused() -> None:
    (fit,) = fits(array_of(np.zeros((2, 3, 3), bool)))
    assert (fit.outcome, fit.property, fit.flag) == (REFUSED, "type", "--dtype uint8")


@pytest.mark.parametrize(
    ("shape", "leading"),
    [((5, 6), 0), ((9, 5, 6), 1), ((9, 5, 3), 1), ((9, 5, 6, 3), 1), ((2, 9, 5, 6), 2), ((2, 9, 5, 6, 1), 2)],
)  # fmt: skip
def test_planes(shape: tuple[int, ...], leading: int) -> None:
    assert png.split(array_of(np.zeros(shape, "u1"))) == leading


# Sniffing -----------------------------------------------------------------------------------------


def test_sniff(tmp_path: Path) -> None:
    for name, data in png.FORMAT.samples.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert png.sniff(Source(str(path))) == SURE
        assert with_pypng(path).tolist() == values_of(path).tolist() == [[0]]
    path.write_bytes(b"\xff\xd8\xff\xe0 a JPEG")
    assert png.sniff(Source(str(path))) == NO


# Stacks -------------------------------------------------------------------------------------------

# The temporary file behind per-item metadata is closed when the stack is dropped.
spools = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def open_stack(paths: list[Path], **options: Any) -> Array:
    return png.read_stack([str(p) for p in paths], **{"max_memory": 1 << 30, **options})


def stack_of(paths: list[Path], **options: Any) -> np.ndarray:
    """Return the whole stack, decoded in order."""
    array = open_stack(paths, **options)
    values = as_ndarray(array)
    assert values.shape == array.shape
    assert values.dtype == array.dtype
    return values


def save_all(folder: Path, images: list[np.ndarray], **options: Any) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = []
    for number, image in enumerate(images):
        paths.append(folder / f"{number:05d}.png")
        Image.fromarray(image).save(paths[-1], **options)
    return paths


@pytest.mark.parametrize("shape", [(28, 28), (9, 7, 3), (9, 7, 4), (9, 7, 2), (1, 1)])
def test_stack_of_images_by_pillow(tmp_path: Path, shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(5).integers(0, 256, (700, *shape), "u1")
    images[::3] = images[::3] // 64 * 64
    paths = save_all(tmp_path / "s", list(images))
    assert (stack_of(paths) == images).all()
    array = open_stack(paths)
    sizes = [len(block) for block in blocks(array, 100 * images[0].nbytes)]
    assert sum(sizes) == 700
    assert max(sizes) <= 100
    assert array.data.common == {}
    assert array.data.items is None


def text_of(image: Image.Image, path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Title", "a ramp")
    image.save(path, pnginfo=info)


@pytest.mark.parametrize(
    "save",
    [
        text_of,
        lambda image, path: image.quantize(16).save(path),
        lambda image, path: image.quantize(256).save(path),
        lambda image, path: image.save(path, transparency=3),
        lambda image, path: image.quantize(4).save(path, transparency=1),
        lambda image, path: image.point(lambda grey: grey > 7, "1").save(path),
    ],
    ids=["text", "palette of 4 bits", "palette", "key", "transparent palette", "1 bit"],
)
def test_a_stack_says_what_its_files_say(
    tmp_path: Path, save: Callable[[Image.Image, Path], None]
) -> None:
    image = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16))
    for number in range(2):
        save(image, tmp_path / f"{number}.png")
    paths = sorted(tmp_path.iterdir())
    alone = png.read(Source(str(paths[0]))).only()
    together = open_stack(paths)
    as_ndarray(together)

    assert alone.meta.to_dict()
    assert together.source.common == alone.meta.to_dict()


def test_stack_regions(tmp_path: Path) -> None:
    images = ramp((20, 4, 5, 3))
    data = open_stack(save_all(tmp_path / "s", list(images))).data
    for key in [
        3,
        -1,
        slice(2, 9),
        slice(None, None, -3),
        (slice(1, 4), 2),
        (5, 1, 2),
        (),
        (4, slice(1, 3)),
    ]:
        assert (data[key] == images[key]).all()
    assert (np.asarray(data) == images).all()


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("interlace", [False, True], ids=["rows", "Adam7"])
def test_stack_of_images_by_pypng(tmp_path: Path, depth: int, interlace: bool) -> None:
    rng = np.random.default_rng(depth)
    images = rng.integers(0, 1 << depth, (12, 5, 9)).astype("<u2" if depth == 16 else "u1")
    paths = [
        write_pypng(
            tmp_path / f"{n}.png", image, bitdepth=depth, greyscale=True, interlace=interlace
        )
        for n, image in enumerate(images)
    ]
    assert (stack_of(paths, depth="native") == images).all()


def test_stack_of_16_bit_colors(tmp_path: Path) -> None:
    images = np.random.default_rng(6).integers(0, 65536, (5, 6, 7, 3)).astype("<u2")
    paths = [
        write(tmp_path / f"{n}.png", array_of(i), filter="paeth") for n, i in enumerate(images)
    ]
    assert (stack_of(paths) == images).all()


@spools
def test_stack_of_files_that_differ_in_everything_but_the_image(tmp_path: Path) -> None:
    """Interlaced, several IDAT chunks, other metadata, trailing bytes: each takes its own way."""
    images = list(ramp((6, 9, 9)))
    paths = [write(tmp_path / f"{n}.png", array_of(i)) for n, i in enumerate(images)]
    write_pypng(paths[1], images[1], greyscale=True, interlace=True)
    write_pypng(paths[2], images[2], greyscale=True, chunk_limit=10)
    write(paths[3], array_of(images[3], {"text": [["Title", "three", "tEXt"]]}))
    paths[4].write_bytes(paths[4].read_bytes() + b"behind the end")
    array = open_stack(paths)
    assert (as_ndarray(array) == images).all()
    assert [item.get("formats") for item in array.data.items()] == [
        None, None, None, {"png": {"text": [["Title", "three", "tEXt"]]}}, None, None,
    ]  # fmt: skip
    assert array.data.common == {}
    assert any("4.png" in note and "14 bytes" in note for note in array.data.notes)


@spools
def test_stack_metadata_is_kept_once_where_it_is_common(tmp_path: Path) -> None:
    images = list(ramp((3, 2, 2)))
    common = {"gama": 45455, "phys": [1, 1, 0]}
    own = [{"time": f"2020-01-0{n + 1}T00:00:00"} for n in range(3)]
    paths = [
        write(tmp_path / f"{n}.png", array_of(image, {**common, **own[n]}))
        for n, image in enumerate(images)
    ]
    array = open_stack(paths)
    assert (as_ndarray(array) == images).all()
    assert array.data.common == {"formats": {"png": common}}
    assert [item["formats"]["png"] for item in array.data.items()] == own
    assert [item["file"] for item in array.data.items()] == ["0.png", "1.png", "2.png"]


def test_stack_metadata_when_all_agree(tmp_path: Path) -> None:
    fields = {"gama": 45455}
    paths = [write(tmp_path / f"{n}.png", array_of(ramp((2, 2)), fields)) for n in range(3)]
    array = open_stack(paths)
    as_ndarray(array)
    assert array.data.common == {"formats": {"png": fields}}
    assert array.data.items is None


@spools
def test_stack_of_palettes(tmp_path: Path) -> None:
    palettes = [[(1, 2, 3), (4, 5, 6)], [(7, 8, 9), (1, 1, 1)]]
    indices = ramp((2, 2)) % 2
    paths = [
        write_pypng(tmp_path / f"{n}.png", indices, palette=palettes[n // 2], bitdepth=1)
        for n in range(4)
    ]
    colors = [np.array(palettes[n // 2], "u1")[indices] for n in range(4)]
    assert (stack_of(paths) == colors).all()
    assert (stack_of(paths, palette="indices") == indices).all()


def test_stack_of_palettes_with_and_without_alpha_is_refused_with_a_hint(tmp_path: Path) -> None:
    indices = ramp((2, 2)) % 2
    opaque = write_pypng(tmp_path / "opaque.png", indices, palette=[(1, 2, 3), (4, 5, 6)])
    clear = write_pypng(tmp_path / "clear.png", indices, palette=[(1, 2, 3, 0), (4, 5, 6)])
    with pytest.raises(UsageError) as caught:
        stack_of([opaque, clear])
    for part in ("clear.png", "opaque.png", "RGB (2, 2, 3)", "RGBA (2, 2, 4)", "transparent"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        (np.zeros((2, 3), "u1"), "8-bit grey (2, 3)"),
        (np.zeros((2, 2), "u2"), "16-bit grey (2, 2)"),
        (np.zeros((2, 2), bool), "1-bit grey (2, 2)"),
        (np.zeros((2, 2, 3), "u1"), "8-bit RGB (2, 2, 3)"),
        (np.zeros((2, 2, 2), "u1"), "8-bit grey+alpha (2, 2, 2)"),
    ],
)
def test_stack_of_different_images_is_refused(tmp_path: Path, odd: np.ndarray, what: str) -> None:
    paths = [write(tmp_path / f"{n}.png", array_of(np.zeros((2, 2), "u1"))) for n in range(3)]
    write(paths[2], array_of(odd))
    with pytest.raises(UsageError) as caught:
        stack_of(paths)
    assert caught.value.path == str(paths[2])
    assert caught.value.got == what
    assert str(paths[0]) in str(caught.value)


def test_stack_of_large_images(tmp_path: Path) -> None:
    images = np.random.default_rng(7).integers(0, 256, (3, 600, 500), "u1")
    paths = save_all(tmp_path / "s", list(images))
    assert (stack_of(paths) == images).all()
    with pytest.raises(TooLarge, match="max_memory"):
        list(open_stack(paths, max_memory=100_000).data.stream(1 << 20))


def test_frames_and_stacks_do_not_mix() -> None:
    with pytest.raises(UsageError, match='stack="each"'):
        open_stack([FIXTURES / "pillow_animated.png"], frames="all")


# Memory -------------------------------------------------------------------------------------------


def test_a_large_image_is_refused_above_the_limit_and_the_need_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.png", array_of(np.zeros((3000, 1000), "u1")))
    array = png.read(Source(str(path), max_memory=3_000_000)).arrays[0]
    assert array.shape == (3000, 1000)  # its header can still be looked at
    with pytest.raises(TooLarge) as caught:
        _ = array.data
    assert "3000000 (max_memory)" in str(caught.value)
    with Target(str(tmp_path / "y.png"), max_memory=1_000_000) as target, pytest.raises(TooLarge):
        png.plan(Bundle([array_of(np.zeros((3000, 1000), "u1"))])).write(target)


def test_a_file_that_ends_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.png", array_of(ramp((300, 300), step=7)))
    array, _ = read(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Corrupt):
        _ = array.data


def test_zlib_stream_in_single_bytes(tmp_path: Path) -> None:
    """Any division into IDAT chunks gives the same image, empty chunks included."""
    values = ramp((3, 5))
    buffer = io.BytesIO()
    pypng.write_chunks(buffer, split_idat(write(tmp_path / "x.png", array_of(values))))
    path = tmp_path / "y.png"
    path.write_bytes(buffer.getvalue())
    assert (values_of(path) == values).all()


def split_idat(path: Path) -> list[tuple[bytes, bytes]]:
    chunks = []
    for kind, data in pypng.Reader(bytes=path.read_bytes()).chunks():
        if kind == b"IDAT":
            assert zlib.decompress(data)
            chunks += [(kind, b"")] + [(kind, data[i : i + 1]) for i in range(len(data))]
        else:
            chunks.append((kind, data))
    return chunks


def test_transparency_of_metadata_is_that_of_the_palette(tmp_path: Path) -> None:
    """No more entries than colours, and a list: a number would be as many bytes."""
    fields = {"color_type": 3, "palette": ["#000000", "#ffffff"]}
    for number, trns in enumerate(([255, 255, 255], [])):
        meta = Metadata(formats={"png": {**fields, "trns": trns}})
        array = Array(np.zeros((2, 2, 3), np.uint8), name="a", index_order="C", meta=meta)
        raconvert.write(tmp_path / f"{number}.png", array)
        assert not raconvert.read(tmp_path / f"{number}.png").any()
    meta = Metadata(formats={"png": {**fields, "trns": 1 << 40}})
    with pytest.raises(Unsupported, match=r"png\.trns"):
        raconvert.write(tmp_path / "x.png", array.replace(meta=meta))
