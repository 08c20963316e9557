"""Text of files never reaches a terminal or a log as more than letters, whatever the format."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import h5py
import nibabel
import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image, PngImagePlugin

import raconvert
from raconvert.catalogue import ROWS
from raconvert.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# What terminals obey, and what makes a line of its own. `FORGED` would begin one.
CONTROLS = ("\x1b[31m", "\x1b]0;title\x07", "\x9b31m", "\x90q\x9c", "\x85", "\x08", "\x7f", "\r", "\nFORGED",
            "\u202e", "\u2066", "\u200f", "\u2028FORGED", "\ufeff", "\U000e0041")  # fmt: skip
FULL = "a" + "b".join(CONTROLS) + "z"
TEXTS = (
    FULL,
    "".join(one for one in FULL if ord(one) < 256),
    "".join(one for one in FULL if ord(one) < 128),
    FULL.replace("\n", "").replace("\r", ""),
    "".join(one for one in FULL if ord(one) < 128 and one not in "\r\n"),
    "a\x1b]0;t\x07",
)  # a format that refuses one of them may take another
# \t is let pass, as layout of help; \n ends our own lines.
RAW = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
VALUES = {
    "u1": np.eye(2, dtype="u1"),
    "f4": np.eye(2, dtype="f4"),
    "c8": np.eye(2, dtype="c8"),
    "i4": np.eye(2, dtype="i4"),
    "texts": np.array([["a", "b"], ["c", "d"]]),
    "colors": np.zeros((4, 4, 3), "u1"),
}


def check(words: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> int:
    """Run the command line; nothing of what it prints is obeyed by a terminal."""
    capfdbinary.readouterr()
    code = main(words)
    for stream in capfdbinary.readouterr():
        text = stream.decode("utf-8", "surrogateescape")
        found = RAW.search(text)
        assert found is None, (words, text[max(0, found.start() - 60) : found.end() + 20])
        assert not re.search(r"^\s*FORGED", text, re.MULTILINE), (words, text)
    return code


def look_at(path: str, capfdbinary: pytest.CaptureFixture[bytes], scratch: Path) -> list[int]:
    """Run every verb that shows something of a file; return the exit codes."""
    other = scratch / "other.npy"
    np.save(other, np.zeros(3))
    np.savez(scratch / "other.npz", a=np.zeros(3))
    out = scratch / "out"
    lines = [
        ["info", path],
        ["info", "-s", path],
        ["info", "-v", path],
        ["info", "--json", path],
        ["peek", path],
        ["peek", "--color", "never", path],
        ["peek", "--json", path],
        ["diff", path, str(other)],
        ["diff", path, str(scratch / "other.npz")],
        ["diff", "--json", path, str(scratch / "other.npz")],
        ["verify", path],
        ["verify", "--json", path],
        ["verify", path, "--against", str(other)],
        ["digest", path],
        ["formats", "--why", path],
        *(
            ["convert", path, "-o", f"{out}{ending}", "--overwrite", *more]
            for ending, more in (
                (".ra", ["-v"]),
                (".npz", ["--allow", "all", "-v"]),
                (".har", []),
                (".png", ["--json"]),
                (".h5", ["-n"]),
                (".h5", ["--verify", "--strict"]),
            )
        ),
    ]
    return [check(words, capfdbinary) for words in lines]


WITHOUT_TEXT = ("cifar",)  # has no text, and takes the names of its arrays only


# Our own writers -----------------------------------------------------------------------------------


def meta_of(text: str, shape: tuple[int, ...]) -> raconvert.Metadata:
    axes = [
        raconvert.Axis(f"{text}{axis}", units=text, labels=[f"{text}{i}" for i in range(length)])
        for axis, length in enumerate(shape)
    ]
    attributes = {text: text, "list": [text, 1], "nested": {text: {"x": text}}}
    return raconvert.Metadata(description=text, units=text, axes=axes, attributes=attributes)


@pytest.mark.parametrize(
    "name", [row.name for row in ROWS if row.writes and row.name not in WITHOUT_TEXT]
)
def test_formats_that_we_write(
    name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    row = next(row for row in ROWS if row.name == name)
    made = 0
    for number, text in enumerate(TEXTS):
        for kind, values in VALUES.items():
            source = str(tmp_path / f"source{number}{kind}.ra")
            target = str(
                tmp_path / f"target{number}{kind}{row.suffixes[0] if row.suffixes else ''}"
            )
            arrays = {text: values, f"{text}/{text}": values} if row.many else values
            with suppress(raconvert.RaconvertError):
                raconvert.write(
                    target, arrays, to=name, meta=None if row.many else meta_of(text, values.shape)
                )
            if not os.path.lexists(target):
                with suppress(raconvert.RaconvertError):
                    raconvert.write(source, values, meta=meta_of(text, values.shape))
                    check(
                        ["convert", source, "-o", target, "--to", name, "--allow", "all"],
                        capfdbinary,
                    )
            if os.path.lexists(target):
                codes = look_at(target, capfdbinary, tmp_path)
                made += codes[0] == 0
                break
    assert made


# Files of others -----------------------------------------------------------------------------------


def as_npy(folder: Path, text: str) -> str:
    np.save(folder / "x.npy", np.zeros(3, [(text, "i4"), ("b", "f4")]))
    return str(folder / "x.npy")


def as_npz(folder: Path, text: str) -> str:
    np.savez(folder / "x.npz", **{text.replace("/", ""): np.zeros(3), "b": np.ones(2)})
    return str(folder / "x.npz")


def as_hdf5(folder: Path, text: str) -> str:
    with h5py.File(folder / "x.h5", "w") as file:
        data = file.create_dataset(text, data=np.zeros((2, 3)))
        data.attrs[text] = text
        file.attrs[text] = text
        group = file.create_group(f"group {text}")
        group.attrs["x"] = text
        group.create_dataset(f"inner {text}", data=np.array([text, "b"], dtype=h5py.string_dtype()))
        data.dims[0].label = text
        file.create_dataset("odd", data=np.zeros(2, h5py.opaque_dtype("V4")))
        file[f"link {text}"] = h5py.ExternalLink(f"missing {text}.h5", f"/{text}")
    return str(folder / "x.h5")


def as_safetensors(folder: Path, text: str) -> str:
    entries = {
        "__metadata__": {text: text},
        text: {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
        f"{text}b": {"dtype": f"{text}", "shape": [1], "data_offsets": [2, 3]},
    }
    head = json.dumps(entries).encode()
    (folder / "x.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(3))
    return str(folder / "x.safetensors")


def as_zarr(folder: Path, text: str) -> str:
    group = zarr.create_group(folder / "x.zarr", attributes={text: text})
    array = group.create_array("a", shape=(2, 3), dtype="i4", attributes={text: [text, {text: 1}]})
    array[:] = 1
    said = folder / "x.zarr" / "a" / "zarr.json"
    fields = json.loads(said.read_text())
    fields["dimension_names"] = [text, f"{text}2"]
    said.write_text(json.dumps(fields))
    return str(folder / "x.zarr")


def as_bad_zarr(folder: Path, text: str) -> str:
    path = as_zarr(folder, "a")
    said = folder / "x.zarr" / "a" / "zarr.json"
    fields = json.loads(said.read_text())
    fields["codecs"] = [{"name": text, "configuration": {text: text}}]
    said.write_text(json.dumps(fields))
    return path


def as_nrrd(folder: Path, text: str) -> str:
    line = text.replace("\n", " ").replace("\r", " ")
    fields = ["NRRD0005", "type: uint8", "dimension: 1", "sizes: 4", "encoding: raw"]
    fields += [
        f"content: {line}",
        f'labels: "{line}"',
        f'units: "{line}"',
        f"{line}:={line}",
        f"# {line}",
    ]
    (folder / "x.nrrd").write_bytes("\n".join([*fields, "", "abcd"]).encode())
    return str(folder / "x.nrrd")


def as_nrrd_elsewhere(folder: Path, text: str) -> str:
    line = text.replace("\n", " ").replace("\r", " ")
    fields = ["NRRD0005", "type: uint8", "dimension: 1", "sizes: 4", "encoding: raw"]
    (folder / "x.nhdr").write_bytes("\n".join([*fields, f"data file: {line}", ""]).encode())
    return str(folder / "x.nhdr")


def as_metaimage(folder: Path, text: str) -> str:
    line = text.replace("\n", " ").replace("\r", " ")
    fields = [
        f"Comment = {line}",
        "NDims = 1",
        "DimSize = 4",
        "ElementType = MET_UCHAR",
        f"{line} = {line}",
    ]
    (folder / "x.mha").write_bytes("\n".join([*fields, "ElementDataFile = LOCAL", "abcd"]).encode())
    return str(folder / "x.mha")


def as_png(folder: Path, text: str) -> str:
    said = PngImagePlugin.PngInfo()
    said.add_itxt("Description", text)
    said.add_itxt("Comment", text, zip=True)
    said.add_text("Title", text.encode("latin-1", "replace"))
    Image.fromarray(np.zeros((4, 4), "u1")).save(folder / "x.png", pnginfo=said)
    return str(folder / "x.png")


def as_tiff(folder: Path, text: str) -> str:
    values = np.zeros((4, 4), "u1")
    tifffile.imwrite(
        folder / "x.tif", values, description=text.encode(), software=text.encode(), metadata=None,
        extratags=[(315, "s", None, text.encode(), True), (65000, "s", None, text.encode(), True)],
    )  # fmt: skip
    return str(folder / "x.tif")


def as_gif(folder: Path, text: str) -> str:
    Image.fromarray(np.zeros((4, 4), "u1")).save(folder / "x.gif", comment=text.encode())
    return str(folder / "x.gif")


def as_jpeg(folder: Path, text: str) -> str:
    Image.fromarray(np.zeros((8, 8), "u1")).save(folder / "x.jpg", comment=text.encode())
    return str(folder / "x.jpg")


def as_netpbm(folder: Path, text: str) -> str:
    (folder / "x.pgm").write_bytes(f"P5\n# {text.replace(chr(10), ' ')}\n2 2\n255\nabcd".encode())
    return str(folder / "x.pgm")


def as_nifti(folder: Path, text: str) -> str:
    image = nibabel.Nifti1Image(np.zeros((2, 3, 4), "f4"), np.eye(4))
    image.header["descrip"] = text.encode()[:80]
    image.header["intent_name"] = text.encode()[:16]
    image.header["aux_file"] = text.encode()[:24]
    extension = nibabel.nifti1.Nifti1Extension("comment", text.encode())
    image.header.extensions.append(extension)
    nibabel.save(image, folder / "x.nii")
    return str(folder / "x.nii")


def as_cfl(folder: Path, text: str) -> str:
    (folder / "x.hdr").write_bytes(
        f"# Dimensions\n1 1\n# Command\n{text}\n# raconvert seal: {text}\n".encode()
    )
    (folder / "x.cfl").write_bytes(bytes(8))
    return str(folder / "x.hdr")


def as_sidecar(folder: Path, text: str) -> str:
    raconvert.write(folder / "x.ra", np.zeros((2, 3)), meta=raconvert.Metadata(units="m"))
    beside = folder / "x.ra.yaml"
    value = json.dumps(text)
    beside.write_text(beside.read_text() + f"{value}: {value}\nattributes: {{{value}: {value}}}\n")
    return str(folder / "x.ra")


def as_refs(folder: Path, text: str) -> str:
    np.save(folder / "a.npy", np.arange(10))
    raconvert.refs(str(folder / "a.npy"), str(folder / "v.json"))
    said = json.loads((folder / "v.json").read_text())
    said["raconvert"]["arrays"][0].update(type=text, name=text)
    said["raconvert"]["files"][0]["path"] = f"/{text}"
    (folder / "v.json").write_text(json.dumps(said))
    return str(folder / "v.json")


def as_bad_refs(folder: Path, text: str) -> str:
    as_refs(folder, "a")
    said = json.loads((folder / "v.json").read_text())
    said["refs"][text] = [text, 0, 0]
    refs = json.dumps(said["refs"], sort_keys=True, separators=(",", ":")).encode()
    said["raconvert"]["sha256"] = hashlib.sha256(refs).hexdigest()
    (folder / "v.json").write_text(json.dumps(said))
    return str(folder / "v.json")


def as_bundle(folder: Path, text: str) -> str:
    raconvert.write(folder / "b", {"a": np.zeros(3)}, to="bundle")
    said = folder / "b" / "bundle.yaml"
    said.write_text(said.read_text() + f"{json.dumps(text)}: {json.dumps(text)}\n")
    return str(folder / "b")


def as_scidb(folder: Path, text: str) -> str:
    (folder / "x.scidb").write_text(f"'format: (double)'\n{text}")
    return str(folder / "x.scidb")


def as_named_file(folder: Path, text: str) -> str:
    name = text.replace("/", "")[:100]
    np.save(folder / f"{name}.npy", np.zeros((2, 3)))
    return str(folder / f"{name}.npy")


def as_unknown(folder: Path, text: str) -> str:
    path = folder / text.replace("/", "")[:100]
    path.write_text(f"<html>{text}")
    return str(path)


MAKERS = {
    key.removeprefix("as_"): maker
    for key, maker in list(globals().items())
    if key.startswith("as_")
}


@pytest.mark.parametrize("text", TEXTS[:2], ids=["all", "bytes"])
@pytest.mark.parametrize("kind", MAKERS)
def test_files_that_others_write(
    kind: str, text: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    make: Callable[[Path, str], str] = MAKERS[kind]
    folder = tmp_path / "files"
    folder.mkdir()
    path = make(folder, text)
    if kind == "named_file":
        named(path, capfdbinary, tmp_path)
    else:
        look_at(path, capfdbinary, tmp_path)


def named(path: str, capfdbinary: pytest.CaptureFixture[bytes], scratch: Path) -> None:
    for words in all_but_digest(path, scratch):
        check(words, capfdbinary)


def all_but_digest(path: str, scratch: Path) -> Iterator[list[str]]:
    """The verbs on a file of an odd name; `digest` prints what sha256sum needs, the very name."""
    yield from (["info", path], ["info", "-s", path], ["info", "--json", path], ["peek", path])
    yield from (["verify", path], ["verify", path, "--against", path], ["diff", path, path])
    yield from (["info", f"{path}#x"], ["info", f"{path}.missing"], ["convert", path])
    yield ["convert", path, "-o", f"{path}.nowhere/x.ra"]
    yield ["convert", path, "-o", f"{path}.odd"]
    yield ["convert", path, "-o", str(scratch / "x.ra"), "-v"]
    yield ["convert", os.path.dirname(path), "--to", "ra", "--out-dir", str(scratch / "out"), "-v"]
    yield ["migrate", os.path.dirname(path), str(scratch / "tree"), "--to", "ra", "-v"]
    yield ["migrate", "--status", str(scratch / "tree")]
    yield ["verify", str(scratch / "tree"), "--against", os.path.dirname(path)]
    yield ["refs", path, "-o", str(scratch / "v.json")]
    yield ["formats", "--why", path]


@pytest.mark.parametrize("word", TEXTS[:2], ids=["all", "bytes"])
def test_words_of_the_command_line(word: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for words in (
        [word], [word, "-o", word], ["info", word], [f"--{word}"], ["info", f"--{word}"],
        ["convert", "x", "-o", word, "--to", word], ["convert", "x", "-o", "y", "--allow", word],
        ["convert", "x", "-o", "y.ra", "--in-opt", word], ["formats", word], ["info", "-q", word],
        ["migrate", word, word, "--to", "ra"], ["completion", word], ["convert", "-o", word],
    ):  # fmt: skip
        assert check(words, capfdbinary) > 0


def test_colors_are_ours_alone(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = as_refs(tmp_path, TEXTS[0])
    main(["info", "--color", "always", path])
    text = capfdbinary.readouterr().out.decode()
    assert re.findall("\x1b[^m]*m", text) == ["\x1b[1m", "\x1b[0m"]
    assert not RAW.search(text.replace("\x1b[1m", "").replace("\x1b[0m", ""))


def test_an_unexpected_exception_is_escaped(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError(FULL)

    monkeypatch.setattr("raconvert.cli.parser.parse", fail)
    assert check(["info", "x.ra"], capfdbinary) == 1
