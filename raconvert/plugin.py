"""The contract of a plugin, and the types it is made of.

A plugin is a module with one frozen constant and a few plain functions; no base class, no global
state, no registration by import:

``FORMAT = Format(...)``
    What the format is and can; importing the module must import neither numpy nor a backend.
``sniff(source) -> NO | MAYBE | SURE``
    Pure look at a `Source` (`head`, `name`, `size`, `read_at`); never raises on foreign bytes.
``read(source, *, named options) -> Bundle``
    Lazy: checks headers, maps or promises data. `closers` of the bundle close what was opened.
``plan(bundle, *, named options) -> Plan``
    What the file will be, worked out once, from types, shapes, names and metadata, before any data
    is read: `fits` (what would be changed or lost; nothing to say means exact), `names` (under
    which the arrays are found again, where a format cannot keep every name or every order), and
    `write(target)`, which writes through `target.open()` or below `target.temp`; the core renames,
    or removes, it. What only shows while data is read goes to `Target.lost`, where
    `Target.allows` it, and to `Target.notes`.

Optional functions, of which the Protocols below say shapes, units and errors: ``add`` (an array
more in a container that exists), ``read_stack`` (many small files as one array), ``read_together``
(the files of a folder as one source), ``check`` (what `verify` looks at besides), ``target``,
``check_target`` (of a format that is not one file), ``data_range`` (for sidecars), ``split``
(formats of low rank), ``programs`` (how other libraries read an array).

A plugin that reads files which its file names asks `Source.named` for each, and `Source.beside` for
one of its own name; one that writes a second file takes it from `Target.beside`. `facts_of` names
what the metadata of an array says, field by field, for a fit that says what is lost; `file_fits`
names what is lost of file and groups where a format keeps arrays only; ``Bundle.formats``, for its
own way back, does not count as lost. A container with ``meta="all"`` keeps ``Bundle.aliases``; for
the others the core names that loss. The property of a `Fit` is one of `PROPERTIES`.

The core does temporary files, overwriting, the loss policy, progress, digests and sidecars. Writers
of raw data use `raconvert.arrays.blocks.write_raw`, others `raconvert.arrays.blocks`.
"""

from __future__ import annotations

from types import ModuleType

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Alike, Bundle, raw_alike
from raconvert.arrays.dtypes import Element, dtype_of, element, element_of, little, type_name
from raconvert.arrays.metadata import Axis, Metadata, Space
from raconvert.arrays.summary import facts_of_axes
from raconvert.declared import Record
from raconvert.errors import TargetExists, Unsupported, listed, quoted, worded
from raconvert.files.source import Extent, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from raconvert.files.target import Target

    # The functions of a plugin; options are further keyword-only parameters. Sizes are in bytes,
    # `dims` fastest axis first; array sources are sliced slowest axis first.

    class Sniff(Protocol):
        """`NO`, `MAYBE` or `SURE`, by a look at `head`, `name`, `size` and `read_at` of a source.

        Never raises on foreign bytes: what cannot be understood is `NO`.
        """

        def __call__(self, source: Source, /) -> int: ...

    class Read(Protocol):
        """The arrays of a file, lazily: each with element type, dims, index order and metadata.

        Raises `Corrupt` for a damaged file, `Unsupported` for what the plugin does not read,
        `TooLarge` for what needs more than `source.max_memory`, `Unsafe` for a file outside the
        folder that the source names, `MissingDependency` without its package. An array that alone
        cannot be read is `Array.unreadable`. Reading its data raises the same errors.
        """

        def __call__(self, source: Source, /, **options: Any) -> Bundle: ...

    class MakePlan(Protocol):
        """Plan the file that will hold a bundle, before any data is read.

        Raises nothing for what the format cannot hold: that is a `Fit` of the plan, made by
        `refused`. `Plan.write` raises `WouldLose` for what only shows in the data, `TooLarge`, and
        what reading the arrays raises; errors of the system become `WriteFailed`.
        """

        def __call__(self, bundle: Bundle, /, **options: Any) -> Plan: ...

    class Add(Protocol):
        """Plan the container that results when the arrays of a bundle are added to it.

        `source` is the container, `held` what `read` finds in it (no arrays if it finds none).
        `Plan.write` writes all of the new container, in which everything else is as it was, byte
        for byte: also what `read` leaves out. Each name of `Plan.names` that `held` has is replaced
        with `overwrite`; without it, and for anything else of that name, raises `TargetExists`
        (`array_exists`, `not_an_array`). Raises `Unsupported` for a container that it cannot keep
        as it is, and what reading it raises; `Fit`s are made as by `plan`.
        """

        def __call__(
            self,
            bundle: Bundle,
            source: Source,
            held: Bundle,
            /,
            *,
            overwrite: bool,
            **options: Any,
        ) -> Plan: ...

    class ReadStack(Protocol):
        """Many files of one shape and type as one lazy array, for formats of small files.

        The files are the items along a new slowest axis, the last of `dims`. The array source may
        have `notes` (lines) and, complete when its `stream` has ended, `common` (metadata of all
        files, as of `Metadata.to_dict`) and `items` (a function that yields a mapping per file of
        what differs, or None). Raises `UsageError` for files that are not alike, and what `read`
        raises, with the path of the file.
        """

        def __call__(self, paths: list[str], /, *, max_memory: int, **options: Any) -> Array: ...

    class ReadTogether(Protocol):
        """The arrays of several files that belong together, in an order that the files tell.

        `folder` is the path of the folder that holds all of them, or None for a list of files. A
        file of a folder that is of no use is left out with a note. Raises what `read` raises, with
        the path of the file.
        """

        def __call__(
            self, sources: list[Source], /, *, folder: str | None, **options: Any
        ) -> Bundle: ...

    class Check(Protocol):
        """Check for `verify` what decoding the arrays does not check; raises `Corrupt`."""

        def __call__(self, source: Source, /) -> None: ...

    class MakeTarget(Protocol):
        """The target of a format that is not one file; raises nothing, its methods as `Target`'s.

        Named: `max_memory`, `progress` (called with numbers of bytes), `overwrite`.
        """

        def __call__(self, path: str, /, **named: Any) -> Target: ...

    class CheckTarget(Protocol):
        """Raises `TargetExists` or `UsageError` if a destination may not be written."""

        def __call__(self, path: str, /, *, overwrite: bool) -> None: ...

    class DataRange(Protocol):
        """Return begin and end of the data of a file, in bytes, and fields that describe the file.

        A sidecar repeats the fields and has checksums of the data. Raises what `read` raises.
        """

        def __call__(self, source: Source, /) -> tuple[int, int, dict[str, Any]]: ...

    class Split(Protocol):
        """Return the number of slowest axes that become separate files with ``--planes``.

        Raises nothing.
        """

        def __call__(self, array: Array, /) -> int: ...

    class Programs(Protocol):
        """Programs by which other libraries read an array of a file: language -> lines to paste.

        Languages as in `raconvert.views.pages.programs`; one without a library that gives this very
        array, its values in this shape, is left out. `FILE`, `NAME` and `PATH` stand for the names
        of file and array and for `/NAME`, in quotes of the language. Raises nothing.
        """

        def __call__(self, array: Array, /) -> dict[str, str]: ...


__all__ = [
    "API", "EQUIVALENT", "MAYBE", "MODEL", "NO", "PROPERTIES", "REFUSED", "SURE", "Alike", "Array",
    "Axis", "Bundle", "Element", "Extent", "Fit", "Format", "Metadata", "Option", "Plan", "Source",
    "Space", "Target", "array_exists", "dtype_of", "element", "element_of", "equivalent",
    "facts_of", "facts_of_axes", "fields_of_axes", "file_fits", "first_of", "little",
    "not_an_array", "raw_alike", "refused", "refused_type", "type_name",
]  # fmt: skip

API = 2  # the version of this contract
NO, MAYBE, SURE = 0, 1, 2  # what a sniffer answers
EQUIVALENT, REFUSED = "equivalent", "refused"  # the outcomes of `fits` worth a word
MODEL = (  # what the core knows of an array besides its elements; `Metadata` has it
    "names", "labels", "spacing", "space", "scale", "units", "description", "attributes",
)  # fmt: skip
PROPERTIES = (  # what a fit is about
    "type", "shape", "names", "metadata", "index order", "precision", "nulls", "elements",
    "storage",
)  # fmt: skip


class Format(Record):
    """A format and its abilities; a frozen record, whose fields are given by name.

    Only `name`, `title` and `suffixes` have no default:

    name: short lower-case name, used by --from and --to
    title: what people call it
    suffixes: with the dot (or hyphen), lower case; the first is the usual one
    api: version of the contract
    magic: ((offset, bytes), ...): any of them must be there
    proof: True if the magic alone proves the format
    bare: a file may lack the magic; where nobody is sure, `sniff` is asked all the same
    reads: has `sniff` and `read`
    writes: has `plan`
    many: holds many named arrays; without it a bundle always has exactly one
    alone: one array has no name in the file unless the user gives it one (`Bundle.named`)
    lazy: data is read when it is asked for
    stream: is written front to back, so that `-o -` works; sources are always files
    meta: how much common metadata it can hold: "all", "some" or "none"
    holds: the words of `MODEL` that it has a place for, at least for some arrays
    index_orders: those it can store without moving data: "C", "F", "CF"; "" if it defines none
    needs: packages, ((import name, requirement), ...)
    sidecar: "asked": on request; "auto": where needed; "never": its parts have their own
    trailer: takes bytes behind the data, and so metadata with --meta trailer
    folder: is a folder, not a file
    marks: files in a folder that is one of the format
    together: several of its files, or a folder of them, are read as one (`read_together`)
    raw_bools: keeps the byte of a bool, whatever it is
    names_files: a file may name others, which are read with it
    native: read by native code that a damaged file may crash: in runs, in another process
    read_options: rows of `Option`, one for each named parameter of `read`
    write_options: rows of `Option`, one for each named parameter of `plan`
    float8: names of the floats of one byte that it has; all others are refused for it
    refuses: kinds of elements, "SUmM", of which it refuses some that only the values tell
    samples: {file name: bytes}: small whole files that `sniff` must be sure of
    spec: where the format is defined
    losses: what cannot be held, in a line or two for `raconvert formats NAME`

    Raises `TypeError` for an argument that is not one of the fields.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    api: int = API
    magic: tuple[tuple[int, bytes], ...] = ()
    proof: bool = False
    bare: bool = False
    reads: bool = True
    writes: bool = True
    many: bool = False
    alone: bool = False
    lazy: bool = True
    stream: bool = False
    meta: str = "none"
    holds: tuple[str, ...] = ()
    index_orders: str = "C"
    needs: tuple[tuple[str, str], ...] = ()
    sidecar: str = "asked"
    trailer: bool = False
    folder: bool = False
    marks: tuple[str, ...] = ()
    together: bool = False
    raw_bools: bool = False
    names_files: bool = False
    native: bool = False
    read_options: tuple[Option, ...] = ()
    write_options: tuple[Option, ...] = ()
    float8: tuple[str, ...] = ()
    refuses: str = ""
    samples: dict[str, bytes] = {}  # noqa: RUF012 - as in a named tuple
    spec: str = ""
    losses: str = ""


class Option(Record):
    """One option: an explicit keyword-only parameter of `read` or `plan`, and its default."""

    name: str
    default: Any
    choices: Any  # a tuple of allowed words, or a type: int, float, bool, str
    help: str


class Fit(Record):
    """One thing that writing `array` would change, or the reason why it cannot be written.

    `outcome` is `EQUIVALENT` or `REFUSED`; `property` is one of `PROPERTIES`; `reason` is a clause
    without the array's name; `flag` is what would allow a refused one, as the command line has it
    (None: no flag can). Byte order is not part of the value: a change of it makes no fit.
    """

    outcome: str
    array: str
    property: str
    reason: str
    flag: str | None

    def __str__(self) -> str:
        return worded(self.as_written())

    def __repr__(self) -> str:
        return worded(super().__repr__())

    def as_written(self) -> str:
        """Return the line for a message, with options between backticks. Raises nothing."""
        text = f"array '{self.array}': " if self.array else ""
        text = quoted(text + f"{self.property}: {self.reason}")
        if self.outcome == REFUSED and self.flag:
            text += f" (allow with {_marked(self.flag)})"
        return text


def _marked(flags: str) -> str:
    """Put backticks around each option of a list: ``--dtype uint8, --dtype uint16 or --scale``."""
    text = flags.replace(", --", "`, `--").replace(" or --", "` or `--")
    return f"`{text.replace(' and --', '` and `--')}`"


def equivalent(array: str, property: str, reason: str) -> Fit:
    """Every value is kept, the form changes. Raises nothing.

    >>> str(equivalent("x", "type", "bool is stored as uint8"))
    "array 'x': type: bool is stored as uint8"
    """
    return Fit(EQUIVALENT, array, property, reason, None)


def refused(array: str, property: str, reason: str, flag: str | None = None) -> Fit:
    """Values, elements or whole arrays would be lost. Raises nothing.

    >>> print(refused("x", "type", "TOY has no complex64", "--dtype float64"))
    array 'x': type: TOY has no complex64 (allow with dtype="float64")
    """
    return Fit(REFUSED, array, property, reason, flag)


def refused_type(array: Array, title: str, dtype: str) -> Fit:
    """Format `title` has no such elements; numbers may become `dtype`. Raises nothing.

    >>> print(refused_type(Array(element("float", 2), (3,), name="x"), "TOY", "float64"))
    array 'x': type: TOY has no float16 (allow with dtype="float64")
    """
    flag = None if array.element.kind == "user" else f"--dtype {dtype}"
    return refused(array.name, "type", f"{title} has no {type_name(little(array.element))}", flag)


class Plan:
    """Plan of a file that will hold a bundle, made once, before any data is read.

    `fits` lists what would be changed or lost; `names`, parallel to the arrays, says under which
    names they are found again, read with `in_opts`; `write` fills a `Target`. `header` makes what
    is before the elements of any name (`write_raw`); `whole` makes all of a file of its elements.
    `notes` are lines that the user is to know before anything is written.

    >>> Plan([], lambda target: None, names=["x"]).names
    ['x']
    """

    __slots__ = ("fits", "header", "in_opts", "names", "notes", "whole", "write")

    def __init__(
        self, fits: list[Fit], write: Callable[[Any], None], *, names: list[str],
        header: Callable[[], bytes] | None = None, whole: Callable[[bytes], bytes] | None = None,
        in_opts: dict[str, Any] | None = None, notes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.fits: list[Fit] = fits
        self.notes: list[str] = [*notes]
        self.in_opts: dict[str, Any] = in_opts or {}
        self.whole: Callable[[bytes], bytes] | None = whole
        self.header: Callable[[], bytes] | None = header
        self.write: Callable[[Any], None] = write
        self.names: list[str] = names


_FUNCTIONS = (
    "sniff", "read", "plan", "add", "read_stack", "read_together", "check", "target",
    "check_target", "data_range", "split", "programs",
)  # fmt: skip


class Plugin:
    """The functions of a loaded plugin, checked once; an optional one that it lacks is None.

    `Unsupported` if `module`, what was imported, lacks a function that its `FORMAT` promises.
    """

    __slots__ = (
        "FORMAT", "add", "check", "check_target", "data_range", "plan", "programs", "read",
        "read_stack", "read_together", "sniff", "split", "target",
    )  # fmt: skip

    def __init__(self, module: Any) -> None:
        self.FORMAT: Format = module.FORMAT
        own = vars(module)  # of a module that lacks a function, `getattr` takes long to say so
        usual = type(module) is ModuleType and "__getattr__" not in own

        functions: dict[str, Any] = {}
        reads, writes = self.FORMAT.reads, self.FORMAT.writes
        for name in _FUNCTIONS:
            function = own.get(name) if usual else getattr(module, name, None)
            functions[name] = function
            if not callable(function) and (
                function is not None
                or (reads and name in ("sniff", "read"))
                or (writes and name == "plan")
            ):
                raise _lacking(module, name)
        self.sniff: Sniff = functions["sniff"]
        self.read: Read = functions["read"]
        self.plan: MakePlan = functions["plan"]
        self.add: Add | None = functions["add"]
        self.read_stack: ReadStack | None = functions["read_stack"]
        self.read_together: ReadTogether | None = functions["read_together"]
        self.check: Check | None = functions["check"]
        self.target: MakeTarget | None = functions["target"]
        self.check_target: CheckTarget | None = functions["check_target"]
        self.data_range: DataRange | None = functions["data_range"]
        self.split: Split | None = functions["split"]
        self.programs: Programs | None = functions["programs"]


def _lacking(module: Any, name: str) -> Unsupported:
    return Unsupported(
        f"plugin {module.__name__} has no function `{name}`",
        expected=f"what version {API} of the plugin contract asks for",
        remedy="install a version of it made for this raconvert",
    )


def file_fits(bundle: Bundle, title: str) -> list[Fit]:
    """The losses of a format that keeps arrays only: attributes and forms of file and groups.

    >>> [str(fit) for fit in file_fits(Bundle([], attributes={"title": "t"}), "TOY")]
    ['metadata: TOY has no place for attributes of the file: title']

    Raises nothing.
    """
    if not (bundle.attributes or bundle.groups or bundle.formats):
        return []
    groups = bundle.explicit_groups()
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


def stack_fits(array: Array) -> list[Fit]:
    """The losses of a container in the metadata of single items of a stack. Raises nothing."""
    if array.meta.items is not None:
        reason = "metadata of single items of the stack is left out"
        return [equivalent(array.name, "metadata", reason)]
    if array.meta.later is not None and array.meta:
        reason = "metadata that needs all items to be read came too late for the attributes"
        return [equivalent(array.name, "metadata", reason)]
    return []


def facts_of(array: Array, *held: str) -> list[str]:
    """Return the names of the facts in the metadata of an array, as a fit lists what is lost.

    Left out are the fields of `Metadata` and the namespaces in `held`, which the format holds.

    >>> meta = Metadata(units="K", axes=[Axis("time")], attributes={"by": "hand"})
    >>> facts_of(Array(np.zeros(2), name="x", meta=meta), "units")
    ["axis 0 'time' (name)", 'attributes (by)']

    Raises nothing.
    """
    meta = array.meta
    if not meta:
        return []
    facts = [(name, name) for name in ("description", "units", "encoding") if getattr(meta, name)]
    said = [fields_of_axes([axis], *Axis.FIELDS) for axis in array.ra_axes]
    if any(said):
        facts += [("axes", words) for words in facts_of_axes(array, said)]
    if meta.space is not None and meta.space.to_dict():
        facts.append(("space", "space"))
    if meta.attributes:
        names = first_of([*map(str, meta.attributes)], 10)
        facts.append(("attributes", f"attributes ({names})"))
    facts += [(name, f"namespace {name}") for name, own in meta.formats.items() if own]
    if meta.items is not None:
        facts.append(("items", "items"))
    return [words for field, words in facts if field not in held]


def fields_of_axes(axes: Sequence[Axis], *fields: str) -> list[str]:
    """Return those of the fields that any axis says. Raises nothing."""
    return [field for field in fields if any(getattr(axis, field) is not None for axis in axes)]


_MOST_CHANNELS = 4  # a last axis that is longer is never taken for channels


def split(array: Array) -> int:
    """Return the number of leading axes that become separate files with ``--planes``.

    A last axis of 1 to 4 is the channels from four axes on; with three axes the array is a stack
    of grey planes (an image of three axes needs no ``--planes``).
    """
    with_channels = array.ndim > 3 and array.shape[-1] <= _MOST_CHANNELS
    return max(0, array.ndim - (3 if with_channels else 2))


def array_exists(path: str, name: str, why: str = "") -> TargetExists:
    """Return the error for an array that a container has and that may not be replaced.

    `why`: a relative clause for one that no flag lets be replaced. Raises nothing.
    """
    if why:
        return TargetExists(
            f"has an array '{name}' already, {why}",
            path=path,
            remedy="choose another name for the array",
        )
    return TargetExists(
        f"has an array '{name}' already, and is left as it was",
        path=path,
        remedy="use `--overwrite` to replace this array and no other, or `--skip-existing` to keep "
        "it",
    )


def not_an_array(path: str, name: str, what: str) -> TargetExists:
    """Return the error for the name of something in a container that is not one of its arrays.

    Raises nothing.
    """
    return TargetExists(
        f"has {what} of the name '{name}', which is not replaced by an array",
        path=path,
        remedy="choose another name for the array",
    )


def trailing_note(nbytes: int, after: str = "the data") -> str:
    """Return the note about bytes that follow what a format defines.

    One rule for all formats: they are counted and ignored, unless the format forbids them; then
    the file is `Corrupt`. Those of an .ra are kept.
    """
    return f"{nbytes} bytes after {after} were ignored"


def first_of(names: Sequence[str], count: int = 5) -> str:
    """Return names as a message lists them: of many the first ones. Raises nothing.

    >>> first_of(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    return listed(names, count)


def __getattr__(name: str) -> Any:
    if name == "Target":
        from raconvert.files.target import Target

        return Target
    raise AttributeError(name)
