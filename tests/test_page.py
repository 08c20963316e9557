"""Pages about files: their programs run, their HTML is parsed, their claims are compared."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tracemalloc
from base64 import b64encode
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING

import h5py
import html5lib
import numpy as np
import pytest
import scipy.io
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import WouldLose
from raconvert.views.pages.array import section_of
from raconvert.views.pages.file import EQUIVALENT, EXACT, REFUSED, _changed, passport
from raconvert.views.pages.programs import Stored, programs, stored_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

MOST = 150_000  # bytes of a page
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>"


def page(path: Path, capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> str:
    assert main(["info", str(path), "--html", "-o", "-", *words]) == 0
    text = capfdbinary.readouterr().out.decode()
    assert len(text.encode()) < MOST
    return text


class Tags(HTMLParser):
    """All tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def check(text: str) -> Tags:
    """A page is valid HTML, loads nothing, and runs nothing but the one script that it allows."""
    html5lib.HTMLParser(strict=True).parse(text)
    found = Tags(text)
    assert not {tag for tag, _ in found.tags} & {"iframe", "object", "link", "base"}
    scripts = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert [tag for tag, _ in found.tags].count("script") == len(scripts) <= 1
    allowed = [b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert re.findall(r"script-src 'sha256-([^']+)'", text) == allowed
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("data:image/png;base64,"), (tag, value)
        if tag in ("img", "svg"):
            assert attributes.get("alt") or attributes.get("aria-label")
    assert "url(" not in text
    assert "@import" not in text
    return found


# Programs ----------------------------------------------------------------------------------------

VALUES = np.arange(-30, 30).reshape(3, 4, 5)
TYPES = ["i1", "u1", "<i2", ">u2", "<u4", ">u4", "<i8", ">u8", "<f4", ">f8", "<c8", ">c16", "?"]


def stored(folder: Path, dtype: str, order: str) -> tuple[Path, np.ndarray]:
    """A file of some values that numpy itself has written."""
    values = np.abs(VALUES) % 128 if np.dtype(dtype).kind in "ub" else VALUES
    whole = values.astype(dtype)
    if whole.dtype.kind == "c":
        whole = (whole + 1j * VALUES[::-1]).astype(dtype)
    path = folder / f"{TYPES.index(dtype)}-{order}.npy"
    np.save(path, np.asarray(whole, order=order))  # type: ignore[call-overload]
    return path, whole


def programs_of(path: Path) -> tuple[Stored, dict[str, str]]:
    with raconvert.open(path) as array:
        assert isinstance(array, raconvert.Array)
        found = stored_of(array, path.name)
    assert found is not None
    return found, programs(found)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_the_python_program_reads_the_array(tmp_path: Path, dtype: str, order: str) -> None:
    path, values = stored(tmp_path, dtype, order)
    _, found = programs_of(path)
    space: dict[str, np.ndarray] = {}
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        exec(found["Python"], space)
    finally:
        os.chdir(here)
    assert space["x"].dtype == values.dtype
    assert np.array_equal(space["x"], values)


def test_the_c_programs_read_the_arrays(tmp_path: Path, tool: Callable[..., str]) -> None:
    """All types in one program each, compiled as it is on the page, but for what it does then."""
    for dtype in TYPES:
        path, values = stored(tmp_path, dtype, "C")
        _, found = programs_of(path)
        source, made = tmp_path / "read.c", tmp_path / "read"
        tail = "    fwrite(x, sizeof *x, n, stdout);\n    return 0;\n}"
        source.write_text(found["C"].removesuffix("    return 0;\n}") + tail)
        words = [tool("gcc"), "-O0", "-Wall", "-Wextra", "-Werror", "-o", str(made), str(source)]
        subprocess.run(words, check=True)
        out = subprocess.run([made], cwd=tmp_path, check=True, capture_output=True).stdout
        native = values.astype(values.dtype.newbyteorder("="))
        assert out == native.tobytes(), dtype
        index = re.search(r"/\* x\[(.*)\] is element \[i, j, k\] \*/", found["C"])
        assert index is not None
        at = eval(index[1], {"i": 1, "j": 2, "k": 3})
        assert native.reshape(-1)[at] == native[1, 2, 3]


def test_the_matlab_programs_read_the_arrays_in_octave(
    tmp_path: Path, octave: Callable[..., str]
) -> None:
    script, expected = [], []
    for number, dtype in enumerate(TYPES):
        path, values = stored(tmp_path, dtype, "C")
        plain, found = programs_of(path)
        assert plain.dims == (5, 4, 3)
        script += [found["MATLAB"], f"x{number} = x;"]
        expected.append(values.T)
    names = ", ".join(f"'x{number}'" for number in range(len(TYPES)))
    script.append(f"save('-v6', 'out.mat', {names});")
    octave("\n".join(script), cwd=tmp_path)
    out = scipy.io.loadmat(tmp_path / "out.mat")
    for number, values in enumerate(expected):
        assert np.array_equal(out[f"x{number}"], values), TYPES[number]


# How R writes what the program has read, and the type of that.
SAID_BY_R = {
    "integer": ("writeBin(as.vector(x), f)", "<i4"), "double": ("writeBin(as.vector(x), f)", "<f8"),
    "complex": ("writeBin(as.vector(x), f)", "<c16"), "logical": ("writeBin(as.integer(x), f)", "<i4"),
    "raw": ("writeBin(as.vector(x), f)", "u1"),
}  # fmt: skip


def test_the_r_programs_read_the_arrays_in_r(tmp_path: Path, r: Callable[..., str]) -> None:
    """All types; those that R has not are bytes, as the program says."""
    script, expected = [], []
    for number, dtype in enumerate(TYPES):
        path, values = stored(tmp_path, dtype, "C")
        _, found = programs_of(path)
        lines = "; ".join(f"{kind} = {code}" for kind, (code, _) in SAID_BY_R.items())
        lines = ", ".join(lines.split("; "))
        script += [
            found["R"], f'f <- file("{number}.out", "wb")', f"switch(typeof(x), {lines})",
            "close(f)", "cat(typeof(x), dim(x), '\\n')",
        ]  # fmt: skip
        expected.append(values)
    said = r("\n".join(script), tmp_path).splitlines()
    for number, values in enumerate(expected):
        kind, *dims = said[number].split()
        out = np.fromfile(tmp_path / f"{number}.out", SAID_BY_R[kind][1])
        shape = tuple(map(int, dims))
        if kind == "raw":  # 64 bits, of which R has no numbers
            assert "# R has no such numbers" in script[5 * number], TYPES[number]
            assert out.tobytes() == values.tobytes(), TYPES[number]
            assert shape == (values.itemsize, *values.shape[::-1])
        else:
            assert shape == values.shape[::-1], TYPES[number]
            assert np.array_equal(out.reshape(values.shape), values), TYPES[number]


def test_programs_of_an_encoded_array_are_true_once_it_is_plain(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(60, dtype=">i4").reshape(3, 4, 5)
    with h5py.File(tmp_path / "a b.h5", "w") as file:
        file.create_dataset("g/x", data=values, compression="gzip")
        file["y"] = np.arange(3.0)
    found = check(page(tmp_path / "a b.h5", capfdbinary))
    (line,) = re.findall(r"^raconvert '(.*)' -o (x\.ra)$", found.words, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main([line[0], "-o", line[1]]) == 0
    (code,) = re.findall(r"^import numpy as np\n(?:x = .*\n?)+", found.words, re.MULTILINE)
    space: dict[str, np.ndarray] = {}
    exec(code, space)
    assert np.array_equal(space["x"], values)
    assert "yes: by deflate" in found.words


# Pages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        ([("a", ">i4"), ("b", "<f8")], "structured, in NumPy [('a', '>i4'), ('b', '<f8')]"),
        ("<U3", "U3, little-endian"),
        (">U3", "U3, big-endian"),
        ("S3", "S3, the order of bytes does not matter"),
        ("<M8[D]", "M8[D], little-endian"),
        ("u1", "uint8, the order of bytes does not matter"),
    ],
    ids=str,
)
def test_the_order_of_bytes_is_said_of_every_type(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], dtype: Any, said: str
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3, dtype))
    assert said in check(page(tmp_path / "x.npy", capfdbinary)).words


def test_what_holds_structures_instead_of_an_image_does_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 4), [("a", "i4"), ("b", "f8")]))
    assert main([str(path), "-o", str(tmp_path / "x.gif")]) == 4
    assert "; NPY and RA hold it" in capsys.readouterr().err
    assert main([str(path), "-o", str(tmp_path / "x.tif")]) == 4
    assert main([str(path), "-o", str(tmp_path / "x.ra")]) == 0


def test_a_page_answers_what_is_asked_first(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], tool: Callable[..., str]
) -> None:
    path = tmp_path / "scan.npy"
    np.save(path, np.random.default_rng(1).normal(size=(6, 40, 50)).astype("f4"))
    found = check(page(path, capfdbinary))

    assert "float32, little-endian" in found.words
    assert "shape (6, 40, 50)" in found.words
    assert "Array{Float32,3}, 50 × 40 × 6" in found.words
    assert "no: as they are from byte 128 of scan.npy" in found.words
    assert sum(tag == "img" for tag, _ in found.tags) == 5
    (line,) = re.findall(r"^[0-9a-f]{64}  scan\.npy$", found.words, re.MULTILINE)[:1]
    subprocess.run(
        [tool("sha256sum"), "--check", "-"], input=line.encode(), cwd=tmp_path, check=True
    )


def test_the_passport_is_what_converting_does(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12, dtype="f2").reshape(3, 4))
    with open_spec(str(path), Settings()) as opened:
        visas = passport(opened, opened.array)
    assert {visa.outcome for visa in visas} >= {EXACT, EQUIVALENT, REFUSED}
    for visa in visas:
        target = tmp_path / "out" / f"x{visa.suffix}"
        target.parent.mkdir(exist_ok=True)
        try:
            report = raconvert.convert(path, target, to=visa.format, overwrite=True)
        except WouldLose as error:
            said = str(error)
        else:
            said = ""
        if visa.outcome == REFUSED:
            assert any(reason in said for reason in visa.reasons), visa
            continue
        assert not said, visa
        assert visa.outcome == (EQUIVALENT if report.equivalent else EXACT)
        assert visa.reasons[: len(report.equivalent)] == tuple(map(str, report.equivalent))


def test_nothing_in_a_file_is_obeyed(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "<b>&amp;\u202e\n.h5"
    with h5py.File(path, "w") as file:
        file.attrs[HOSTILE] = HOSTILE
        file[HOSTILE.replace("/", "")] = np.eye(9)
        file["text"] = np.array([HOSTILE.encode()] * 3)
        file["text"].attrs["units"] = HOSTILE
    found = check(page(path, capfdbinary))
    assert HOSTILE in found.words
    assert not {"b"} - {tag for tag, _ in found.tags}  # ours alone: of the short facts
    assert "\u202e" not in found.words
    assert {tag for tag, _ in found.tags if tag == "img"} <= {"img"}
    assert all("onerror" not in attributes for _, attributes in found.tags)


FILES = (
    ("npy", "npy_*.npy"), ("nrrd", "real/*"), ("har", "*.har"), ("mat-hdf5", "mat/*.mat"),
    ("mat-hdf5", "hdf5/*.h5"), ("png", "pngsuite/*n2c*.png"), ("ra", "*.ra"), ("scidb", "*.bin"),
    ("detect", "*"), ("png", "crashers/*.png"),
)  # fmt: skip


def test_pages_of_real_files_are_small_and_valid(
    corpus: Callable[..., Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    shown, formats = 0, set()
    for folder, pattern in FILES:
        for path in sorted(corpus(folder).glob(pattern))[:6]:
            try:
                with raconvert.open(path) as opened:
                    del opened
            except raconvert.errors.RaconvertError:
                continue
            words = check(page(path, capfdbinary)).words
            formats.add(re.search(r"^(.*) \(", words.split(path.name, 2)[2].strip())[1])  # type: ignore[index]
            shown += 1
    assert shown >= 40
    assert len(formats) >= 8


def test_a_page_reads_little_of_a_huge_file(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "huge.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(1000, 1000, 1000))
    if os.stat(path).st_blocks * 512 > 1 << 20:
        pytest.skip("the file system has no holes")
    with open_spec(str(path), Settings()) as opened:
        assert opened.array.nbytes == 4 * 10**9
    before = int(re.search(r"rchar: (\d+)", read_io())[1])  # type: ignore[index]
    found = check(page(path, capfdbinary))
    after = int(re.search(r"rchar: (\d+)", read_io())[1])  # type: ignore[index]
    assert after - before < 32 << 20
    assert "which were never written" in found.words
    assert "--full" in found.words


def read_io() -> str:
    with open("/proc/self/io") as file:
        return file.read()


def test_a_page_replaces_nothing_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.eye(3))
    target = tmp_path / "x.html"
    assert main(["info", str(path), "--html", "-o", str(target)]) == 0
    first = target.read_bytes()
    assert main(["info", str(path), "--html", "-o", str(target)]) == 5
    assert main(["info", str(path), "--html", "-o", str(path), "--overwrite"]) != 0
    assert target.read_bytes() == first
    assert np.array_equal(np.load(path), np.eye(3))
    assert main(["info", str(path), "--html"]) == 2
    assert main(["info", str(path), "-o", str(target)]) == 2


def asked_for(browser: str, address: str, folder: Path) -> set[str]:
    """The places that Chromium asks while it shows a page, and draws to shot.png, but its own."""
    log = folder / "net.json"
    words = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--disable-background-networking", "--disable-component-update", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
        "--window-size=900,1200", f"--screenshot={folder / 'shot.png'}", address,
    ]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    its_own = re.compile(r"https?://[\w.]+\.(google|googleapis|gvt1)\.com|chrome://.*")
    asked = set(re.findall(r'"url":"([a-z]+://[^/"]*)', log.read_text()))
    return {place for place in asked if not its_own.fullmatch(place)}


def test_a_browser_shows_it(tmp_path: Path, tool: Callable[..., str]) -> None:
    """Rendered in Chromium: the pictures are there, and no other place was asked for anything."""
    browser = tool("chromium")
    other = tmp_path / "other.html"
    other.write_text("<!DOCTYPE html><title>x</title><img alt=x src='http://elsewhere.invalid/x'>")
    assert asked_for(browser, other.as_uri(), tmp_path) == {"http://elsewhere.invalid"}

    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(1).normal(size=(4, 60, 60)))
    assert main(["info", str(path), "--html", "-o", str(tmp_path / "x.html")]) == 0
    assert asked_for(browser, (tmp_path / "x.html").as_uri(), tmp_path) == set()
    with Image.open(tmp_path / "shot.png") as image:
        colors = image.convert("RGB").getcolors(1 << 24)
    assert colors is not None
    assert len(colors) > 100


# Notebooks ---------------------------------------------------------------------------------------


def cell(shown: Any) -> Tags:
    """What a notebook shows; its style stands in the body, which strict parsers do not like."""
    text = shown._repr_html_()
    style = re.search(r"<style>.*?</style>", text, re.DOTALL)
    return check(f"<!DOCTYPE html><title>x</title><body>{text.replace(style[0], '')}")


def test_a_notebook_shows_arrays_bundles_and_reports(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = np.random.default_rng(1).normal(size=(4, 30, 30))
        file["<b>"] = np.arange(5)
    with raconvert.open(tmp_path / "x.h5") as bundle:
        found = cell(bundle)
        assert "Bundle of 2 arrays" in found.words
        assert "float64 (4, 30, 30), 28.8 kB" in found.words
        assert {"img", "svg"} <= {tag for tag, _ in found.tags}  # of each a picture
        assert not {"script", "button"} & {tag for tag, _ in found.tags}
        assert "<b>" in found.words
        picture = cell(bundle["a"])
        assert "float64, shape (4, 30, 30) C, dims 30 × 30 × 4" in picture.words
        assert sum(tag == "img" for tag, _ in picture.tags) == 4
        assert any(tag == "svg" for tag, _ in cell(bundle["<b>"]).tags)
    report = raconvert.convert(tmp_path / "x.h5", tmp_path / "x.mat", allow=["names"])
    said = cell(report).words
    assert "wrote" in said
    assert [str(fit) for fit in report.equivalent if str(fit) not in said] == []
    broken = raconvert.Array.unreadable("x", raconvert.errors.Corrupt("is <odd>"))
    assert "cannot be read: is <odd>" in cell(broken).words


# What cannot be read ------------------------------------------------------------------------------


def _middle(path: Path) -> None:
    """Damage 40 bytes in the middle of a file."""
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 40):
        data[place] ^= 0xFF
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _damaged(folder: Path, suffix: str) -> Path:
    """A file of one array whose header is sound, and whose elements are not."""
    path = folder / f"x{suffix}"
    wild = np.random.default_rng(3).integers(0, 256, (64, 90), "u1")
    if suffix in (".h5", ".nc"):
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", data=wild, chunks=(64, 90), compression=9)
            place = dataset.id.get_chunk_info(0).byte_offset
        data = bytearray(path.read_bytes())
        data[place + 2 : place + 90] = bytes(88)
        path.write_bytes(data)
    elif suffix == ".npz":
        np.savez_compressed(path, x=wild)
        _middle(path)
    elif suffix == ".zarr":
        raconvert.write(path, {"x": wild})
        _cut(max((one for one in path.rglob("*") if one.is_file()), key=lambda f: f.stat().st_size))
    else:
        raconvert.write(path, wild)
        _middle(path)
    return path


DAMAGED = (".h5", ".nc", ".npz", ".zarr", ".zip", ".png", ".gif", ".nii.gz")


@pytest.mark.parametrize("suffix", DAMAGED)
def test_a_page_of_what_cannot_be_read_promises_nothing(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], suffix: str
) -> None:
    path = _damaged(tmp_path, suffix)
    for target in ("x.ra", "x.tif", "x.npy"):  # the judge: no conversion of it is done
        with pytest.raises(raconvert.RaconvertError):
            raconvert.convert(path, tmp_path / target)
    found = check(page(path, capfdbinary))
    kinds = [set((attributes.get("class") or "").split()) for _, attributes in found.tags]
    assert not any({"outcome"} & kind for kind in kinds)
    assert not any({"program"} & kind for kind in kinds)
    assert "every conversion is refused" in found.words
    assert "raconvert x" not in found.words
    main(["peek", str(path)])
    said = capfdbinary.readouterr()
    assert b"mean" not in said.out
    assert b"damaged" in said.err or b"cannot be" in said.out + said.err


def test_a_page_promises_the_sound_arrays_beside_a_damaged_one(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "x.npz"
    wild = np.random.default_rng(3).integers(0, 256, 3000, "u1")
    np.savez(path, small=np.arange(9), wild=wild)
    data = bytearray(path.read_bytes())
    data[data.index(wild[100:140].tobytes())] ^= 1
    path.write_bytes(data)

    found = check(page(path, capfdbinary))
    classes = [attributes.get("class") for _, attributes in found.tags]
    assert "outcome exact" not in classes  # as a whole it is refused, unless `wild` is left out
    assert "outcome refused" in classes
    assert "--allow arrays" in found.words
    assert "The elements of wild of 2 arrays cannot be read" in found.words
    assert "program" not in classes
    with pytest.raises(WouldLose):
        raconvert.convert(path, tmp_path / "x.h5")
    raconvert.convert(path, tmp_path / "x.h5", allow="arrays")


def test_a_page_names_what_is_known_to_be_unreadable(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "x.h5"
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("nowhere.h5", "x", (4,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("b", layout)
        file["c"] = np.arange(9)
    found = check(page(path, capfdbinary))
    assert "The elements of b of 2 arrays cannot be read (the source of a virtual" in found.words
    assert "--allow arrays" in found.words
    assert "np.fromfile" in found.words  # of the other one


@pytest.mark.parametrize("meta", ["", "axes: [{name: time, spacing: 0.5}]\n"])
def test_a_page_of_eight_terabytes_needs_no_more_memory(tmp_path: Path, meta: str) -> None:
    """Every format is asked what the line would become; none may number its elements for that."""
    count = 10**12
    header = b"rawarray" + np.array([0, 3, 8, 8 * count, 1, count], "<u8").tobytes()
    with (tmp_path / "x.ra").open("wb") as file:
        file.write(header)
        file.truncate(len(header) + 8 * count)
    if meta:
        (tmp_path / "x.ra.yaml").write_text(meta)
    words = ["info", str(tmp_path / "x.ra"), "--html", "-o", str(tmp_path / "x.html")]
    assert main(words) == 0


def test_a_long_line_needs_no_memory_for_its_axis(tmp_path: Path) -> None:
    meta = raconvert.Metadata(axes=[raconvert.Axis("time", spacing=0.5, origin=0.25, units="s")])
    peaks = []
    for count in (10**7, 4 * 10**7):  # either is sampled
        values = np.zeros(count, "u1")
        raconvert.write(tmp_path / "x.ra", values, meta=meta, overwrite=True)
        del values
        with raconvert.open(tmp_path / "x.ra") as array:
            tracemalloc.start()
            text = "".join(section_of(array))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        last = f"{0.25 + (count - 1) * 0.5:.6g}"
        assert f"along time from 0.25 to {last} s" in text
    assert peaks[1] < peaks[0] + (50 << 20)


@pytest.mark.parametrize("step", [1e308, 1e-310])
def test_absurd_steps_of_axes_are_left_out(tmp_path: Path, step: float) -> None:
    axes = [raconvert.Axis(name, spacing=step, units="mm") for name in "yx"]
    values = np.arange(120.0).reshape(10, 12)
    raconvert.write(tmp_path / "x.ra", values, meta=raconvert.Metadata(axes=axes))
    assert main(["info", str(tmp_path / "x.ra"), "--html", "-o", str(tmp_path / "x.html")]) == 0
    text = (tmp_path / "x.html").read_text()
    assert "<img" in text
    assert "nan" not in text


def test_a_time_that_no_calendar_has_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "x")
    (tmp_path / "x").touch()
    assert _changed(path).startswith("changed 2")
    for seconds in (1e12, float(1 << 62)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", lambda _, seconds=seconds: SimpleNamespace(st_mtime=seconds))
            assert _changed(path) == ""


def test_the_words_of_a_page_are_refused_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    for words in (["--full"], ["--overwrite"], ["-o", str(tmp_path / "x.html")]):
        assert main(["info", str(tmp_path / "x.npy"), *words]) == 2
        assert "--html" in capsys.readouterr().err
