"""An interpreter of pickles that makes tensors and plain values, and nothing else.

Specification: Lib/pickletools.py of Python (opcodes, protocols 2 to 5), torch/_utils.py and
torch/serialization.py of PyTorch (what the globals of its pickles stand for). Nothing is imported
and nothing is called that a file names: a global is a row of a table here, or the file is refused.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from struct import Struct

from raconvert.arrays.memory import MAX_RANK
from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsafe, Unsupported

from .tables import CALLS, NUMBERS, STORAGES, Known, known_global

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from raconvert.plugin import Source

__all__ = ["Items", "Ordered", "Storage", "Tensor", "interpreted"]


class Storage(Record):
    """A storage that a pickle names: the key of its member, its type, its elements.

    `dtype` is None for one of bytes.
    """

    key: str
    dtype: str | None
    length: int


class Tensor(Record):
    """A view of a storage, in elements; `problem` says why it is not an array, or is empty."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    problem: str
    state: bool  # it has attributes of its own


class Ordered(dict[object, object]):
    """A mapping; `state` has the names of its attributes that the pickle stores besides."""

    __slots__ = ("state",)
    state: tuple[str, ...]

    def __init__(self) -> None:
        super().__init__()
        self.state = ()


class Items(list[object]):
    """The values of a set, in the order of the file."""

    __slots__ = ()


_KEYS = (str, int, float, bool, type(None))  # hashed once, in the time of their bytes
_KEY_BITS = 72  # many longer integers have one hash
_LONG_BYTES = 255
_CHEAP = 64  # bytes that are copied as fast as one value
_NO_STORAGE = Storage("", None, 0)
_OPCODES = {
    0x28: "MARK", 0x2E: "STOP", 0x30: "POP", 0x31: "POP_MARK", 0x32: "DUP", 0x42: "BINBYTES",
    0x43: "SHORT_BINBYTES", 0x46: "FLOAT", 0x47: "BINFLOAT", 0x49: "INT", 0x4A: "BININT",
    0x4B: "BININT1", 0x4C: "LONG", 0x4D: "BININT2", 0x4E: "NONE", 0x50: "PERSID",
    0x51: "BINPERSID", 0x52: "REDUCE", 0x53: "STRING", 0x54: "BINSTRING", 0x55: "SHORT_BINSTRING",
    0x56: "UNICODE", 0x58: "BINUNICODE", 0x5D: "EMPTY_LIST", 0x61: "APPEND", 0x62: "BUILD",
    0x63: "GLOBAL", 0x64: "DICT", 0x65: "APPENDS", 0x67: "GET", 0x68: "BINGET", 0x69: "INST",
    0x6A: "LONG_BINGET", 0x6C: "LIST", 0x6F: "OBJ", 0x70: "PUT", 0x71: "BINPUT",
    0x72: "LONG_BINPUT", 0x73: "SETITEM", 0x74: "TUPLE", 0x75: "SETITEMS", 0x7D: "EMPTY_DICT",
    0x29: "EMPTY_TUPLE", 0x80: "PROTO", 0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4",
    0x85: "TUPLE1", 0x86: "TUPLE2", 0x87: "TUPLE3", 0x88: "NEWTRUE", 0x89: "NEWFALSE",
    0x8A: "LONG1", 0x8B: "LONG4", 0x8C: "SHORT_BINUNICODE", 0x8D: "BINUNICODE8",
    0x8E: "BINBYTES8", 0x8F: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET",
    0x92: "NEWOBJ_EX", 0x93: "STACK_GLOBAL", 0x94: "MEMOIZE", 0x95: "FRAME", 0x96: "BYTEARRAY8",
    0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}  # fmt: skip
# Opcodes that make an object of a class or of a registry.
_MAKERS = ("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4")
# A number in little-endian order behind the opcode, pushed as it is.
_NUMBERS = {0x4A: Struct("<i"), 0x4B: Struct("<B"), 0x4D: Struct("<H"), 0x47: Struct(">d")}
# A length behind the opcode, then as many bytes: width of the length, and the kind of value.
_COUNTED = {
    0x58: (4, "text"), 0x8C: (1, "text"), 0x8D: (8, "text"), 0x54: (4, "text"), 0x55: (1, "text"),
    0x42: (4, "bytes"), 0x43: (1, "bytes"), 0x8E: (8, "bytes"), 0x96: (8, "bytes"),
    0x8A: (1, "int"), 0x8B: (4, "int"),
}  # fmt: skip
_CONSTANTS = {0x4E: None, 0x88: True, 0x89: False}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_STOP = 0x2E
_PUTS = {0x71: 1, 0x72: 4}  # bytes of the number behind the opcode
_GETS = {0x68: 1, 0x6A: 4}


def interpreted(data: bytes, member: str, source: Source) -> Any:
    """Return the value of a pickle: plain values, `Tensor` and `Storage`.

    Raises `Unsafe` for anything that would be imported or called, with opcode, offset and name;
    `Corrupt`, `Unsupported`, and `TooLarge` above the limits of the source.
    """
    return _Machine(data, member, source).run()


class _Machine:
    """Stack, marks and memo of one pickle.

    `at` is the offset of the opcode in progress, `next` that of the next byte to be read.
    """

    def __init__(self, data: bytes, member: str, source: Source) -> None:
        self.data = data
        self.member = member
        self.source = source
        self.at = self.next = 0
        self.left = source.limits.pickle_operations
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.steps: dict[int, Callable[[], None]] = {
            code: getattr(self, f"do_{name.lower()}")
            for code, name in _OPCODES.items()
            if hasattr(self, f"do_{name.lower()}")
        }
        for method, table in (
            (self.push_number, _NUMBERS), (self.push_counted, _COUNTED), (self.push, _CONSTANTS),
            (self.put_in_memo, _PUTS), (self.get_by_number, _GETS), (self.push_tuple, _TUPLES),
        ):  # fmt: skip
            step: Any = method
            self.steps |= {code: partial(step, value) for code, value in table.items()}

    def run(self) -> Any:
        """Carry out all opcodes, and return what the last one leaves."""
        while True:
            self.spend(1)
            self.at = self.next
            code = self.take(1)[0]
            if code == _STOP:
                break
            step = self.steps.get(code)
            if step is None:
                self.other(code)
            step()
        if self.marks or len(self.stack) != 1:
            self.wrong("pickle ends with values left over")
        if self.next != len(self.data):
            self.wrong("pickle goes on behind its end", self.next, len(self.data))
        return self.stack[0]

    def spend(self, work: int) -> None:
        """Count operations, and values that one of them copies."""
        self.left -= work
        if self.left < 0:
            raise TooLarge(
                "pickle has too many operations to be read safely", path=self.source.path,
                where=self.where, expected=f"at most {self.source.limits.pickle_operations}",
            )  # fmt: skip

    # Bytes of the file ---------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The member and the offset of the opcode, for messages."""
        return f"member '{self.member}', byte {self.at}"

    def wrong(self, what: str, expected: object = None, got: object = None) -> NoReturn:
        """Raise `Corrupt` at the opcode."""
        raise Corrupt(
            what, path=self.source.path, where=self.where, expected=expected,
            got=None if got is None else repr(got)[:80],
        )  # fmt: skip

    def unsafe(self, code: int, name: str) -> NoReturn:
        """Raise `Unsafe` for a name that Python's pickle would import or call."""
        raise Unsafe(
            f"pickle would use {name[:200]}: nothing that a file names is imported or called",
            path=self.source.path, where=f"opcode {_OPCODES[code]}, {self.where}",
            expected="tensors, containers of Python and plain values",
            remedy="no option allows this; where the file comes from, save its tensors alone: "
            "torch.save(model.state_dict(), 'x.pt')",
        )  # fmt: skip

    def other(self, code: int) -> NoReturn:
        """Refuse an opcode that is not carried out here."""
        if _OPCODES.get(code) in _MAKERS:
            names = [value.name for value in self.stack[-3:] if isinstance(value, Known)]
            self.unsafe(code, names[-1] if names else "an object of a class")
        if code in _OPCODES:
            raise Unsupported(
                f"pickle has the opcode {_OPCODES[code]}, which torch does not write",
                path=self.source.path, where=self.where, expected="protocols 2 to 5",
            )  # fmt: skip
        self.wrong(f"pickle has an unknown opcode 0x{code:02x}")

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes; raises `Corrupt` if the pickle ends before."""
        begin = self.next
        end = begin + nbytes
        if end > len(self.data):
            self.wrong("pickle is cut off", f"{nbytes} bytes", len(self.data) - begin)
        self.next = end
        return self.data[begin:end]

    def number(self, nbytes: int) -> int:
        """Return the number in the next bytes."""
        return int.from_bytes(self.take(nbytes), "little")

    def line(self) -> str:
        """Return the text up to the next end of a line."""
        end = self.data.find(b"\n", self.next, self.next + 1000)
        if end < 0:
            self.wrong("name of a global does not end")
        text = self.text(self.take(end - self.next))
        self.next += 1
        return text

    def text(self, raw: bytes) -> str:
        """Return UTF-8 as text. Raises `Corrupt`."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.wrong("text is not UTF-8", got=raw[:40])

    def push_counted(self, layout: tuple[int, str]) -> None:
        """Push a value whose length stands before it."""
        width, kind = layout
        nbytes = self.number(width)
        if kind == "int" and nbytes > _LONG_BYTES:
            self.wrong("integer is too long", f"at most {_LONG_BYTES} bytes", nbytes)
        raw = self.take(nbytes)
        if kind == "int":
            self.stack.append(int.from_bytes(raw, "little", signed=True))
        else:
            self.stack.append(self.text(raw) if kind == "text" else raw)

    def push_number(self, layout: Struct) -> None:
        """Push a number of a fixed width."""
        self.stack.append(layout.unpack(self.take(layout.size))[0])

    # Stack and memo ------------------------------------------------------------------------------

    def pop(self) -> Any:
        """Take the top of the stack."""
        if not self.stack:
            self.wrong("pickle takes a value that is not there")
        return self.stack.pop()

    def top(self, kind: Any = object) -> Any:
        """Return the top of the stack, which must be of this kind."""
        if not self.stack or not isinstance(self.stack[-1], kind):
            self.wrong("pickle fills a value that is another kind of container")
        return self.stack[-1]

    def above(self) -> list[Any]:
        """Take all values above the last mark."""
        if not self.marks:
            self.wrong("pickle has no mark here")
        values, self.stack = self.stack, self.marks.pop()
        return values

    def push(self, value: object) -> None:
        """Push a constant."""
        self.stack.append(value)

    def push_tuple(self, count: int) -> None:
        """Push a tuple of the topmost values."""
        self.stack.append(tuple([self.pop() for _ in range(count)][::-1]))

    def put_in_memo(self, width: int) -> None:
        """Store the topmost value in the memo under the next number, of `width` bytes."""
        self.memo[self.number(width)] = self.top()

    def get_by_number(self, width: int) -> None:
        """Push the value that the memo has under the next number, of `width` bytes."""
        index = self.number(width)
        if index not in self.memo:
            self.wrong(f"memo has no value {index}")
        self.stack.append(self.memo[index])

    def do_pop(self) -> None:
        self.pop()

    def do_pop_mark(self) -> None:
        self.above()

    def do_mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def do_dup(self) -> None:
        self.stack.append(self.top())

    def do_memoize(self) -> None:
        self.memo[len(self.memo)] = self.top()

    def do_proto(self) -> None:
        if not 2 <= self.number(1) <= 5:
            raise Unsupported(
                "pickle is of another protocol", path=self.source.path, where=self.where,
                expected="2 to 5", got=self.data[self.next - 1],
            )  # fmt: skip

    def do_frame(self) -> None:
        self.take(8)

    # Containers ----------------------------------------------------------------------------------

    def do_empty_list(self) -> None:
        self.stack.append([])

    def do_empty_tuple(self) -> None:
        self.stack.append(())

    def do_empty_dict(self) -> None:
        self.stack.append({})

    def do_empty_set(self) -> None:
        self.stack.append(Items())

    def do_tuple(self) -> None:
        values = self.above()
        self.stack.append((*values,))

    def do_frozenset(self) -> None:
        values = self.above()
        self.stack.append(Items(values))

    def do_append(self) -> None:
        value = self.pop()
        self.top(list).append(value)

    def do_appends(self) -> None:
        values = self.above()
        self.top(list).extend(values)

    do_additems = do_appends

    def do_setitem(self) -> None:
        value, key = self.pop(), self.pop()
        self.put(self.top(dict), key, value)

    def do_setitems(self) -> None:
        values = self.above()
        mapping = self.top(dict)
        if len(values) % 2:
            self.wrong("pickle has a key without a value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            self.put(mapping, key, value)

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:
        """Set one item; keys are plain values."""
        if not isinstance(key, _KEYS) or (isinstance(key, int) and key.bit_length() > _KEY_BITS):
            raise Unsupported(
                "pickle has a key that is neither text nor a number", path=self.source.path,
                where=self.where, got=type(key).__name__,
            )  # fmt: skip
        mapping[key] = value

    def do_build(self) -> None:
        state = self.pop()
        target = self.top()
        if not isinstance(target, Ordered) or not isinstance(state, dict):
            name = f"{type(target).__name__}.__setstate__"
            self.unsafe(0x62, target.name if isinstance(target, Known) else name)
        target.state = tuple(str(key)[:80] for key in islice(state, 5))

    # Globals and what they make ------------------------------------------------------------------

    def do_binpersid(self) -> None:
        parts = self.pop()
        if not isinstance(parts, tuple) or len(parts) < 5 or parts[0] != "storage":
            self.wrong("persistent id is not a storage", got=type(parts).__name__)
        _, kind, key, _, count = parts[:5]
        sound = isinstance(kind, Known) and kind.kind == "storage" and isinstance(key, str)
        if not sound or not _is_count(count):
            self.wrong("storage is not described as torch does it")
        self.stack.append(Storage(key, STORAGES[kind.name], count))

    def named(self, code: int, module: str, name: str) -> None:
        """Push a global of the tables; refuse any other."""
        known = known_global(module, name)
        if known is None:
            self.unsafe(code, f"{module}.{name}")
        self.stack.append(known)

    def do_global(self) -> None:
        module = self.line()
        self.named(0x63, module, self.line())

    def do_stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            self.wrong("global has no name")
        self.named(0x93, module, name)

    def do_reduce(self) -> None:
        values, function = self.pop(), self.pop()
        if not isinstance(function, Known) or function.kind != "call":
            name = function.name if isinstance(function, Known) else type(function).__name__
            self.unsafe(0x52, name)
        self.stack.append(self.made(function, values))

    def made(self, function: Known, values: Any) -> Any:
        """Return the value that a global of the tables makes of arguments."""
        if not isinstance(values, tuple):
            self.wrong("arguments are not a tuple", got=type(values).__name__)
        for value in values[:9]:
            if isinstance(value, str | bytes):
                self.spend(len(value) // _CHEAP)
            elif isinstance(value, list | tuple):
                self.spend(len(value))
        result = getattr(self, f"as_{CALLS[function.name]}")(function.name, *values[:9])
        if result is None or len(values) > 9:
            self.wrong(f"{function.name} is used as torch does not", got=_kinds(values))
        return result

    # Each of these gets the name of the global and its arguments, and returns the value, or None
    # if torch does not write such arguments.

    def as_tensor(self, _: str, *values: Any) -> Tensor | None:
        if not 6 <= len(values) <= 7 or not isinstance(values[0], Storage):
            return None
        bits = values[6] if len(values) == 7 else None
        return self.view(values[:4], values[0].dtype or "uint8", bits)

    def as_typed_tensor(self, _: str, *values: Any) -> Tensor | None:
        if not 7 <= len(values) <= 8 or not isinstance(values[0], Storage):
            return None
        dtype, bits = values[6], values[7] if len(values) == 8 else None
        if not isinstance(dtype, Known) or dtype.kind != "dtype":
            return None
        return self.view(values[:4], dtype.name, bits)

    def view(self, parts: tuple[Any, ...], dtype: str, bits: Any) -> Tensor | None:
        """Return a view of a storage; None for anything but numbers in it."""
        storage, offset, shape, strides = parts
        for numbers in (shape, strides):
            if not isinstance(numbers, tuple) or len(numbers) > MAX_RANK:
                return None
            if not all(map(_is_count, numbers)):
                return None
        if not _is_count(offset) or len(shape) != len(strides):
            return None
        problem = "a tensor that is conjugated or negated when it is read" if bits else ""
        return Tensor(storage, dtype, offset, shape, strides, problem, state=False)

    def as_parameter(self, _: str, *values: Any) -> Tensor | None:
        if not 3 <= len(values) <= 4 or not isinstance(values[0], Tensor):
            return None
        return values[0]._replace(state=values[0].state or bool(values[3:] and values[3]))

    def as_tensor_of_type(self, _: str, *values: Any) -> Tensor | None:
        if len(values) != 4 or not all(isinstance(value, Known) for value in values[:2]):
            return None
        function, tensor_type, arguments, state = values
        if function.kind != "call" or tensor_type.kind != "constant":
            return None
        if CALLS[function.name] == "tensor_of_type":
            return None  # torch wraps once
        made = self.made(function, arguments)
        return made._replace(state=bool(state)) if isinstance(made, Tensor) else None

    def as_no_array(self, name: str, *_: Any) -> Tensor:
        return Tensor(_NO_STORAGE, "", 0, (), (), NUMBERS[name], state=False)

    def as_size(self, _: str, *values: Any) -> tuple[int, ...] | None:
        sound = len(values) == 1 and isinstance(values[0], list | tuple)
        return (*values[0],) if sound and all(map(_is_count, values[0])) else None

    def as_device(self, _: str, *values: Any) -> str | None:
        sound = 1 <= len(values) <= 2 and isinstance(values[0], str)
        if not sound or not all(map(_is_count, values[1:])):
            return None
        return ":".join(map(str, values))

    def as_layout(self, _: str, *values: Any) -> str | None:
        return values[0] if len(values) == 1 and isinstance(values[0], str) else None

    def as_ordered(self, _: str, *values: Any) -> Ordered | None:
        made = Ordered()
        if len(values) > 1 or (values and not isinstance(values[0], list)):
            return None
        for pair in values[0] if values else ():
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                return None
            self.put(made, pair[0], pair[1])
        return made

    def as_complex(self, _: str, *values: Any) -> complex | None:
        sound = len(values) == 2 and all(type(value) is float for value in values)
        return complex(*values) if sound else None

    def as_listed(self, _: str, *values: Any) -> Items | None:
        sound = len(values) <= 1 and all(isinstance(value, list) for value in values)
        return Items(*values) if sound else None

    def as_octets(self, _: str, *values: Any) -> bytes | None:
        if len(values) == 2 and isinstance(values[0], str) and values[1] in ("latin1", "latin-1"):
            try:
                return values[0].encode("latin-1")
            except UnicodeEncodeError:
                return None
        if len(values) > 1 or (values and not isinstance(values[0], bytes)):
            return None
        return values[0] if values else b""


def _is_count(value: Any) -> bool:
    """True for a whole number that lengths, offsets and strides can have."""
    return type(value) is int and 0 <= value < 1 << 63


def _kinds(values: Any) -> str:
    """Return the types of arguments, for messages."""
    return ", ".join(type(value).__name__ for value in values[:9])
