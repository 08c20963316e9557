"""The objects of an HDF5 file, by a walk of our own over its links.

The library would follow soft and external links by itself, wherever they lead, and run in circles
where groups contain each other. Here every link is looked at first; objects are told apart by
their address; files that a link names are opened only through `raconvert.files.named.resolve`;
and objects are opened only by paths of hard links.
"""

from __future__ import annotations

from collections import namedtuple

from h5py import h5, h5g, h5l, h5o, h5p

from raconvert.errors import RaconvertError, ReadFailed, TooLarge, Unsupported

from .files import (
    DATASET,
    FAILURES,
    GROUP,
    TYPE,
    File,
    Files,
    guarded,
    info_of,
    name_in_link,
    reason_of,
)
from .ondisk.btrees import LINK_INFO, SYMBOL_TABLE, check_links, check_trees
from .ondisk.header import (
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
    check_dataset_header,
    header_bytes,
    message_places,
    messages,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Bundle


FEW_OBJECTS = 8  # up to so many objects, asking the library is faster than comparing headers

# An object: `path` is its name in the bundle, `hard` its path by hard links in `file`, `address`
# its address if its header is not parsed yet; `facts` those of its header, if another object has
# an equal one (`HeaderFacts`); `key` its file number and address.
Member = namedtuple("Member", "path kind file hard address facts key", defaults=(None, None, None))
# A further name of an object, or a link that leads to nothing: kind is hard, soft or external;
# `file` is (file, path of the group) until it is followed.
Link = namedtuple("Link", "path kind target file", defaults=(None,))


class Walk:
    """Result of a walk: objects in order, further links, and errors of objects left out."""

    def __init__(self, files: Files) -> None:
        self.members: list[Member] = []
        self.links: list[Link] = []
        self.aliases: dict[str, str] = {}  # from the path of a link to that of its object
        self.left_out: list[tuple[str, RaconvertError]] = []
        self.dangling: list[tuple[str, RaconvertError]] = []  # links that lead to nothing
        self._files = files
        self.limits: Limits = files.main.source.limits
        self._headers: dict[File, Headers] = {}
        self._parts = 0
        self._characters = 0
        self._links_asked: dict[tuple[File, bytes, bytes], tuple[int, Any]] = {}
        self._seen: dict[tuple[tuple[int, ...], int], str] = {}
        self._names: set[str] = set()
        # Links of other kinds, and their index among the members. Hard links are followed first, so
        # that an object has the name of one of them if it has any.
        self._later: list[tuple[int, Link]] = []
        self._object(Member("", GROUP, files.main, b"/"))
        while self._later:
            self._follow_links()

    def _follow_links(self) -> None:
        """Follow the links in `_later`; their objects are inserted where the links stood."""
        later, self._later = self._later, []
        members, self.members = self.members, []
        merged: list[Member] = []
        index = 0
        moved: list[tuple[int, Link]] = []
        for at, link in later:
            merged += members[index:at]
            index = at
            self._follow(link)
            moved += [(len(merged) + inner, deeper) for inner, deeper in self._later]
            merged += self.members
            self.members, self._later = [], []
        self.members = merged + members[index:]
        self._later = moved

    def _object(self, root: Member) -> None:
        """Record an object and, if it is a group, all objects that hard links lead to from it."""
        stack: list[Iterator[Member | Link]] = [iter([root])]
        while stack:
            link = next(stack[-1], None)
            if link is None:
                stack.pop()
                continue
            if isinstance(link, Link):
                self._later.append((len(self.members), link))
                self._check_totals(link.file[0])
                continue
            try:
                with guarded(link.file.path, f"object '/{link.path}'"):
                    inside = self._note(link)
                    if inside and len(stack) > self.limits.group_levels:
                        raise Unsupported(
                            f"groups are nested more than {self.limits.group_levels} deep"
                        )
            except TooMany:
                raise
            except RaconvertError as error:
                self.left_out.append((link.path, error))
            else:
                stack.append(iter(inside))

    def _note(self, member: Member) -> list[Member | Link]:
        """Record one object; return the members of a group, to be visited."""
        self._count(member)
        file, address = member.file, member.address
        many = len(self.members) >= FEW_OBJECTS
        if many and file not in self._headers:
            self._headers[file] = Headers()
        headers = self._headers.get(file)
        facts = headers.known(file, address) if headers and address is not None else None
        if address is not None and facts is None:
            check_dataset_header(file, address)
        info = info_of(file.fid, member.hard)
        if facts is not None and info.address == address:
            note_dataset(file, facts, info.address)
        else:
            check_trees(file, info.address)
            file.places[info.address] = header_bytes(file, info.address)
            is_checked = info.kind == DATASET and address in (None, info.address)
            facts = headers.sound(file, info.address) if headers and is_checked else None
        key = (info.fileno, info.address)
        member = member._replace(kind=info.kind, facts=facts, key=key)
        if key in self._seen:
            self.aliases[member.path] = self._seen[key]
            self.links.append(Link(member.path, "hard", self._seen[key]))
            return []
        if member.path in self._names:
            raise Unsupported("another object has the same name")
        self._seen[key] = member.path
        self._names.add(member.path)
        if info.kind not in (GROUP, DATASET, TYPE):
            raise Unsupported(f"an object of the unknown kind {info.kind}")
        self.members.append(member)
        if info.kind != GROUP:
            return []
        try:
            check_links(member.file, info.address)
        except RaconvertError as error:  # the links that can be read are followed nevertheless
            self.left_out.append((member.path, error))
        return self._inside(member)

    def _count(self, member: Member) -> None:
        """Raise `TooMany` if the file has too many objects, links, or characters in paths."""
        self._characters += len(member.path) + len(member.hard)
        self._check_totals(member.file)

    def _check_totals(self, file: File) -> None:
        for count, most, what in (
            (len(self.members), self.limits.nodes, "objects"),
            (len(self.links) + len(self._later), self.limits.links, "links"),
            (
                self._characters,
                self.limits.path_characters,
                "characters in the paths of its objects",
            ),
        ):
            if count > most:
                raise TooMany(f"has more than {most} {what}", path=file.path)

    def _inside(self, group: Member) -> list[Any]:
        """The links of a group in order: a `Member` for each hard one, a `Link` for the others."""
        inside: list[Any] = []
        for raw, kind, value in links_of(group.file, group.hard):
            name = shown(raw)
            path = f"{group.path}/{name}" if group.path else name
            if kind == h5l.TYPE_HARD:
                hard = group.hard.rstrip(b"/") + b"/" + raw
                inside.append(Member(path, -1, group.file, hard, value))
            elif kind == h5l.TYPE_SOFT:
                inside.append(Link(path, "soft", name_in_link(value), (group.file, group.hard)))
            elif kind == h5l.TYPE_EXTERNAL:
                target = [name_in_link(value[0]), name_in_link(value[1])]
                inside.append(Link(path, "external", target, (group.file, group.hard)))
            else:
                error = Unsupported(
                    f"a user-defined link of class {kind}, which cannot be followed"
                )
                self.left_out.append((path, error))
        return inside

    def _follow(self, link: Link) -> None:
        """Follow a soft or external link: a second name, a new object, or nothing."""
        file, group = link.file
        recorded = link._replace(file=None)
        try:
            if link.kind == "soft":
                file, hard = self.resolve(file, group, link.target)
            else:
                file = self._files.named(file, link.target[0], "the file of an external link")
                file, hard = self.resolve(file, b"/", link.target[1])
            with guarded(file.path, f"object '{shown(hard)}'"):
                info = info_of(file.fid, hard)
        except RaconvertError as error:
            self.links.append(recorded)
            self.dangling.append((link.path, error))
            return
        seen = self._seen.get((info.fileno, info.address))
        if seen is not None:
            self.aliases[link.path] = seen
            self.links.append(recorded if link.kind == "soft" else Link(link.path, "hard", seen))
            return
        self._object(Member(link.path, info.kind, file, hard))

    def resolve(self, file: File, group: bytes, target: str) -> tuple[File, bytes]:
        """Follow a path link by link; return the file and the path by hard links where it ends."""
        parts = target.encode("utf-8", "surrogateescape").split(b"/")[::-1]
        here = b"/" if target.startswith("/") else group
        steps = 0
        while parts:
            part = parts.pop()
            self._parts += 1
            if self._parts > self.limits.link_steps:
                raise Unsupported(
                    f"links of the file lead along more than {self.limits.link_steps} names"
                )
            if part in (b"", b"."):
                continue
            kind, value = self._link_of(file, here, part)
            if kind == h5l.TYPE_HARD:
                check_dataset_header(file, value)
                here = here.rstrip(b"/") + b"/" + part
                continue
            steps += 1
            if steps > self.limits.path_links:
                what = (
                    f"links lead in a circle, or through more than {self.limits.path_links} others"
                )
                raise ReadFailed(what, path=file.path, where=f"link '{target}'")
            if kind == h5l.TYPE_SOFT:
                more = value
            elif kind == h5l.TYPE_EXTERNAL:
                file = self._files.named(
                    file, name_in_link(value[0]), "the file of an external link"
                )
                here, more = b"/", value[1]
            else:
                raise Unsupported("a user-defined link, which cannot be followed", path=file.path)
            here = b"/" if more.startswith(b"/") else here
            parts += more.split(b"/")[::-1]
        return file, here

    def _link_of(self, file: File, group: bytes, name: bytes) -> tuple[int, Any]:
        """Return the result of `link_of`, cached: chains of links pass the same ones again."""
        key = (file, group, name)
        if key not in self._links_asked:
            self._links_asked[key] = link_of(file, group, name)
        return self._links_asked[key]


class TooMany(TooLarge):
    """Error of a total of the whole file above its limit; no object is read."""


def shown(raw: bytes) -> str:
    """A path or name as text, for names of arrays and for messages."""
    return raw.decode("utf-8", "backslashreplace")


def links_of(file: File, group: bytes) -> list[tuple[bytes, int, Any]]:
    """Return (name, class, value) of each link of a group, in creation order where tracked."""
    gid, address = _group(file, group)
    return links_in(file, gid, address)


def links_in(file: File, gid: h5g.GroupID, address: int) -> list[tuple[bytes, int, Any]]:
    """`links_of` for an open group at an address."""
    kinds = {kind for kind, _ in messages(file, address)}
    # A group with a symbol table has no creation order; asking the library for it takes long.
    tracked = (SYMBOL_TABLE not in kinds or LINK_INFO in kinds) and (
        gid.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    )
    names: list[bytes] = []
    index = h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME
    gid.links.iterate(names.append, idx_type=index)
    return [(name, *_link(gid, name)) for name in names]


def _link(gid: h5g.GroupID, name: bytes) -> tuple[int, Any]:
    """Return the class of a link and its target: an address for a hard link."""
    info = gid.links.get_info(name)
    if info.type in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
        return info.type, gid.links.get_val(name)
    return info.type, info.u


def link_of(file: File, group: bytes, name: bytes) -> tuple[int, Any]:
    """Class and value of one link of a group. Raises `ReadFailed` if it is missing."""
    with guarded(file.path, f"group '{shown(group)}'"):
        gid = _group(file, group)[0]
        try:
            return _link(gid, name)
        except FAILURES as error:
            raise ReadFailed(
                f"link leads to nothing: '{shown(name)}' does not exist ({reason_of(error)})",
                path=file.path,
                where=f"group '{shown(group)}'",
            ) from error


def _group(file: File, path: bytes) -> tuple[h5g.GroupID, int]:
    """The group of this path, and its address."""
    group = h5o.open(file.fid, path)
    if not isinstance(group, h5g.GroupID):
        raise ReadFailed("link leads to nothing: a dataset is not a group", path=file.path)
    address = info_of(group).address
    check_trees(file, address)
    return group, address


# --- datasets with equal headers ------------------------------------------------------------------

# Thousands of small datasets are mostly of few kinds; the library is asked about the first of each.
# Two headers are equal if all their bytes are, except the address of the elements, times, and the
# checksum. Only headers in one block are compared, of contiguous data without attributes and shared
# messages: they, and the address of the elements, decide everything about such a dataset. File
# format specification 3.0, IV.A.

NIL, OLD_TIME, TIME = 0x00, 0x0E, 0x12  # numbers of messages
_ALONE = frozenset((NIL, DATASPACE, DATATYPE, OLD_FILL, FILL, OLD_TIME, TIME))
_SECONDS = 4  # offset of the time in its message, which it ends
_CONTIGUOUS = bytes((3, CONTIGUOUS)), bytes((4, CONTIGUOUS))  # by version
_CHECKSUM_BYTES = 4
_V1_START = 16  # bytes before the messages of a header of version 1
_TIMES = 0x20  # flag of a version-2 header: four times (4 bytes each) follow
_MOST_FORMS = 8  # forms of headers cached per file
_MOST_KINDS = 1000  # kinds of datasets cached per file

# The facts of the header of a dataset: the bytes that are compared (one object for all equal ones),
# its length as `header_bytes` returns it, and address and bytes of the elements.
HeaderFacts = namedtuple("HeaderFacts", "header length address nbytes")
# The form of alike headers: `length` as above, the ranges of the bytes that are compared, and the
# offset of the address of the elements.
_Form = namedtuple("_Form", "length same address")


class Headers:
    """Cache of the sound headers of one file."""

    __slots__ = ("_forms", "_kinds")

    def __init__(self) -> None:
        self._forms: list[_Form] = []
        self._kinds: dict[bytes, bytes] = {}  # kinds of sound headers

    def known(self, file: File, address: int) -> HeaderFacts | None:
        """Return the facts of the header at an address if an equal one was sound; else None."""
        head = _head(file, address)
        for form in self._forms:
            kind = self._kinds.get(_same(head, form))
            if kind is not None:
                return _facts_of(head, form, kind)
        return None

    def sound(self, file: File, address: int) -> HeaderFacts | None:
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
        return _facts_of(head, form, self._kinds.setdefault(kind, kind))


def _head(file: File, address: int) -> bytes:
    return file.source.read_at(file.userblock + address, HEAD_BYTES)


def _same(head: bytes, form: _Form) -> bytes:
    """The bytes of a header that are compared."""
    return b"".join([head[begin:end] for begin, end in form.same])


def _facts_of(head: bytes, form: _Form, kind: bytes) -> HeaderFacts:
    at = form.address
    address, nbytes = (int.from_bytes(head[at + n : at + n + 8], "little") for n in (0, 8))
    return HeaderFacts(kind, form.length, address, nbytes)


def _form_of(head: bytes) -> _Form | None:
    """The form of a header; None if it is in several blocks, or has other messages."""
    parsed = message_places(head)
    if parsed is None:
        return None
    end, messages = parsed
    left_out: list[tuple[int, int]] = []
    address = None
    for kind, shared, at, size in messages:
        body = head[at : at + size]
        if shared or not (kind in _ALONE or _is_place(kind, body) or _is_nothing(kind, body)):
            return None
        if kind == LAYOUT:
            address = at + 2
            left_out.append((address, address + ADDRESS_BYTES))
        elif kind == TIME:
            left_out.append((at + _SECONDS, at + max(size, _SECONDS)))
    length = end
    if head.startswith(SECOND):
        length = _V1_START
        left_out += [(6, 22)] * bool(head[5] & _TIMES) + [(end, end + _CHECKSUM_BYTES)]
        end += _CHECKSUM_BYTES
    if address is None or end > len(head):
        return None
    same, at = [], 0
    for first, last in sorted(left_out):
        same.append((at, first))
        at = last
    return _Form(length, (*same, (at, end)), address)


def _is_place(kind: int, body: bytes) -> bool:
    """True for the layout message of contiguous data."""
    return kind == LAYOUT and body[:2] in _CONTIGUOUS and len(body) >= 2 + 2 * ADDRESS_BYTES


def _is_nothing(kind: int, body: bytes) -> bool:
    """True for an attribute info message without a heap."""
    return kind == ATTRIBUTE_INFO and not set(body[4 if body[1:2] == b"\1" else 2 :]) - {0xFF}


def note_dataset(file: File, facts: HeaderFacts, address: int) -> None:
    """Record the addresses of the header and of the elements of a dataset, as for a checked one."""
    if facts.address != NOWHERE:
        file.places[facts.address] = min(facts.nbytes, file.source.size)
    file.places[address] = facts.length


# Names of arrays and the links that HDF5 can have for them ---------------------------------------


UNNAMED = "data"  # the link of an array without a name


def link_names(names: list[str]) -> list[str]:
    """A path of links for each name: the name itself if HDF5 can have it."""
    datasets: set[str] = set()
    groups: set[str] = set()
    links = []
    for name in names:
        link = "/".join(component(part) for part in name.split("/")) if name else UNNAMED
        number = 1
        wanted = link
        while not _is_free(link, datasets, groups):
            number += 1
            link = f"{wanted.replace('/', '_')}_{number}"
        datasets.add(link)
        groups.update(parents(link))
        links.append(link)
    return links


def may_be_group(path: Any, taken: Collection[str]) -> bool:
    """True if a group can have this path beside arrays with the links `taken`."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(component(part) != part for part in parts):
        return False
    return path not in taken and not any(above in taken for above in parents(path))


def kept_links(bundle: Bundle, space: dict[str, Any]) -> list[list[Any]]:
    """[path, kind, target] of each link that the file had, if the bundle is all of the file.

    For a part of it, only the further names of its arrays are written (`Bundle.aliases`).
    """
    links = space.get("links")
    if not isinstance(links, list) or space.get("arrays", len(bundle)) != len(bundle):
        return []
    return [
        link
        for link in links
        if isinstance(link, list) and len(link) == 3 and isinstance(link[0], str)
    ]


def alias_links(bundle: Bundle, space: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The target of each alias that becomes a link, by alias; and the aliases that cannot be one.

    Links in the namespace `space` of a file are in neither, as they are written from there. No
    alias takes the name of a link, a dimension or an empty dataset in it.
    """
    links = dict(zip(bundle.names, link_names(bundle.names), strict=True))
    taken = set(links.values())
    groups = {"", *(path for path in bundle.groups if may_be_group(path, taken))}
    groups.update(*map(parents, (*taken, *groups)))
    kept_paths = {path for path, _, _ in kept_links(bundle, space)}
    taken |= kept_paths
    for paths in (space.get("dimensions"), space.get("empty")):
        taken.update(paths if isinstance(paths, dict) else ())
    targets: dict[str, str] = {}
    left: list[str] = []
    for alias, name in bundle.aliases.items():
        if alias in kept_paths:
            continue
        exists = name in links or name in groups
        if exists and alias not in groups and may_be_group(alias, taken):
            targets[alias] = links.get(name, name)
            taken.add(alias)
            groups.update(parents(alias))
        else:
            left.append(alias)
    return targets, left


def component(part: str) -> str:
    """One part of a path, changed to one that HDF5 can have."""
    part = part.encode("utf-8", "backslashreplace").decode().replace("\0", "_")
    return {"": "_", ".": "_"}.get(part, part)


def parents(link: str) -> list[str]:
    """The paths of the groups in which a path lies, outermost first."""
    return [link[:at] for at, letter in enumerate(link) if letter == "/"]


def _is_free(link: str, datasets: set[str], groups: set[str]) -> bool:
    return link not in datasets and link not in groups and datasets.isdisjoint(parents(link))
