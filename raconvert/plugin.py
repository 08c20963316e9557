"""The contract of a plugin, and the types it is made of.

A plugin is a module with one frozen constant and a few plain functions; no base class, no global
state, no registration by import:

``FORMAT = Format(...)``
    What the format is and can; importing the module must import neither numpy nor a backend.
``sniff(source) -> NO | MAYBE | SURE``
    Pure look at a `Source` (`head`, `name`, `size`, `read_at`); never raises on foreign bytes.
``read(source, *, named options) -> Bundle``
    Lazy: checks the header, maps or promises the data. The bundle closes what it opened, by its
    `closers`.
``plan(bundle, *, named options) -> Plan``
    What the file will be, worked out once, from types, shapes, names and metadata, before any data
    is read: `fits` (what would be changed or lost; nothing to say means exact), `names` (under
    which the arrays are found again, where a format cannot keep every name or every order), and
    `write(target)`, which writes through `target.open()` or below `target.temp`; the core renames,
    or removes, it. What only shows while data is read goes to `Target.lost`, where
    `Target.allows` it, and to `Target.notes`.

Optional functions:

``read_stack(paths, *, named options, max_memory) -> Array``
    Many files of one shape and type as one lazy array on a new slowest axis, for formats of which
    people have tens of thousands of small files. Its data source may have `notes` (a list of
    lines) and, complete when its `stream` has ended, `common` (metadata that all files share, as
    `Metadata.to_dict` gives it) and `items` (a function that yields what differs, one mapping per
    file, or None).
``check(source) -> None``
    What `verify` checks besides decoding every array: raises `Corrupt`.
``target(path, *, max_memory, progress, overwrite) -> Target``
    The target of a format that is not a single file.
``split(array) -> int``
    For formats of low rank: how many of the slowest axes become separate files with ``--planes``.

A plugin that reads files which its file names asks `raconvert.files.references.resolve` for each;
one that writes a second file takes it from `Target.companion`. `file_fits` names what is lost of
file and groups where a format keeps arrays only. Properties in a `Fit` are words of this list:
type, shape, names, metadata, index order, precision, nulls, elements, storage.

What a format keeps about a file as a whole for its own way back (``Bundle.formats``) is not a loss
to name when another cannot hold it. A container format with ``meta="all"`` keeps
``Bundle.aliases``; for the others the core names that loss.

The core does temporary files, overwriting, the loss policy, progress, digests and sidecars. Writers
of raw data use `raconvert.arrays.raw.write_raw`, others `raconvert.arrays.blocks`.
Options are explicit keyword-only parameters, one `Option` row in `FORMAT` for each.
"""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import Element, dtype_of, element, element_of, little, type_name
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Unsupported, listed, quoted
from raconvert.files.extent import Extent
from raconvert.files.source import Source
from raconvert.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from raconvert.files.target import Target

    # The functions of a plugin. Options are further keyword-only parameters of its own.

    class Sniff(Protocol):
        """`NO`, `MAYBE` or `SURE`; never raises on foreign bytes."""

        def __call__(self, source: Source, /) -> int: ...

    class Read(Protocol):
        """The arrays of a file, lazily; raises `Corrupt`, `Unsupported`, `Unsafe`, …."""

        def __call__(self, source: Source, /, **options: Any) -> Bundle: ...

    class MakePlan(Protocol):
        """What a file will be that holds a bundle, before any data is read."""

        def __call__(self, bundle: Bundle, /, **options: Any) -> Plan: ...

    class ReadStack(Protocol):
        """Many files of one shape and type as one lazy array on a new slowest axis."""

        def __call__(self, paths: list[str], /, *, max_memory: int, **options: Any) -> Array: ...

    class Check(Protocol):
        """What `verify` checks besides decoding every array; raises `Corrupt`."""

        def __call__(self, source: Source, /) -> None: ...

    class MakeTarget(Protocol):
        """The target of a format that is not a single file."""

        def __call__(self, path: str, /, **named: Any) -> Target: ...

    class Split(Protocol):
        """The number of slowest axes that become separate files with ``--planes``."""

        def __call__(self, array: Array, /) -> int: ...


__all__ = [
    "API",
    "EQUIVALENT",
    "MAYBE",
    "NO",
    "REFUSED",
    "SURE",
    "Array",
    "Axis",
    "Bundle",
    "Element",
    "Extent",
    "Fit",
    "Format",
    "Metadata",
    "Option",
    "Plan",
    "Source",
    "Target",
    "dtype_of",
    "element",
    "element_of",
    "equivalent",
    "file_fits",
    "first_of",
    "little",
    "refused",
    "type_name",
]

API = 2  # the version of this contract
NO, MAYBE, SURE = 0, 1, 2  # what a sniffer answers
EQUIVALENT, REFUSED = "equivalent", "refused"  # the outcomes of `fits` worth a word


class _Format(Record):
    """The fields of a format."""

    api: int  # version of the contract: 2
    name: str  # short lower-case name, used by --from and --to
    title: str  # what people call it
    suffixes: tuple[str, ...]  # with the dot, lower case; the first is the usual one
    magic: tuple[tuple[int, bytes], ...]  # ((offset, bytes), ...): any of them must be there
    proof: bool  # True if the magic alone proves the format
    reads: bool
    writes: bool
    many: bool  # holds many named arrays
    lazy: bool  # data is read when it is asked for
    stream: bool  # writes front to back, so that it can go to a pipe
    meta: str  # "all" | "some" | "none": how much common metadata it can hold
    index_orders: str  # those it can store without moving data: "C", "F", "CF", "" = none
    needs: tuple[tuple[str, str], ...]  # ((import name, requirement), ...)
    sidecar: str  # "asked": on request · "auto": where needed · "never": its parts have their own
    trailer: bool  # takes bytes behind the data, and so metadata with --meta trailer
    folder: bool  # a folder, not a file
    raw_bools: bool  # keeps the byte of a bool, whatever it is
    native: bool  # read by native code that a damaged file may crash: in runs, in another process
    read_options: tuple[Option, ...]
    write_options: tuple[Option, ...]
    samples: dict[str, bytes]  # {file name: bytes}: small whole files that `sniff` must be sure of
    spec: str  # where the format is defined
    losses: str  # what cannot be held, in a line or two for `raconvert formats NAME`


class Format(_Format):
    """What a format is and can do; a frozen record."""

    __slots__ = ()

    def __new__(
        cls,
        *,
        api: int = API,
        name: str,
        title: str,
        suffixes: tuple[str, ...],
        magic: tuple[tuple[int, bytes], ...] = (),
        proof: bool = False,
        reads: bool = True,
        writes: bool = True,
        many: bool = False,
        lazy: bool = True,
        stream: bool = False,
        meta: str = "none",
        index_orders: str = "C",
        needs: tuple[tuple[str, str], ...] = (),
        sidecar: str = "asked",
        trailer: bool = False,
        folder: bool = False,
        raw_bools: bool = False,
        native: bool = False,
        read_options: tuple[Option, ...] = (),
        write_options: tuple[Option, ...] = (),
        samples: dict[str, bytes] | None = None,
        spec: str = "",
        losses: str = "",
    ) -> Format:
        """Fill in what most formats have in common."""
        return super().__new__(
            cls, api, name, title, suffixes, magic, proof, reads, writes, many, lazy, stream,
            meta, index_orders, needs, sidecar, trailer, folder, raw_bools, native,
            read_options,
            write_options, samples or {}, spec, losses,
        )  # fmt: skip


class Option(Record):
    """One option of `read` or `plan`; `default` is that of the parameter."""

    name: str
    default: Any
    choices: Any  # a tuple of allowed words, or a type: int, float, bool, str
    help: str


class Fit(Record):
    """One thing that writing `array` would change, or the reason why it cannot be written.

    `outcome` is `EQUIVALENT` or `REFUSED`; `property` names what is concerned (``type``,
    ``shape``, ``metadata``, ``names``, …); `reason` is a clause without the array's name; `flag`
    is what would allow a refused one (None: no flag can).
    """

    outcome: str
    array: str
    property: str
    reason: str
    flag: str | None

    def __str__(self) -> str:
        text = f"array '{self.array}': " if self.array else ""
        text = quoted(text + f"{self.property}: {self.reason}")
        if self.outcome == REFUSED and self.flag:
            text += f" (allow with {self.flag})"
        return text


def equivalent(array: str, property: str, reason: str) -> Fit:
    """Every value is kept, the form changes.

    >>> str(equivalent("x", "type", "bool is stored as uint8"))
    "array 'x': type: bool is stored as uint8"
    """
    return Fit(EQUIVALENT, array, property, reason, None)


def refused(array: str, property: str, reason: str, flag: str | None = None) -> Fit:
    """Values, elements or whole arrays would be lost.

    >>> str(refused("x", "type", "TOY has no complex64", "--dtype float64"))
    "array 'x': type: TOY has no complex64 (allow with --dtype float64)"
    """
    return Fit(REFUSED, array, property, reason, flag)


class Plan:
    """What a file will be that holds a bundle: decided once, before any data is read.

    `fits` lists what would be changed or lost; `names`, parallel to the arrays of the bundle, says
    under which names they are found again; `write` fills a `Target`.

    >>> plan = Plan([], lambda target: None, names=["x"])
    >>> plan.fits, plan.names
    ([], ['x'])
    """

    __slots__ = ("fits", "names", "write")

    def __init__(self, fits: list[Fit], write: Callable[[Any], None], *, names: list[str]) -> None:
        self.fits: list[Fit] = fits
        self.write: Callable[[Any], None] = write
        self.names: list[str] = names


class Plugin:
    """The functions of a loaded plugin, checked once; an optional one that it lacks is None.

    `Unsupported` if `module`, what was imported, lacks a function that its `FORMAT` promises.
    """

    __slots__ = ("FORMAT", "check", "plan", "read", "read_stack", "sniff", "split", "target")

    def __init__(self, module: Any) -> None:
        self.FORMAT: Format = module.FORMAT
        self.sniff: Sniff = _function(module, "sniff", needed=self.FORMAT.reads)
        self.read: Read = _function(module, "read", needed=self.FORMAT.reads)
        self.plan: MakePlan = _function(module, "plan", needed=self.FORMAT.writes)
        self.read_stack: ReadStack | None = _function(module, "read_stack")
        self.check: Check | None = _function(module, "check")
        self.target: MakeTarget | None = _function(module, "target")
        self.split: Split | None = _function(module, "split")


def _function(module: Any, name: str, *, needed: bool = False) -> Any:
    """The function of this name, or None where there is none and none is needed."""
    found = getattr(module, name, None)
    if callable(found) or (found is None and not needed):
        return found
    raise Unsupported(
        f"plugin {module.__name__} has no function `{name}`",
        expected=f"what version {API} of the plugin contract asks for",
        remedy="install a version of it made for this raconvert",
    )


def file_fits(bundle: Bundle, title: str) -> list[Fit]:
    """The losses of a format that keeps arrays only: attributes and forms of file and groups.

    >>> [str(fit) for fit in file_fits(Bundle([], attributes={"title": "t"}), "TOY")]
    ['metadata: TOY has no place for attributes of the file: title']
    """
    groups = bundle.telling_groups()
    attributes = [*bundle.attributes]
    attributes += [f"{group}/{name}" for group, own in groups.items() for name in own]
    empty = [f"{group}/" for group, own in groups.items() if not own]
    forms = [f"{group} ({form})" for group, form in bundle.forms.items() if len(bundle.arrays) > 1]
    losses = (
        ("attributes of the file", attributes),
        ("groups without arrays", empty),
        ("forms of groups", forms),
    )
    return [
        equivalent("", "metadata", f"{title} has no place for {what}: {first_of(names)}")
        for what, names in losses
        if names
    ]


def trailing_note(nbytes: int, after: str = "the data") -> str:
    """Return the note about bytes that follow what a format defines.

    One rule for all formats: they are counted and ignored, unless the format forbids them; then
    the file is `Corrupt`. Those of an .ra are kept.
    """
    return f"{nbytes} bytes after {after} were ignored"


def first_of(names: Sequence[str], count: int = 5) -> str:
    """Return names as a message lists them: of many the first ones.

    >>> first_of(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    return listed(names, count)


def __getattr__(name: str) -> Any:
    if name == "Target":
        from raconvert.files.target import Target

        return Target
    raise AttributeError(name)
