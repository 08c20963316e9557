"""From an archive to a bundle: its members, the pickle, and a tensor for each view of a storage."""

from __future__ import annotations

from functools import partial
from math import prod

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.errors import Corrupt, TooLarge, Unsupported, counted, listed
from raconvert.files import zips
from raconvert.files.inflate import ZIP_STORED
from raconvert.files.quoting import python
from raconvert.files.source import Checksum
from raconvert.plugin import Array, Bundle, Source, element

from .opcodes import interpreted
from .tables import ELEMENTS, LEGACY_MAGIC, WIDTHS
from .values import Contents, shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.zips import Member
    from raconvert.plugin import Extent

    from .opcodes import Storage, Tensor

__all__ = ["bundle_of"]

_PICKLE = "data.pkl"


def bundle_of(source: Source) -> Bundle:
    """Read the tensors of a checkpoint, lazily; plain values become attributes of the file.

    Raises `Unsafe` for a pickle that would import or call anything, `Corrupt`, `Unsupported` and
    `TooLarge`, all before data is read.
    """
    _refuse_others(source)
    members = {member.filename: member for member in zips.members(source)}
    folder = _folder(source, members)
    value = interpreted(_content(source, members[folder + _PICKLE]), folder + _PICKLE, source)
    contents = Contents(source)
    contents.walk(value, (), 0)
    if not contents.tensors:
        raise Unsupported(
            "holds no tensors", path=source.path, where=f"member '{folder}{_PICKLE}'",
            expected="tensors in containers of Python",
        )  # fmt: skip
    storages = _Storages(source, members, folder)
    arrays = [storages.array(name, tensor) for name, tensor in contents.tensors.items()]
    _check_sum(source, arrays)
    notes = [*shared(contents.tensors), *contents.notes()]
    return Bundle(some_sound(arrays), attributes=contents.attributes, notes=notes)


def _refuse_others(source: Source) -> None:
    """Refuse (`Unsupported`) the layouts of torch before ZIP archives, and other pickles."""
    head = source.head
    if head.startswith(LEGACY_MAGIC):
        what = "is a PyTorch file of the layout before 1.6: pickles one after the other, no archive"
    elif head[257:262] == b"ustar":
        what = "is a PyTorch file of the layout before 0.1.10: a tar archive"
    elif head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        what = "is a Python pickle, not an archive as torch.save makes it"
    else:
        return
    raise Unsupported(
        what, path=source.path, where="byte 0", expected="a ZIP archive",
        remedy="it is not opened here; in Python, if you trust the file: import torch; "
        f"torch.save(torch.load({python(source.path)}, weights_only=True), 'x.pt')",
    )  # fmt: skip


def _folder(source: Source, members: dict[str, Member]) -> str:
    """Return the folder in the archive, with a slash behind it.

    Raises `Corrupt` and `Unsupported` for archives that torch.save did not write.
    """
    pickles = [name for name in members if name.rpartition("/")[2] == _PICKLE]
    if len(pickles) != 1:
        raise Corrupt(
            "archive has several pickles" if pickles else
            "archive has no pickle as torch.save makes it",
            path=source.path, expected=f"one member FOLDER/{_PICKLE}",
            got=listed(pickles) or counted(len(members), "other member"),
        )  # fmt: skip
    folder = pickles[0].removesuffix(_PICKLE)
    of_programs = (f"{folder}constants.pkl", f"{folder}code/")
    code = next((name for name in members if name.startswith(of_programs)), None)
    if code is not None:
        raise Unsupported(
            "is a TorchScript archive: a program with its constants", path=source.path,
            where=f"member '{code}'", expected="an archive of torch.save",
            remedy="in Python, if you trust the file: import torch; "
            f"torch.save(torch.jit.load({python(source.path)}).state_dict(), 'x.pt')",
        )  # fmt: skip
    return folder


def _content(source: Source, member: Member) -> bytes:
    """Return the bytes of a small member, checked by its CRC-32. Raises `Corrupt`, `TooLarge`."""
    _check_stored(source, member)
    most = source.limits.document_bytes
    if member.size > most:
        raise TooLarge(
            "member is too long to be read safely", path=source.path,
            where=f"member '{member.filename}'", expected=f"at most {most} bytes", got=member.size,
        )  # fmt: skip
    decoded = zips.Decoded(source, member)
    try:
        data = decoded.read_exact(0, member.size, "the member")
        decoded.finish()
    except Corrupt as error:
        error.where = f"member '{member.filename}'"
        raise
    finally:
        decoded.close()
    return data


def _check_stored(source: Source, member: Member) -> None:
    """Refuse (`Unsupported`) a compressed member."""
    if member.method != ZIP_STORED:
        raise Unsupported(
            "member is compressed, which torch does not do", path=source.path,
            where=f"member '{member.filename}'", expected="stored members",
            remedy="unpack the archive, and pack it with zip -0",
        )  # fmt: skip


class _Storages:
    """The members with the elements, each an extent; views check its CRC-32 once."""

    def __init__(self, source: Source, members: dict[str, Member], folder: str) -> None:
        self.source = source
        self._members = members
        self._folder = folder
        self._extents: dict[str, Extent] = {}
        self._order = self._byte_order()

    def _byte_order(self) -> str:
        """Return ``<`` or ``>``. Raises `Corrupt` for another word in the member."""
        member = self._members.get(f"{self._folder}byteorder")
        if member is None:
            return "<"
        word = _content(self.source, member)
        if word not in (b"little", b"big"):
            raise Corrupt(
                "byte order is unknown", path=self.source.path,
                where=f"member '{member.filename}'", expected="little or big", got=repr(word[:20]),
            )  # fmt: skip
        return ">" if word == b"big" else "<"

    def array(self, name: str, tensor: Tensor) -> Array:
        """Return the array of a tensor, with a `problem` if it cannot be read."""
        try:
            return self._array(name, tensor)
        except (Corrupt, TooLarge, Unsupported) as error:
            error.where = f"tensor '{name[:80]}'" + (f", {error.where}" if error.where else "")
            return Array.unreadable(name, error)

    def _array(self, name: str, tensor: Tensor) -> Array:
        """Return the array of a tensor: an extent if it covers its storage, else a view."""
        path = self.source.path
        kind = ELEMENTS.get(tensor.dtype)
        if tensor.problem or kind is None:
            what = tensor.problem or f"a tensor of {tensor.dtype}, which no array holds"
            raise Unsupported(f"is {what}", path=path)
        if kind.kind != "user":
            kind = element(kind.kind, kind.nbytes, self._order, kind.descr)
        storage = self._extent(tensor.storage)
        width, shape = kind.nbytes, tensor.shape
        if spanned(shape, width) > MAX_SPAN:
            raise Corrupt("shape is beyond any memory", path=path, got=shape)
        ends = [(n - 1) * step for n, step in zip(shape, tensor.strides, strict=True)]
        begin = tensor.offset * width
        nbytes = prod(shape) * width
        end = begin + (sum(ends) + 1) * width if nbytes else 0
        if end > storage.nbytes:
            raise Corrupt(
                "reaches beyond its storage", path=path, expected=f"at most {storage.nbytes} bytes",
                got=end,
            )  # fmt: skip
        self._check_repeats(nbytes, storage.nbytes)
        fields: dict[str, Any] = {"name": name, "index_order": "C"}
        swap = needs_swap(kind)
        dense = nbytes == storage.nbytes
        if not nbytes or (dense and _strides_of(shape) == _own_strides(tensor)):
            return Array(kind, shape[::-1], extent=_swapped(storage, swap, nbytes), **fields)
        reverse = _strides_of(shape[::-1])[::-1]
        if dense and reverse == _own_strides(tensor):
            fields |= {"index_order": "F", "row_major": True}
            return Array(kind, shape, extent=_swapped(storage, swap, nbytes), **fields)
        steps = tuple(step * width for step in tensor.strides)
        data = partial(_view, self.source, storage, kind, begin, shape, steps, name)
        return Array(kind, shape[::-1], data=data, **fields)

    def _check_repeats(self, nbytes: int, stored: int) -> None:
        """Refuse (`TooLarge`) a tensor that repeats few bytes very often."""
        limits = self.source.limits
        if nbytes > max(limits.memory, limits.expansion_ratio * stored):
            raise TooLarge(
                f"declares {nbytes} bytes that are repeated", path=self.source.path,
                expected=f"at most {limits.memory} (`--max-memory`), unless more is stored",
                got=f"{stored} stored bytes",
            )  # fmt: skip

    def _extent(self, storage: Storage) -> Extent:
        """Return the extent of a storage. Raises `Corrupt` for another size than in the pickle."""
        if storage.key in self._extents:
            extent = self._extents[storage.key]
        else:
            filename = f"{self._folder}data/{storage.key}"
            member = self._members.get(filename)
            if member is None:
                raise Corrupt(
                    "storage is missing", path=self.source.path,
                    expected=f"a member '{filename[:200]}'",
                )  # fmt: skip
            _check_stored(self.source, member)
            extent = self.source.extent(member.offset, member.size)
            begin = self.source.base + member.offset
            where = f"member '{filename}'"
            extent.checksum = Checksum(begin, begin + member.size, member.crc, where)
            self._extents[storage.key] = extent
        nbytes = storage.length * (WIDTHS[storage.dtype] if storage.dtype else 1)
        if nbytes != extent.nbytes:
            raise Corrupt(
                "storage has another size than the pickle says", path=self.source.path,
                expected=f"{nbytes} bytes", got=extent.nbytes,
            )  # fmt: skip
        return extent


def _strides_of(shape: tuple[int, ...]) -> list[int | None]:
    """Return the strides of contiguous elements; None for axes of one element: any will do."""
    return [None if n == 1 else prod(shape[axis + 1 :]) for axis, n in enumerate(shape)]


def _own_strides(tensor: Tensor) -> list[int | None]:
    """Return the strides of a tensor; None for axes of one element."""
    return [None if n == 1 else step for n, step in zip(tensor.shape, tensor.strides, strict=True)]


def _swapped(storage: Extent, swap: int, nbytes: int) -> Extent:
    """Return the extent of a storage for numbers of `swap` bytes to reverse; empty without any."""
    extent = storage.part(0, nbytes)
    extent.swap = swap
    extent.checksum = storage.checksum if nbytes else None
    return extent


def _check_sum(source: Source, arrays: list[Array]) -> None:
    """Refuse (`TooLarge`) many tensors over the same few bytes."""
    total = sum(array.nbytes for array in arrays if array.problem is None)
    limits = source.limits
    if total > max(limits.memory, limits.expansion_ratio * source.size):
        raise TooLarge(
            f"tensors that share storages declare {total} bytes", path=source.path,
            expected=f"at most {limits.expansion_ratio} for each byte of the file",
            got=f"{source.size} bytes",
        )  # fmt: skip


def _view(*arguments: Any) -> Any:
    from .views import View  # which imports numpy

    return View(*arguments)
