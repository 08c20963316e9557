"""Animations of GIF and WebP as frames with times, against gifsicle, libwebp and Pillow."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every, rounds
from PIL import Image
from test_image_gif import KEEP, PALETTE, animation

import raconvert
from raconvert import convert
from raconvert.arrays.blocks import blocks
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source

CLEAR, RESTORE = 2, 3  # disposal; KEEP is 1
RNG = np.random.default_rng(8)


def composed(width: int, height: int, patches: list[Any]) -> np.ndarray:
    """Return the frames as the specification has them, pixel by pixel."""
    canvas = np.zeros((height, width, 4), "u1")
    frames = []
    for left, top, indices, disposal, clear, palette in patches:
        before = canvas.copy()
        for (y, x), index in np.ndenumerate(indices):
            if index != clear:
                canvas[top + y, left + x] = [*(PALETTE if palette is None else palette)[index], 255]
        frames.append(canvas.copy())
        if disposal == CLEAR:
            canvas[top : top + indices.shape[0], left : left + indices.shape[1]] = 0
        elif disposal == RESTORE:
            canvas = before
    return np.stack(frames)


def patches_of(seed: int, width: int, height: int, count: int) -> list[Any]:
    """Return frames of random places, disposals, transparent colours and palettes."""
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for number in range(count):
        left, top = (int(rng.integers(0, side)) for side in (width, height))
        size = int(rng.integers(1, height - top + 1)), int(rng.integers(1, width - left + 1))
        if number == 0 and seed % 2:
            left, top, size = 0, 0, (height, width)
        palette = rng.integers(0, 256, (256, 3), dtype="u1") if rng.random() < 0.3 else None
        clear = int(rng.integers(0, 8)) if rng.random() < 0.5 else None
        indices = rng.integers(0, 8, size, dtype="u1")
        made.append((left, top, indices, int(rng.integers(0, 4)), clear, palette))
    return made


def axis_of(path: Path) -> dict[str, Any]:
    with raconvert.open(path) as array:
        return dict(array.axes[0].to_dict())


@every("seed", range(rounds(200, 40)))
def test_frames_are_composed_as_the_specification_has_them(seed: int, tmp_path: Path) -> None:
    patches = patches_of(seed, 9, 7, 2 + seed % 5)
    path = tmp_path / "x.gif"
    path.write_bytes(animation(9, 7, patches))
    expected = composed(9, 7, patches)

    got = raconvert.read(path)

    opaque = got.shape[-1] == 3
    assert np.array_equal(got, expected[..., : got.shape[-1]])
    assert expected[..., 3].min() == 255 or not opaque
    assert axis_of(path) == {"name": "time", "kind": "time", "units": "ms", "spacing": 70}
    with raconvert.open(path) as array:
        flat = np.concatenate([block.reshape(-1).copy() for block in blocks(array, 50)])
        assert np.array_equal(flat, got.reshape(-1))
        for key in (0, -1, slice(1, 3), (1, 2), (slice(None), 3), (..., 1), slice(None, None, -1)):
            assert np.array_equal(array[key], got[key]), key


@every("seed", range(1, 20, 2))
def test_frames_are_those_of_gifsicle(seed: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    """Its --unoptimize gives whole frames; the first one here covers the screen."""
    patches = [(*one[:3], KEEP, *one[4:]) for one in patches_of(seed, 9, 7, 4)]
    patches[0] = (*patches[0][:4], None, patches[0][5])
    path, whole = tmp_path / "x.gif", tmp_path / "whole.gif"
    path.write_bytes(animation(9, 7, patches))
    subprocess.run([tool("gifsicle"), "-U", path, "-o", whole], check=True, capture_output=True)
    with Image.open(whole) as image:
        for number, frame in enumerate(raconvert.read(path)):
            image.seek(number)
            assert np.array_equal(np.asarray(image.convert("RGB")), frame), number


def test_a_transparent_index_above_the_palette(tmp_path: Path) -> None:
    """Pillow writes unchanged pixels of a frame as the index behind a palette of its colours."""
    frames = RNG.integers(0, 4, (4, 9, 9), dtype="u1") * 60
    first, *others = map(Image.fromarray, frames)
    first.save(tmp_path / "x.gif", save_all=True, append_images=others, duration=[10, 20, 30, 40])

    assert np.array_equal(raconvert.read(tmp_path / "x.gif")[..., 0], frames)


def test_durations_and_loops_of_gif(tmp_path: Path) -> None:
    """Equal ones are the spacing of the axis; others its labels, which are cut with the array."""
    frames = [Image.fromarray(RNG.integers(0, 9, (5, 6), "u1")) for _ in range(4)]
    path = tmp_path / "x.gif"
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (40, 0, {"units": "ms", "spacing": 40}),
        ([30, 500, 20, 70], 3, {"units": "ms", "labels": [0, 30, 530, 550]}),
        (0, None, {}),
    ]
    for durations, loop, said in cases:
        words = {} if loop is None else {"loop": loop}
        frames[0].save(
            path, save_all=True, append_images=frames[1:], duration=durations, optimize=False,
            **words,
        )  # fmt: skip

        assert axis_of(path) == {"name": "time", "kind": "time", **said}
        with raconvert.open(path) as array:
            fields = array.meta.formats.get("image", {})
            assert fields.get("loop") == loop
            assert fields.get("durations") == (durations if isinstance(durations, list) else None)
            assert array.shape == (4, 5, 6, 3)
            if "labels" in said:
                assert array.slicer[1:3].axes[0].labels == (30, 530)


def test_an_image_that_does_not_fill_its_screen_is_on_a_transparent_one(tmp_path: Path) -> None:
    patches: list[Any] = [(1, 1, np.full((2, 3), 6, "u1"), KEEP, None, None)]
    path = tmp_path / "x.gif"
    path.write_bytes(animation(5, 4, patches))

    got = raconvert.read(path)

    assert np.array_equal(got, composed(5, 4, patches)[0])
    assert raconvert.info(path)["arrays"][0]["shape"] == [4, 5, 4]


def test_frames_above_the_memory_are_streamed(tmp_path: Path) -> None:
    """A conversion has one frame in memory; a region those that it asks for."""
    count, side = 40, 300
    patches: list[Any] = [(0, 0, np.full((side, side), 3, "u1"), KEEP, None, None)]
    patches += [(n, n, np.full((5, 5), n, "u1"), KEEP, None, None) for n in range(1, count)]
    path = tmp_path / "x.gif"
    path.write_bytes(animation(side, side, patches))
    expected = composed(side, side, patches)[..., :3]
    tracemalloc.start()
    raconvert.convert(path, tmp_path / "x.npy", max_memory=4 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 5 << 20 < expected.nbytes
    assert np.array_equal(np.load(tmp_path / "x.npy"), expected)
    with raconvert.open(path, max_memory=4 << 20) as array:
        assert np.array_equal(array[30:33, 5:9], expected[30:33, 5:9])
        assert np.array_equal(array[-1], expected[-1])


# WebP --------------------------------------------------------------------------------------------


def three(value: int) -> bytes:
    return value.to_bytes(3, "little")


def chunk(name: bytes, data: bytes) -> bytes:
    return name + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2)


def lossless(values: np.ndarray, tmp_path: Path) -> bytes:
    """Return the chunks of an image that libwebp has encoded."""
    path = tmp_path / "one.webp"
    Image.fromarray(values).save(path, lossless=True, exact=True)
    data = path.read_bytes()
    while data[12:16] not in (b"VP8L", b"VP8 "):
        data = data[:12] + data[20 + int.from_bytes(data[16:20], "little") :]
    return data[12:]


def webp(width: int, height: int, frames: list[Any], flags: int = 2, loop: int = 0) -> bytes:
    """Return an animation of frames: left, top, columns, rows, duration, flags, chunks."""
    body = b"WEBP" + chunk(b"VP8X", bytes([flags, 0, 0, 0]) + three(width - 1) + three(height - 1))
    body += chunk(b"ANIM", b"\xff\0\0\xff" + struct.pack("<H", loop))
    for left, top, columns, rows, duration, bits, image in frames:
        head = three(left // 2) + three(top // 2) + three(columns - 1) + three(rows - 1)
        body += chunk(b"ANMF", head + three(duration) + bytes([bits]) + image)
    return chunk(b"RIFF", body)


@every("alpha", [False, True])
@every("lossy", [False, True])
def test_webp_of_pillow(lossy: bool, alpha: bool, tmp_path: Path) -> None:
    """Pillow's frames, whatever libwebp has left out of each."""
    values = RNG.integers(0, 256, (5, 20, 30, 4), "u1")
    values[..., 3] = 255 if not alpha else np.where(values[..., 3] > 99, 255, 90)
    values[1:, 5:] = values[0, 5:]
    frames = [Image.fromarray(one if alpha else one[..., :3].copy()) for one in values]
    path = tmp_path / "x.webp"
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=[10, 20, 30, 40, 50],
        lossless=not lossy, loop=2,
    )  # fmt: skip

    got = raconvert.read(path)

    with Image.open(path) as image:
        for number in range(5):
            image.seek(number)
            theirs = np.asarray(image.convert("RGBA"))[..., : got.shape[-1]]
            assert np.array_equal(got[number], theirs), number
    if not lossy and not alpha:
        assert np.array_equal(got, values[..., :3])
    assert axis_of(path)["labels"] == [0, 10, 30, 60, 100]
    with raconvert.open(path) as array:
        fields = array.meta.formats["image"]
        assert (fields["durations"], fields["loop"]) == ([10, 20, 30, 40, 50], 2)


def test_frames_of_webp_are_placed_and_cleared(tmp_path: Path) -> None:
    """What no frame covers is transparent, though the header announces no alpha."""
    values = RNG.integers(0, 256, (6, 8, 3), "u1")
    image = lossless(values, tmp_path)
    dispose, blend = 1, 0
    frames = [(2, 4, 8, 6, 70, dispose, image), (8, 0, 8, 6, 70, blend, image)]
    path = tmp_path / "x.webp"
    path.write_bytes(webp(20, 12, frames))
    expected = np.zeros((2, 12, 20, 4), "u1")
    for number, (left, top) in enumerate([(2, 4), (8, 0)]):
        expected[number, top : top + 6, left : left + 8, :3] = values
        expected[number, top : top + 6, left : left + 8, 3] = 255

    assert np.array_equal(raconvert.read(path), expected)
    assert axis_of(path)["spacing"] == 70


def test_frames_of_webp_are_those_of_webpmux(tmp_path: Path, tool: Callable[..., str]) -> None:
    """Each taken out and decoded by libwebp's own tools; whole frames are not composed."""
    values = RNG.integers(0, 256, (3, 12, 20, 3), "u1")
    frames = [(0, 0, 20, 12, 30, 2, lossless(one, tmp_path)) for one in values]
    path, one, pam = tmp_path / "x.webp", tmp_path / "frame.webp", tmp_path / "frame.ppm"
    path.write_bytes(webp(20, 12, frames))
    got = raconvert.read(path)

    assert got.shape == (3, 12, 20, 3)
    for number, frame in enumerate(got):
        command = [tool("webpmux"), "-get", "frame", str(number + 1), path, "-o", one]
        subprocess.run(command, check=True, capture_output=True)
        command = [tool("dwebp"), "-quiet", "-ppm", one, "-o", pam]
        subprocess.run(command, check=True, capture_output=True)
        assert np.array_equal(raconvert.read(pam), frame)


# Hostile -----------------------------------------------------------------------------------------

DOT = b"\x02\x02\x44\x01\0"  # one pixel, code size 2
HEAD = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
HUGE_SCREEN = b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + bytes(6)


def frame(left: int = 0, top: int = 0, size: tuple[int, int] = (1, 1), data: bytes = DOT) -> bytes:
    return b"," + struct.pack("<HHHHB", left, top, *size, 0) + data


def control(flags: int = 0, block: bytes = b"\x04") -> bytes:
    return b"!\xf9" + block + struct.pack("<BHB", flags, 5, 0) + b"\0"


EMPTY_VP8L = chunk(b"VP8L", b"\x2f\0\0\0\0\0\0\0")
ONE = (0, 0, 1, 1, 10, 0, bytes.fromhex("5650384c0f0000002f000000000710fd8ffe0722a2ff0100"))
HOSTILE: dict[str, tuple[bytes, type[RaconvertError]]] = {
    "huge_screen.gif": (HUGE_SCREEN + frame() * 2 + b";", TooLarge),
    "many_frames_of_a_large_screen.gif": (
        b"GIF89a" + struct.pack("<HHBBB", 900, 900, 0x80, 0, 0) + bytes(6) + frame() * 90 + b";", TooLarge),
    "outside.gif": (HEAD + frame() + frame(4, 0) + b";", Unsupported),
    "far_outside.gif": (HEAD + frame() + frame(65535, 65535) + b";", Unsupported),
    "large_frame.gif": (HEAD + frame() + frame(size=(60000, 60000)) + b";", Unsupported),
    "frame_without_pixels.gif": (HEAD + frame() + frame(size=(0, 1)) + b";", Corrupt),
    "pixels_missing.gif": (HEAD + frame() + frame(size=(4, 4)) + b";", Corrupt),
    "code_size.gif": (HEAD + frame() + frame(data=b"\x0c\x02\x44\x01\0") + b";", Corrupt),
    "no_codes.gif": (HEAD + frame() + frame(data=b"\x02\0") + b";", Corrupt),
    "wrong_codes.gif": (HEAD + frame() + frame(size=(4, 4), data=b"\x02\x04\xff\xff\xff\xff\0") + b";", Corrupt),
    "disposal.gif": (HEAD + frame() + control(5 << 2) + frame() + b";", Unsupported),
    "disposal_of_the_first.gif": (HEAD + control(7 << 2) + frame() * 2 + b";", Unsupported),
    "no_end.gif": (HEAD + frame() * 2, Corrupt),
    "cut_frame.gif": (HEAD + frame() + frame()[:5], Corrupt),
    "cut_control.gif": (HEAD + frame() + b"!\xf9\x04\0", Corrupt),
    "short_control.gif": (HEAD + frame() + b"!\xf9\0" + frame()[:4], Corrupt),
    "unknown_block.gif": (HEAD + frame() * 2 + b"x;", Corrupt),
    "no_palette.gif": (b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + frame() * 2 + b";", Corrupt),
    "colours_missing.gif": (HEAD + frame() + frame(data=b"\x02\x02\x5c\x01\0") + b";", Corrupt),
    "cut_palette.gif": (HEAD + frame() + b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0x87) + b"\0" * 9, Corrupt),
    "cut_loop.gif": (HEAD + frame() + b"!\xff\x0bNETSCAPE2.0\x03\x01", Corrupt),
    "huge_canvas.webp": (webp(1 << 24, 1 << 24, [ONE, ONE]), RaconvertError),
    "many_frames_of_a_large_canvas.webp": (webp(900, 900, [ONE] * 90), TooLarge),
    "no_frames.webp": (webp(4, 4, []), Corrupt),
    "no_frames_but_chunks.webp": (webp(4, 4, [])[:-2] + chunk(b"ABCD", b"1234"), Corrupt),
    "outside.webp": (webp(4, 4, [ONE, (4, 0, *ONE[2:])]), Corrupt),
    "far_outside.webp": (webp(4, 4, [ONE, (1 << 24, 0, *ONE[2:])]), Corrupt),
    "large_frame.webp": (webp(4, 4, [ONE, (0, 0, 1 << 24, 1 << 24, *ONE[4:])]), Corrupt),
    "another_size_inside.webp": (webp(4, 4, [ONE, (0, 0, 3, 3, *ONE[4:])]), Corrupt),
    "frame_without_image.webp": (webp(4, 4, [ONE, (*ONE[:6], b"")]), Corrupt),
    "frame_of_a_comment.webp": (webp(4, 4, [ONE, (*ONE[:6], chunk(b"ABCD", b"12"))]), Corrupt),
    "damaged_image.webp": (webp(4, 4, [ONE, (*ONE[:6], EMPTY_VP8L)]), Corrupt),
    "short_frame.webp": (chunk(b"RIFF", webp(4, 4, [])[8:] + chunk(b"ANMF", b"12345")), Corrupt),
    "chunk_behind_the_end.webp": (chunk(b"RIFF", webp(4, 4, [ONE])[8:] + b"ANMF\xff\xff\xff\x7f"), Corrupt),
    "cut.webp": (webp(4, 4, [ONE, ONE])[:-9], Corrupt),
    "cut_length.webp": (b"RIFF\xff\xff\xff\x7f" + webp(4, 4, [ONE])[8:], Corrupt),
    "no_flags.webp": (b"RIFF\0\0\0\0WEBPVP8X", Corrupt),
    "no_canvas.webp": (b"RIFF\x12\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0", Corrupt),
    "not_animated_inside.webp": (webp(4, 4, [])[:-6] + ONE[6], Corrupt),
    "alpha_not_announced.webp": (b"", Corrupt),
    "frames_of_frames.webp": (webp(4, 4, [(*ONE[:6], chunk(b"ANMF", bytes(16) + ONE[6]))]), Corrupt),
    "two_images_in_a_frame.webp": (webp(4, 4, [ONE, (*ONE[:6], ONE[6] + b"\xff" * 8)]), Corrupt),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_animations(name: str, tmp_path: Path) -> None:
    """Refused by an error of ours that names the file, and nothing is written."""
    data, error = HOSTILE[name]
    if not data:
        values = RNG.integers(0, 200, (4, 4, 4), "u1")
        part = (0, 0, 4, 4, 10, 2, lossless(values, tmp_path))
        (tmp_path / "one.webp").unlink()
        data = webp(4, 4, [part, part])
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(error, match=name.replace(".", r"\.")):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=64 << 20)
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("form", ["gif", "webp"])
def test_frames_are_bounded_by_the_limits(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(HEAD + frame() * 9 + b";" if form == "gif" else webp(4, 4, [ONE] * 9))
    plugin = import_module(f"raconvert.plugins.image.{form}")

    with pytest.raises(Unsupported, match="very many frames(.|\n)*at most 8"):
        plugin.read(Source(str(path), limits=Limits(image_frames=8)))
    with plugin.read(Source(str(path), limits=Limits(image_frames=9))) as bundle:
        assert len(np.asarray(bundle.arrays[0])) == 9


# Writing animations -------------------------------------------------------------------------------


def frames_of(count: int, channels: int) -> np.ndarray:
    """Return noise, of which two frames are equal, and pixels that are transparent in all ways."""
    values = np.random.default_rng(count).integers(0, 256, (count, 11, 14, channels), "u1")
    values[-1] = values[0]
    if channels == 4:
        values[..., :5, 3] = 0
        values[0, ..., 3] = 255
    return values


TIMES: dict[str, tuple[Axis, dict[str, Any], list[int]]] = {
    "even": (Axis("time", kind="time", units="ms", spacing=40), {}, [40] * 4),
    "seconds": (Axis("T", units="s", spacing=0.5), {"loop": 3}, [500] * 4),
    "unknown": (Axis("time", kind="time"), {}, [0] * 4),
    "uneven": (Axis("time", kind="time", units="ms", labels=[0, 40, 40, 110]),
               {"durations": [40, 0, 70, 9], "loop": 0}, [40, 0, 70, 9]),
}  # fmt: skip


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("channels", [3, 4])
def test_written_animations_of_webp(
    channels: int, times: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Every frame comes back, equal ones too, with its duration; Pillow and webpmux agree."""
    axis, fields, durations = TIMES[times]
    values, path = frames_of(4, channels), tmp_path / "x.webp"
    meta = Metadata(axes=[axis, *[Axis()] * 3], formats={"image": fields} if fields else None)
    report = raconvert.write(path, values, meta=meta)

    assert bool(list(report.equivalent)) == (times == "seconds")
    with raconvert.open(path) as array:
        assert np.array_equal(np.asarray(array), values)
        assert np.array_equal(array[2:0:-1, 3], values[2:0:-1, 3])
        own = array.meta.formats["image"]
        assert own["loop"] == fields.get("loop", 0)
        assert own.get("durations", durations) == durations
        if times != "seconds":
            assert array.axes[0].to_dict() == axis.to_dict()
    with Image.open(path) as image:
        assert image.n_frames == 4
        for number, frame in enumerate(values):
            image.seek(number)
            image.load()
            assert image.info["duration"] == durations[number]
            assert np.array_equal(np.asarray(image.convert("RGBA"))[..., :channels], frame)
    listed = subprocess.run([tool("webpmux"), "-info", path], check=True, capture_output=True)
    assert b"Number of frames: 4" in listed.stdout
    convert(path, tmp_path / "y.webp")
    assert (tmp_path / "y.webp").read_bytes() == path.read_bytes()


def test_an_animation_goes_through_other_formats(tmp_path: Path) -> None:
    """GIF with its times becomes WebP, and a file of NumPy with a sidecar does."""
    first, *others = [Image.fromarray(one) for one in frames_of(3, 3)]
    first.save(tmp_path / "x.gif", save_all=True, append_images=others, duration=[40, 70, 90])
    convert(tmp_path / "x.gif", tmp_path / "x.ra")
    convert(tmp_path / "x.ra", tmp_path / "x.webp")

    with raconvert.open(tmp_path / "x.gif") as gif, raconvert.open(tmp_path / "x.webp") as webp:
        assert np.array_equal(np.asarray(gif), np.asarray(webp))
        assert gif.meta.formats["image"]["durations"] == webp.meta.formats["image"]["durations"]
        assert gif.axes == webp.axes


@pytest.mark.parametrize(
    "axis",
    [None, Axis("Z", units="um", spacing=1.0), Axis("time", kind="time", units="s", spacing=1e9)],
)
def test_frames_that_are_no_animation_are_refused(axis: Axis | None, tmp_path: Path) -> None:
    meta = Metadata(axes=[axis, *[Axis()] * 3]) if axis else None
    with pytest.raises(WouldLose, match="shape"):
        raconvert.write(tmp_path / "x.webp", frames_of(3, 3), meta=meta)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("suffix", "channels"), [("gif", 3), ("webp", 3), ("webp", 4)])
def test_frames_without_times_take_the_duration_that_is_said(
    suffix: str, channels: int, tmp_path: Path
) -> None:
    """A stack of NumPy becomes an animation, as the refusal says; Pillow reads it."""
    values = frames_of(5, channels)
    values = values // 64 * 64 if suffix == "gif" else values  # of few colours
    np.save(tmp_path / "a.npy", values)
    target = tmp_path / f"a.{suffix}"
    with pytest.raises(WouldLose, match=r"duration\W+100"):
        convert(tmp_path / "a.npy", target)
    convert(tmp_path / "a.npy", target, out_opts={"duration": 70}, verify=True)
    with Image.open(target) as picture:
        assert picture.n_frames == 5
        for number, frame in enumerate(values):
            picture.seek(number)
            shown = np.asarray(picture.convert("RGBA" if channels == 4 else "RGB"))
            assert np.array_equal(shown[..., :3], frame[..., :3])
            assert picture.info["duration"] == 70
    with pytest.raises(WouldLose):
        convert(tmp_path / "a.npy", tmp_path / f"b.{suffix}", out_opts={"duration": 1 << 30})


@pytest.mark.parametrize("loop", [None, 0, 7])
@pytest.mark.parametrize("durations", [[40] * 4, [40, 0, 70, 90], [0] * 4])
def test_written_animations_of_gif(
    durations: list[int], loop: int | None, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Of at most 256 colours in each frame; Pillow and gifsicle agree."""
    rng = np.random.default_rng(6)
    tables = rng.integers(0, 256, (4, 256, 3), "u1")
    values = np.stack([table[rng.integers(0, 256, (20, 30))] for table in tables])
    values[2] = values[1]
    labels = None if len({*durations}) == 1 else [0, 40, 40, 110]
    step = durations[0] or None if labels is None else None
    axis = Axis("time", kind="time", units="ms" if step or labels else None, spacing=step,
                labels=labels)  # fmt: skip
    fields = ({} if loop is None else {"loop": loop}) | ({"durations": durations} if labels else {})
    meta = Metadata(axes=[axis, *[Axis()] * 3], formats={"image": fields} if fields else None)
    path = tmp_path / "x.gif"

    assert not raconvert.write(path, values, meta=meta).equivalent

    with raconvert.open(path) as array:
        assert np.array_equal(np.asarray(array), values)
        assert array.meta.to_dict() == meta.to_dict()
    with Image.open(path) as image:
        assert image.n_frames == 4
        for number, frame in enumerate(values):
            image.seek(number)
            assert image.info["duration"] == durations[number]
            assert np.array_equal(np.asarray(image.convert("RGB")), frame)
    listed = subprocess.run([tool("gifsicle"), "--info", path], check=True, capture_output=True)
    assert b"4 images" in listed.stdout


@pytest.mark.parametrize("form", ["gif", "webp"])
@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({"loop": 3, "durations": [10, 20, 30]}, ""),
        ({"loop": 1 << 16}, "image.loop"),
        ({"loop": "3"}, "image.loop"),
        ({"durations": [10, 20]}, "image.durations"),
    ],
)
def test_fields_that_an_animation_cannot_hold_are_lost(
    fields: dict[str, Any], lost: str, form: str, tmp_path: Path
) -> None:
    """They may be edited in a sidecar, or be those of an array before frames were cut off."""
    axis = Axis("time", kind="time", units="ms", labels=[0, 10, 30] if not lost else None)
    meta = Metadata(axes=[axis, *[Axis()] * 3], formats={"image": fields})

    report = raconvert.write(tmp_path / f"x.{form}", np.zeros((3, 4, 5, 3), "u1"), meta=meta)

    words = " ".join(map(str, report.equivalent))
    assert ("image." in words) == bool(lost)
    assert lost in words


def test_frames_of_many_colours_are_no_gif(tmp_path: Path) -> None:
    values = np.zeros((3, 20, 30, 3), "u1")
    values[1] = np.arange(600)[:, None].view("u1").reshape(20, 30, -1)[..., :3]
    meta = Metadata(axes=[Axis("time", kind="time"), *[Axis()] * 3])
    with pytest.raises(WouldLose, match=r"600 colours(.|\n)*frame 1"):
        raconvert.write(tmp_path / "x.gif", values, meta=meta)
    odd = Metadata(axes=[Axis("time", kind="time", units="ms", spacing=15), *[Axis()] * 3])
    with pytest.raises(WouldLose, match="shape"):
        raconvert.write(tmp_path / "x.gif", values[:1].repeat(3, 0), meta=odd)
    assert list(tmp_path.iterdir()) == []
