"""Random pickles for the interpreter of opcodes: nothing is imported, nothing is called, ever."""

from __future__ import annotations

import contextlib
import pickle
import pickletools
import random
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import rounds
from raconvert.plugins.pytorch.opcodes import interpreted
from raconvert.plugins.pytorch.tables import CALLS, known_global

from raconvert.errors import RaconvertError, Unsafe
from raconvert.files.source import Source
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "models"
CODES = {one.name: one for one in pickletools.opcodes}
NAMES = [
    "torch._utils _rebuild_tensor_v2", "torch FloatStorage", "collections OrderedDict",
    "torch Size", "torch float32", "builtins set", "_codecs encode", "os system", "builtins eval",
    "builtins getattr", "torch load", "numpy ndarray", "torch._utils _rebuild_parameter",
    "__builtin__ complex", "torch serialization", "sys modules", "torch.storage _load_from_bytes",
]  # fmt: skip
MAKERS = {"INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4"}


EVENTS = ("import", "exec", "compile", "pickle.find_class", "os.system", "os.exec", "os.posix_spawn",
          "subprocess.Popen", "socket.connect", "ctypes.dlopen")  # fmt: skip
_watched: list[list[str]] = []  # the list that the hook of the process fills, if any
_hooks: list[bool] = []


def _noted(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event in EVENTS:
        _watched[-1].append(f"{event} {str(arguments[:1])[:80]}")


@pytest.fixture
def sealed() -> Iterator[list[str]]:
    """Whatever Python's audit says of code that is imported or run, once all of ours is loaded."""
    for name in ("checkpoint.pth", "views.pt", "others.pt", "legacy.pt", "script.pt"):
        with contextlib.suppress(RaconvertError):
            load(by_name("torch")).read(Source(str(FIXTURES / name))).close()
    "".encode("cp437")  # names of members, as zipfile reads them
    if not _hooks:
        sys.addaudithook(_noted)  # which stays as long as the process
        _hooks.append(True)
    done: list[str] = []
    _watched.append(done)
    yield done
    _watched.pop()


def test_the_seal_notices(sealed: list[str]) -> None:
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(b"cno_such_module\nf\n.")
    assert "pickle.find_class ('no_such_module',)" in sealed
    assert "import ('no_such_module',)" in sealed


def argument(code: pickletools.OpcodeInfo, rng: random.Random) -> bytes:
    """Random bytes of the argument of an opcode, mostly well formed."""
    kind = code.arg
    if kind is None:
        return b""
    if kind.name.startswith("stringnl_noescape_pair"):
        return rng.choice(NAMES).replace(" ", "\n").encode() + b"\n"
    if kind.n == pickletools.UP_TO_NEWLINE:
        return str(rng.randrange(9)).encode() + b"\n"
    if kind.n > 0:
        return bytes(rng.choice((0, 0, 1, 2, 255)) for _ in range(kind.n))
    width = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT4: 4,
             pickletools.TAKEN_FROM_ARGUMENT4U: 4, pickletools.TAKEN_FROM_ARGUMENT8U: 8}[kind.n]  # fmt: skip
    word = rng.choice([*NAMES[0].split(), "os", "system", "storage", "cpu", "0", "x" * 9]).encode()
    return struct.pack("<Q", len(word))[:width] + word


def random_pickle(rng: random.Random) -> bytes:
    """Opcodes in any order; of those that push something more than of the others."""
    usual = ["MARK", "BININT1", "BINUNICODE", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE",
             "GLOBAL", "REDUCE", "SETITEM", "APPEND", "MEMOIZE", "BINGET", "TUPLE1", "TUPLE2"]  # fmt: skip
    names = [
        rng.choice(usual if rng.random() < 0.8 else [*CODES]) for _ in range(rng.randrange(40))
    ]
    parts = [CODES[one].code.encode("latin-1") + argument(CODES[one], rng) for one in names]
    return b"\x80\x02" + b"".join(parts) + b"."


def outcome(data: bytes, source: Source) -> Any:
    try:
        return interpreted(data, "x/data.pkl", source)
    except RaconvertError as error:
        return error


def globals_of(data: bytes) -> set[str]:
    """The names that a pickle mentions by GLOBAL, as Python's own disassembler has them."""
    named = set()
    for code, word, _ in pickletools.genops(data):
        if code.name == "GLOBAL":
            named.add(word.replace(" ", "."))
    return named


def test_random_opcodes_run_nothing(sealed: list[str], tmp_path: Path) -> None:
    """Whatever is accepted names globals of the table alone; modules stay as they were."""
    (tmp_path / "x.pt").write_bytes(b"x")
    source = Source(str(tmp_path / "x.pt"))
    rng, taken, refused = random.Random(7), 0, 0
    before = set(sys.modules)
    for _ in range(rounds(60_000, 6_000)):
        data = random_pickle(rng)
        found = outcome(data, source)
        assert isinstance(found, RaconvertError) or found is None or _is_plain(found), data
        if isinstance(found, RaconvertError):
            refused += 1
            continue
        taken += 1
        for name in globals_of(data):
            module, _, last = name.rpartition(".")
            assert known_global(module, last), data
    assert set(sys.modules) == before
    assert sealed == []
    assert min(taken, refused) > 50


def _is_plain(value: Any, depth: int = 0) -> bool:
    """True for values that are made of types of Python, and of records of the interpreter."""
    module = type(value).__module__
    if depth > 20:
        return True
    if module not in (
        "builtins",
        "raconvert.plugins.pytorch.opcodes",
        "raconvert.plugins.pytorch.tables",
    ):
        return False
    if isinstance(value, dict):
        return all(_is_plain(one, depth + 1) for pair in value.items() for one in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(one, depth + 1) for one in value)
    return not callable(value)


def test_every_opcode_that_makes_objects_is_named(sealed: list[str], tmp_path: Path) -> None:
    """Behind every global, ours or not: refused, with opcode, byte and name."""
    (tmp_path / "x.pt").write_bytes(b"x")
    source = Source(str(tmp_path / "x.pt"))
    for name in NAMES:
        told = b"c" + name.replace(" ", "\n").encode() + b"\n"
        for data, word in (
            (told + b")\x81.", "NEWOBJ"), (told + b")}\x92.", "NEWOBJ_EX"), (b"(" + told + b"o.", "OBJ"),
            (b"(i" + name.replace(" ", "\n").encode() + b"\n.", "INST"), (b"\x82\x01.", "EXT1"),
        ):  # fmt: skip
            found = outcome(b"\x80\x02" + data, source)
            assert isinstance(found, Unsafe), (name, word, found)
            full = name.replace(" ", ".")
            foreign = not known_global(*name.split())
            wanted = "GLOBAL" if foreign and word not in ("INST", "EXT1") else word
            assert re.search(rf"opcode {wanted}, member .*byte \d+", str(found)), (name, found)
            assert foreign is False or full in str(found) or word in ("EXT1", "INST")
        if not known_global(*name.split()):
            found = outcome(b"\x80\x02" + told + b")R.", source)
            assert "opcode GLOBAL" in str(found)
            assert name.replace(" ", ".") in str(found)
    assert sealed == []


def test_changed_pickles_of_torch_run_nothing(sealed: list[str], tmp_path: Path) -> None:
    """Pickles of real checkpoints with opcodes and names exchanged, through the whole reader."""
    torch = load(by_name("torch"))
    rng = random.Random(11)
    before = set(sys.modules)
    outcomes = set()
    for name in ("checkpoint.pth", "views.pt", "protocol5.pt"):
        with zipfile.ZipFile(FIXTURES / name) as file:
            members = {one: file.read(one) for one in file.namelist()}
        key = next(one for one in members if one.endswith("data.pkl"))
        whole = members[key]
        starts = [place for _, _, place in pickletools.genops(whole)]
        for _ in range(rounds(600, 40)):
            data = bytearray(whole)
            for _ in range(rng.choice((1, 1, 3))):
                at = rng.choice(starts)
                data[at : at + 1] = rng.choice([*CODES.values()]).code.encode("latin-1")
            changed = bytes(data)
            if rng.random() < 0.3:
                changed = whole.replace(b"torch._utils\n_rebuild_tensor_v2", b"os\nsystem", 1)
            with zipfile.ZipFile(tmp_path / "x.pt", "w") as file:
                for one, content in members.items():
                    file.writestr(one, changed if one == key else content)
            try:
                torch.read(Source(str(tmp_path / "x.pt"))).close()
                outcomes.add("read")
            except RaconvertError as error:
                outcomes.add(type(error).__name__)
    assert sealed == []
    new = {one for one in set(sys.modules) - before if not one.startswith(("raconvert", "numpy"))}
    assert not new & {"torch", "os.path", "subprocess", "pickle", "antigravity"}
    assert {"Unsafe", "Corrupt"} <= outcomes


def test_the_table_of_calls_has_no_function_that_runs_code() -> None:
    """All of them make values; the list is short enough to be read, and this is the whole of it."""
    assert {name.rpartition(".")[0] for name in CALLS} <= {
        "torch", "torch._utils", "torch._tensor", "torch.serialization", "collections", "builtins",
        "_codecs",
    }  # fmt: skip
    dangerous = {
        "eval",
        "exec",
        "getattr",
        "load",
        "system",
        "open",
        "__import__",
        "compile",
        "apply",
    }
    assert not {name.rpartition(".")[2] for name in CALLS} & dangerous
