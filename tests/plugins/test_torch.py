"""PyTorch checkpoints: files of torch with the values that torch reads, and hostile pickles."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import NAME, Pairs
from safetensors.numpy import load_file

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsafe, Unsupported
from raconvert.files.source import Source
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "models"
FILES = ("types.pt", "views.pt", "checkpoint.pth", "protocol5.pt", "alone.pt")
IN_PAIRS = (
    Pairs(
        name="torch",
        suffix=".pt",
        read=lambda path: np.load(f"{path}.npz")[NAME],  # beside each fixture
        reads_only=True,
    ),
)
KEYS: tuple[Any, ...] = (
    (...,), (0,), (-1,), (slice(None), slice(None, None, -1)), (slice(1, 2),), (..., slice(0, 2)),
)  # fmt: skip


def read(path: Path) -> raconvert.Bundle:
    return load(by_name("torch")).read(Source(str(path)))


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    got = np.ascontiguousarray(got).reshape(got.shape)
    if got.dtype.isbuiltin == 2:  # of ml_dtypes
        got = got.view(wanted.dtype)
    little = got.astype(got.dtype.newbyteorder("<"))
    return got.shape == wanted.shape and little.tobytes() == wanted.tobytes()


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None], source: Path) -> Path:
    """A copy of an archive with changed members; without those that become None."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = change(name.partition("/")[2], old.read(name))
            if content is not None:
                new.writestr(name, content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_tensor_is_what_torch_reads(name: str, tmp_path: Path) -> None:
    """Names, shapes, types and bits; whole, by regions, and through a copy in RA."""
    wanted = np.load(FIXTURES / f"{name}.npz")
    raconvert.convert(FIXTURES / name, tmp_path / "x.zip")
    with read(FIXTURES / name) as bundle, raconvert.open(tmp_path / "x.zip") as copy:
        assert sorted(bundle.names) == sorted(wanted.files)
        copies = copy if isinstance(copy, raconvert.Bundle) else {bundle.names[0]: copy}
        for path, array in bundle.items():
            values = wanted[path]
            assert array.shape == values.shape
            assert same(copies[path][...], values), path
            for key in KEYS if values.ndim > 1 else KEYS[:1]:
                if values.size or key == (...,):
                    assert same(array[key], values[key]), (path, key)


def test_big_endian_storages(tmp_path: Path) -> None:
    """The same file as a big-endian machine writes it."""
    wanted = np.load(FIXTURES / "types.pt.npz")
    with read(FIXTURES / "types.pt") as bundle:
        widths = [array.dtype.itemsize // (1 + (array.dtype.kind == "c"))
                  for array in bundle.values()]  # fmt: skip

    def change(name: str, content: bytes) -> bytes:
        if name == "byteorder":
            return b"big"
        if not name.startswith("data/"):
            return content
        width = widths[int(name[5:])]
        return np.frombuffer(content, f"V{width}").tobytes() if width == 1 else (
            np.frombuffer(content, f"u{width}").byteswap().tobytes())  # fmt: skip

    path = rewritten(tmp_path / "big.pt", change, FIXTURES / "types.pt")
    with read(path) as bundle:
        for name, array in bundle.items():
            if array.element.kind == "bfloat":
                raconvert.convert(f"{path}#{name}", tmp_path / "b.ra")
                assert same(raconvert.read(tmp_path / "b.ra"), wanted[name])
            else:
                assert same(array[...], wanted[name]), name


def test_plain_values_become_attributes_and_the_rest_is_named() -> None:
    with read(FIXTURES / "checkpoint.pth") as bundle:
        attributes, notes = bundle.attributes, "\n".join(bundle.notes)
    assert attributes["epoch"] == 3
    assert attributes["best"] == 0.25
    assert attributes["name"] == "tiny é"
    assert attributes["done"] is True
    assert attributes["shape"] == [2, 3]
    assert attributes["dtype"] == "torch.float16"
    assert attributes["device"] == "cpu"
    assert attributes["optimizer.param_groups.0.lr"] == 0.125
    assert attributes["optimizer.param_groups.0.betas"] == [0.9, 0.999]
    for word in ("None: 'nothing'", "complex numbers: 'z'", "bytes: 'bytes'", "64 bits: 'huge'",
                 "_metadata", "attributes of tensors: 'buffer'",
                 "share a storage, and become arrays of their own: model.0.weight, parameters.0"):  # fmt: skip
        assert word in notes


def test_tensors_that_are_no_arrays_are_named(tmp_path: Path) -> None:
    with pytest.raises(RaconvertError, match="sparse"):
        raconvert.convert(FIXTURES / "others.pt", tmp_path / "x.npz")
    raconvert.convert(FIXTURES / "others.pt", tmp_path / "x.npz", allow=["arrays"])
    assert np.load(tmp_path / "x.npz").files == ["sound"]
    with read(FIXTURES / "others.pt") as bundle:
        words = {array.name: str(array.problem) for array in bundle.unreadable}
        assert "storages without a tensor: 'storage'" in "".join(bundle.notes)
    for name, word in {
        "sparse": "sparse", "rows": "sparse", "quantised": "quantised", "channelwise": "quantised",
        "conjugate": "conjugated", "negative": "negated", "meta": "meta", "half": "complex32",
        "bits": "bits8",
    }.items():  # fmt: skip
        assert word in words.pop(name)
    assert not words


def test_a_checkpoint_becomes_safetensors(tmp_path: Path) -> None:
    wanted = np.load(FIXTURES / "checkpoint.pth.npz")
    raconvert.convert(FIXTURES / "checkpoint.pth", tmp_path / "x.safetensors")
    found = load_file(tmp_path / "x.safetensors")
    assert sorted(found) == sorted(wanted.files)
    assert all(same(found[name], wanted[name]) for name in found)


@pytest.mark.parametrize("name", ["model.pt", "script.pt", "legacy.pt"])
def test_what_torch_writes_and_nobody_opens(name: str, tmp_path: Path) -> None:
    kind, words = {
        "model.pt": (Unsafe, "torch.nn.modules.linear.Linear.*GLOBAL.*byte 2"),
        "script.pt": (Unsupported, "TorchScript"),
        "legacy.pt": (Unsupported, "before 1.6"),
    }[name]
    with pytest.raises(kind, match=words):
        raconvert.convert(FIXTURES / name, tmp_path / "x.ra")


def test_the_tar_layout_of_old(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "old.pt", "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(Unsupported, match=r"before 0\.1\.10"):
        raconvert.convert(tmp_path / "old.pt", tmp_path / "x.ra")


def test_damaged_elements_are_found(tmp_path: Path) -> None:
    """A flipped bit of a storage is found by its CRC-32, in whole tensors and in views."""
    for name, tensor in (("alone.pt", None), ("views.pt", "column"), ("views.pt", "base")):
        raw = bytearray((FIXTURES / name).read_bytes())
        with zipfile.ZipFile(FIXTURES / name) as archive:
            prefix = archive.namelist()[0].partition("/")[0]
            begin = archive.getinfo(f"{prefix}/data/0").header_offset
        lengths = struct.unpack_from("<2H", raw, begin + 26)
        raw[begin + 30 + sum(lengths) + 9] ^= 4
        (tmp_path / "x.pt").write_bytes(raw)
        with pytest.raises(Corrupt, match="CRC-32"):
            raconvert.convert(
                f"{tmp_path / 'x.pt'}#{tensor}" if tensor else tmp_path / "x.pt", tmp_path / "y.ra"
            )


# Hostile pickles ----------------------------------------------------------------------------------


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def number(value: int) -> bytes:
    raw = value.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + raw


def storage(key: str = "0", length: int = 6, kind: bytes = b"torch\nFloatStorage") -> bytes:
    return b"(" + text("storage") + b"c" + kind + b"\n" + text(key) + text("cpu") + number(
        length) + b"tQ"  # fmt: skip


def tensor(
    shape: tuple[int, ...] = (2, 3), steps: tuple[int, ...] = (3, 1), at: int = 0, **of: Any
) -> bytes:
    ends = b"ccollections\nOrderedDict\n)R"
    numbers = [b"(" + b"".join(map(number, one)) + b"t" for one in (shape, steps)]
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(**of) + number(at) + numbers[0]
            + numbers[1] + b"\x89" + ends + b"tR")  # fmt: skip


def item(name: str, value: bytes) -> bytes:
    return text(name) + value + b"s"


def system(call: bytes) -> bytes:
    return b"}" + item("x", tensor()) + text("y") + call


PICKLES: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "call_of_os_system": (system(b"cos\nsystem\n(" + text("true") + b"tR"), Unsafe,
                          r"os\.system.*opcode GLOBAL.*byte \d+"),
    "call_of_eval_by_stack": (b"\x8c\x08builtins\x8c\x04eval\x93" + text("1") + b"\x85R.", Unsafe,
                              r"builtins\.eval.*STACK_GLOBAL"),
    "import_of_a_module_alone": (b"cantigravity\nfly\n.", Unsafe, r"antigravity\.fly"),
    "global_that_only_begins_as_ours": (b"ctorch._utils\n_rebuild_tensor_v2.__globals__\n.", Unsafe,
                                        "__globals__"),
    "load_of_another_file": (b"ctorch\nload\n" + text("/etc/passwd") + b"\x85R.", Unsafe,
                             r"torch\.load"),
    "object_by_newobj": (b"ccollections\nOrderedDict\n)\x81.", Unsafe, "NEWOBJ"),
    "object_by_inst": (b"(ios\nsystem\n.", Unsafe, "INST"),
    "object_by_obj": (b"(ccollections\nOrderedDict\no.", Unsafe, "OBJ"),
    "object_of_the_registry": (b"\x82\x01.", Unsafe, "EXT1"),
    "state_of_a_text": (text("x") + b"}b.", Unsafe, "BUILD"),
    "call_of_a_text": (text("os.system") + b")R.", Unsafe, "REDUCE"),
    "call_of_a_storage_type": (b"ctorch\nFloatStorage\n)R.", Unsafe, "REDUCE"),
    "persistent_id_by_text": (b"Pos\n.", Unsupported, "PERSID"),
    "numbers_of_protocol_0": (b"I1\n.", Unsupported, "INT"),
    "protocol_9": (b"\x80\x09N.", Unsupported, "protocol"),
    "unknown_opcode": (b"\xff.", Corrupt, "0xff"),
    "cut_off": (b"X\xff\xff\xff\xff", Corrupt, "cut off"),
    "empty_stack": (b"0.", Corrupt, "not there"),
    "no_mark": (b"t.", Corrupt, "no mark"),
    "memo_without_value": (b"h\x05.", Corrupt, "memo"),
    "more_behind_the_end": (b"N.N.", Corrupt, "behind its end"),
    "long_integer": (b"\x8b\xff\xff\xff\x7f.", Corrupt, "integer is too long"),
    "key_of_shared_tuples": (b")" + b"2\x86" * 60 + b"0})Ns.", RaconvertError, ""),
    "list_in_itself": (b"]q\x00h\x00a.", TooLarge, "inside each other"),
    "shared_lists_without_end": (b"]" + b"".join(b"q%c](h%ch%ce" % (n, n, n) for n in range(40))
                                 + b".", RaconvertError, ""),
    "very_many_operations": (b"]" * 2_100_000, TooLarge, "operations"),
    "copies_of_a_long_list": (b"](" + b"N" * 50_000 + b"eq\x000"
                              + b"c__builtin__\nset\nh\x00\x85R0" * 1000 + b"N.", TooLarge,
                              "operations"),
    "tensor_beyond_its_storage": (tensor((2, 4), (4, 1)) + b".", Corrupt, "beyond its storage"),
    "tensor_by_steps_beyond": (tensor((2, 2), (1, 5)) + b".", Corrupt, "beyond its storage"),
    "tensor_with_negative_offset": (tensor(at=-1) + b".", Corrupt, "as torch does not"),
    "tensor_beyond_any_memory": (tensor((1 << 40, 1 << 40), (0, 0)) + b".", Corrupt, "memory"),
    "tensor_repeated_without_end": (tensor((1 << 40,), (0,)) + b".", TooLarge, "repeated"),
    "storage_that_is_not_there": (tensor(key="7") + b".", Corrupt, "missing"),
    "storage_outside_the_folder": (tensor(key="../x") + b".", Corrupt, "missing"),
    "storage_of_another_size": (tensor(length=7) + b".", Corrupt, "another size"),
    "no_tensors": (b"}" + item("x", b"K\x01") + b".", Unsupported, "no tensors"),
    "two_tensors_of_one_name": (b"}" + item("a", b"}" + item("b", tensor())) + item("a.b", tensor())
                                + b".", Unsupported, "two tensors"),
    "name_of_a_megabyte": (b"}" + item("a" * 1_000_000, tensor()) + b".", TooLarge, "names"),
}  # fmt: skip


def archive(path: Path, pickled: bytes, **members: bytes) -> Path:
    content = {"data.pkl": pickled, "byteorder": b"little", "data/0": bytes(24)} | members
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            file.writestr(f"x/{name}", data)
    return path


def test_hostile_pickles_are_refused_by_name(tmp_path: Path) -> None:
    wrong = []
    for name, (pickled, kind, words) in PICKLES.items():
        path = archive(tmp_path / "x.pt", b"\x80\x02" + pickled)
        try:
            raconvert.convert(path, tmp_path / "x.npz")
            wrong.append(f"{name}: accepted")
        except kind as error:
            if not re.search(words, str(error)):
                wrong.append(f"{name}: {error}")
        except RaconvertError as error:
            wrong.append(f"{name}: {error!r}")
    assert not wrong, "\n".join(wrong)


def test_hostile_archives_are_refused_by_name(tmp_path: Path) -> None:
    sound = b"\x80\x02" + tensor() + b"."
    path = tmp_path / "x.pt"
    for members, words in (
        ({"byteorder": b"middle"}, "byte order"),
        ({"constants.pkl": b"N."}, "TorchScript"),
        ({"y/data.pkl": b"N."}, "several pickles"),
    ):
        with pytest.raises(RaconvertError, match=words):
            raconvert.read(archive(path, sound, **members))
    assert raconvert.read(archive(path, sound))["x"].shape == (2, 3)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x/data.pkl", sound)
    with pytest.raises(Unsupported, match="compressed"):
        raconvert.read(path)


RANDOM = """
import numpy as np, torch
rng, tensors = np.random.default_rng(6), {}
for n in range(60):
    shape = tuple(int(n) for n in rng.integers(0, 5, rng.integers(0, 5)))
    dtype = ("float32", "int16", "bool", "complex128", "uint8")[n % 5]
    one = torch.tensor(rng.integers(0, 9, shape)).to(getattr(torch, dtype))
    for axis in range(one.ndim):
        one = one.transpose(axis, int(rng.integers(one.ndim)))
        one = one[(slice(None),) * axis + (slice(int(rng.integers(2)), None, 2),)]
    tensors[f"t{n}"] = one.expand(2, *one.shape) if n % 3 == 0 else one
torch.save(tensors, "x.pt")
np.savez("x.npz", **{name: one.numpy() for name, one in tensors.items()})
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is large, and only compares")
def test_tensors_of_the_installed_torch(tmp_path: Path) -> None:
    """Random views of random storages, written and read by the torch that is here."""
    subprocess.run([sys.executable, "-c", RANDOM], cwd=tmp_path, check=True, timeout=120)
    wanted = np.load(tmp_path / "x.npz")
    with read(tmp_path / "x.pt") as bundle:
        assert bundle.names == wanted.files
        assert all(np.array_equal(array[...], wanted[name]) for name, array in bundle.items())
