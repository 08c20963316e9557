"""Datasets whose headers say the same: the library is asked about the first of them only.

Thousands of small datasets are mostly of few kinds. A header is the same as another one if all of
its bytes are but these: where the elements lie, when it was written, and its checksum. Only headers
are compared that lie in one block, of contiguous data without attributes and without messages kept
elsewhere; so nothing of such a dataset is said but in these bytes, and in where its elements lie.

File format specification 3.0, IV.A.1 "Data Object Headers" and IV.A.2.
"""

from __future__ import annotations

from collections import namedtuple

from .header import (
    ADDRESS_BYTES,
    ATTRIBUTE_INFO,
    CONTIGUOUS,
    DATASPACE,
    DATATYPE,
    FILL,
    HEAD_BYTES,
    LAYOUT,
    NOWHERE,
    OLD_FILL,
    SECOND,
    message_places,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .files import File

    Spans = tuple[tuple[int, int], ...]

NIL, OLD_TIME, TIME = 0x00, 0x0E, 0x12  # messages
_ALONE = frozenset((NIL, DATASPACE, DATATYPE, OLD_FILL, FILL, OLD_TIME, TIME))
_SECONDS = 4  # where the time is in its message, up to the end
_CONTIGUOUS = bytes((3, CONTIGUOUS)), bytes((4, CONTIGUOUS))  # by version
_CHECKSUM_BYTES = 4
_V1_START = 16  # bytes before the messages of a header of version 1
_TIMES = 0x20  # flag of a header of version 2: four times of 4 bytes follow
_MOST_FORMS = 8  # where the odd bytes are, in the headers of one file
_MOST_KINDS = 1000  # of datasets that are remembered

# What the header of a dataset says: all of its bytes but the odd ones (one object for all that are
# the same), its length as `header_bytes` has it, and address and bytes of the elements.
Said = namedtuple("Said", "header length place nbytes")
# Where the odd bytes of headers are: `length` as above, the places of what is the same, and of the
# address of the elements.
_Form = namedtuple("_Form", "length same address")


class Headers:
    """Which headers of one file are known to be sound."""

    __slots__ = ("_forms", "_kinds")

    def __init__(self) -> None:
        self._forms: list[_Form] = []
        self._kinds: dict[bytes, bytes] = {}  # of sound headers

    def known(self, file: File, address: int) -> Said | None:
        """What the header at an address says, if one that says the same was found to be sound."""
        head = _head(file, address)
        for form in self._forms:
            kind = self._kinds.get(_same(head, form))
            if kind is not None:
                return _said(head, form, kind)
        return None

    def sound(self, file: File, address: int) -> Said | None:
        """Remember the sound header at an address; None if another cannot be compared with it."""
        if file.address_bytes != ADDRESS_BYTES or len(self._kinds) >= _MOST_KINDS:
            return None
        head = _head(file, address)
        form = _form_of(head)
        if form is None:
            return None
        if form not in self._forms:
            if len(self._forms) >= _MOST_FORMS:
                return None
            self._forms.append(form)
        kind = _same(head, form)
        return _said(head, form, self._kinds.setdefault(kind, kind))


def _head(file: File, address: int) -> bytes:
    return file.source.read_at(file.userblock + address, HEAD_BYTES)


def _same(head: bytes, form: _Form) -> bytes:
    return b"".join([head[begin:end] for begin, end in form.same])


def _said(head: bytes, form: _Form, kind: bytes) -> Said:
    at = form.address
    place, nbytes = (int.from_bytes(head[at + n : at + n + 8], "little") for n in (0, 8))
    return Said(kind, form.length, place, nbytes)


def _form_of(head: bytes) -> _Form | None:
    """Where the odd bytes of a header are; None if it does not lie here whole, or says more."""
    found = message_places(head)
    if found is None:
        return None
    end, messages = found
    odd: list[tuple[int, int]] = []
    address = None
    for kind, shared, at, size in messages:
        body = head[at : at + size]
        if shared or not (kind in _ALONE or _is_place(kind, body) or _is_nothing(kind, body)):
            return None
        if kind == LAYOUT:
            address = at + 2
            odd.append((address, address + ADDRESS_BYTES))
        elif kind == TIME:
            odd.append((at + _SECONDS, at + max(size, _SECONDS)))
    length = end
    if head.startswith(SECOND):
        length = _V1_START
        odd += [(6, 22)] * bool(head[5] & _TIMES) + [(end, end + _CHECKSUM_BYTES)]
        end += _CHECKSUM_BYTES
    if address is None or end > len(head):
        return None
    same, at = [], 0
    for first, last in sorted(odd):
        same.append((at, first))
        at = last
    return _Form(length, (*same, (at, end)), address)


def _is_place(kind: int, body: bytes) -> bool:
    """True for the message that says where contiguous data lie."""
    return kind == LAYOUT and body[:2] in _CONTIGUOUS and len(body) >= 2 + 2 * ADDRESS_BYTES


def _is_nothing(kind: int, body: bytes) -> bool:
    """True for the message that says where other attributes lie, if it says nowhere."""
    return kind == ATTRIBUTE_INFO and not set(body[4 if body[1:2] == b"\1" else 2 :]) - {0xFF}


def note_dataset(file: File, said: Said, address: int) -> None:
    """Note where the header and the elements of a dataset are, as of one that was looked at."""
    if said.place != NOWHERE:
        file.places[said.place] = min(said.nbytes, file.source.size)
    file.places[address] = said.length
