"""The contract of a plugin, and the types it is made of.

A plugin is a module with one frozen constant and a few plain functions; no base class, no global
state, no registration by import:

``FORMAT = Format(...)``
    What the format is and can; importing the module must import neither numpy nor a backend.
``sniff(source) -> NO | MAYBE | SURE``
    Pure look at a `Source` (`head`, `name`, `size`, `read_at`); never raises on foreign bytes.
``read(source, *, named options) -> Bundle``
    Lazy: checks headers, maps or promises data. `closers` of the bundle close the opened files.
``plan(bundle, *, named options) -> Plan``
    What the file will be, worked out once, from types, shapes, names and metadata, before any data
    is read: `fits` (changes and losses; empty if the file is exact), `names` (those under which the
    arrays are read again, if a format cannot keep every name or every order), and `write(target)`,
    which writes through `target.open()` or below `target.temp`; the core renames, or removes, that.
    Losses that only show while data is read go to `Target.lost`, if `Target.allows` them, and to
    `Target.notes`.

Optional functions, whose shapes, units and errors are in the Protocols below: ``add`` (further
arrays in a container that exists), ``read_stack`` (many small files as one array),
``read_together`` (the files of a folder as one source), ``check`` (further checks of `verify`),
``target``, ``check_target`` (for a format that is not one file), ``data_range`` (for sidecars),
``split`` (formats of low rank), ``programs`` (how other libraries read an array).

A plugin that reads files which its file names asks `Source.named` for each, and `Source.beside` for
one of its own name; one that writes a second file takes it from `Target.beside`. `facts_of` lists
the facts in the metadata of an array, for a fit that names the losses; `file_fits` returns the
losses in file and groups for a format that keeps arrays only; ``Bundle.formats``, which is for a
way back, does not count as lost. A container with ``meta="all"`` keeps ``Bundle.aliases``; for the
others the core names that loss. The property of a `Fit` is one of `PROPERTIES`.

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
        """Return `NO`, `MAYBE` or `SURE`, by `head`, `name`, `size` and `read_at` of a source.

        Never raises on foreign bytes: a file that cannot be understood is `NO`.
        """

        def __call__(self, source: Source, /) -> int: ...

    class Read(Protocol):
        """Return the arrays of a file, lazily: with element type, dims, index order and metadata.

        Raises `Corrupt` for a damaged file, `Unsupported` for a file that the plugin does not read,
        `TooLarge` for one that needs more than `source.max_memory`, `Unsafe` if the source names a
        file outside its folder, `MissingDependency` without its package. An array that alone cannot
        be read is `Array.unreadable`. Reading its data raises the same errors.
        """

        def __call__(self, source: Source, /, **options: Any) -> Bundle: ...

    class MakePlan(Protocol):
        """Plan the file that will hold a bundle, before any data is read.

        An array that the format cannot hold raises nothing: it is a `Fit` of the plan, made by
        `refused`. `Plan.write` raises `WouldLose` for losses that only the data shows, `TooLarge`,
        and what reading the arrays raises; errors of the system become `WriteFailed`.
        """

        def __call__(self, bundle: Bundle, /, **options: Any) -> Plan: ...

    class Add(Protocol):
        """Plan the container that results when the arrays of a bundle are added to it.

        `source` is the container, `held` the bundle that `read` returns of it (no arrays if it has
        none). `Plan.write` writes all of the new container, in which everything else is as it was,
        byte for byte: also parts that `read` leaves out. With `overwrite`, arrays of `held` with a
        name in `Plan.names` are replaced; without it, and for anything else of that name, raises
        `TargetExists` (`array_exists`, `not_an_array`). Raises `Unsupported` for a container that
        cannot be kept as it is, and what reading it raises; `Fit`s are made as by `plan`.
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
        """Return many files of one shape and type as one lazy array, for formats of small files.

        The files are the items along a new slowest axis, the last of `dims`. The array source may
        have `notes` (lines) and, complete when its `stream` has ended, `common` (metadata of all
        files, as of `Metadata.to_dict`) and `items` (a function that yields for each file a mapping
        of the metadata that differs, or None). Raises `UsageError` for files that are not alike,
        and what `read` raises, with the path of the file.
        """

        def __call__(self, paths: list[str], /, *, max_memory: int, **options: Any) -> Array: ...

    class ReadTogether(Protocol):
        """Return the arrays of several files that belong together, in an order from their content.

        `folder` is the path of the folder that holds all of them, or None for a list of files. A
        useless file of a folder is left out with a note. Raises what `read` raises, with
        the path of the file.
        """

        def __call__(
            self, sources: list[Source], /, *, folder: str | None, **options: Any
        ) -> Bundle: ...

    class Check(Protocol):
        """Make the checks of `verify` that decoding the arrays does not make; raises `Corrupt`."""

        def __call__(self, source: Source, /) -> None: ...

    class MakeTarget(Protocol):
        """Return the target of a format that is not one file, with the methods of `Target`.

        Named arguments are `max_memory`, `progress` (called with numbers of bytes) and `overwrite`.
        Raises nothing.
        """

        def __call__(self, path: str, /, **named: Any) -> Target: ...

    class CheckTarget(Protocol):
        """Raise `TargetExists` or `UsageError` if a destination may not be written."""

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
        """Return programs by which other libraries read an array of a file, by their language.

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
NO, MAYBE, SURE = 0, 1, 2  # answers of a sniffer
EQUIVALENT, REFUSED = "equivalent", "refused"  # outcomes of fits
MODEL = (  # properties of an array besides its elements, in `Metadata`
    "names", "labels", "spacing", "space", "scale", "units", "description", "attributes",
)  # fmt: skip
PROPERTIES = (  # subjects of fits
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
    bare: a file may lack the magic; if no format is sure, `sniff` is asked all the same
    reads: has `sniff` and `read`
    writes: has `plan`
    many: holds many named arrays; without it a bundle always has exactly one
    alone: one array has no name in the file unless the user gives it one (`Bundle.named`)
    lazy: data is read when it is asked for
    stream: is written front to back, so that `-o -` works; sources are always files
    meta: how much common metadata it can hold: "all", "some" or "none"
    holds: the words of `MODEL` that it can store, at least for some arrays
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
    refuses: kinds of elements, "SUmM", that it refuses for some values only
    samples: {file name: bytes}: small whole files that `sniff` must be sure of
    spec: where the format is defined
    losses: what it cannot store, in a line or two for `raconvert formats NAME`

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
    without the array's name; `flag` is the flag of the command line that allows a refused one (None
    if there is none). Byte order is not part of the value: a change of it makes no fit.
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
    """Return the fit of an array whose values are kept in another form. Raises nothing.

    >>> str(equivalent("x", "type", "bool is stored as uint8"))
    "array 'x': type: bool is stored as uint8"
    """
    return Fit(EQUIVALENT, array, property, reason, None)


def refused(array: str, property: str, reason: str, flag: str | None = None) -> Fit:
    """Return the fit of an array that would lose values, elements or all. Raises nothing.

    >>> print(refused("x", "type", "TOY has no complex64", "--dtype float64"))
    array 'x': type: TOY has no complex64 (allow with dtype="float64")
    """
    return Fit(REFUSED, array, property, reason, flag)


def refused_type(array: Array, title: str, dtype: str) -> Fit:
    """Return the fit of an array whose type format `title` lacks; numbers may become `dtype`.

    Raises nothing.

    >>> print(refused_type(Array(element("float", 2), (3,), name="x"), "TOY", "float64"))
    array 'x': type: TOY has no float16 (allow with dtype="float64")
    """
    flag = None if array.element.kind == "user" else f"--dtype {dtype}"
    return refused(array.name, "type", f"{title} has no {type_name(little(array.element))}", flag)


class Plan:
    """Plan of a file that will hold a bundle, made once, before any data is read.

    `fits` lists changes and losses; `names`, parallel to the arrays, are those under which they are
    read again, with `in_opts`; `write` fills a `Target`. `header` returns the bytes before the
    elements, whatever their name is (`write_raw`); `whole` returns a whole file from its elements.
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

    Raises `Unsupported` if `module` lacks a function that its `FORMAT` promises.
    """

    __slots__ = (
        "FORMAT", "add", "check", "check_target", "data_range", "plan", "programs", "read",
        "read_stack", "read_together", "sniff", "split", "target",
    )  # fmt: skip

    def __init__(self, module: Any) -> None:
        self.FORMAT: Format = module.FORMAT
        own = vars(module)  # `getattr` takes long for a function that a module lacks
        is_usual = type(module) is ModuleType and "__getattr__" not in own
        functions: dict[str, Any] = {}
        reads, writes = self.FORMAT.reads, self.FORMAT.writes
        for name in _FUNCTIONS:
            function = own.get(name) if is_usual else getattr(module, name, None)
            functions[name] = function
            is_promised = (reads and name in ("sniff", "read")) or (writes and name == "plan")
            if not callable(function) and (is_promised or function is not None):
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
    """Return the error for a plugin without a function that it promises."""
    return Unsupported(
        f"plugin {module.__name__} has no function `{name}`",
        expected=f"what version {API} of the plugin contract asks for",
        remedy="install a version of it made for this raconvert",
    )


def file_fits(bundle: Bundle, title: str) -> list[Fit]:
    """Return the losses of a format that keeps arrays only: attributes of file and groups, forms.

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
    """Return the losses of a container in the metadata of single items of a stack.

    Raises nothing.
    """
    if array.meta.items is not None:
        reason = "metadata of single items of the stack is left out"
        return [equivalent(array.name, "metadata", reason)]
    if array.meta.later is not None and array.meta:
        reason = "metadata that needs all items to be read came too late for the attributes"
        return [equivalent(array.name, "metadata", reason)]
    return []


def facts_of(array: Array, *held: str) -> list[str]:
    """Return the names of the facts in the metadata of an array, as a fit lists losses.

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
    fields = [fields_of_axes([axis], *Axis.FIELDS) for axis in array.ra_axes]
    if any(fields):
        facts += [("axes", words) for words in facts_of_axes(array, fields)]
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
    """Return those of the fields that any of the axes has. Raises nothing."""
    return [field for field in fields if any(getattr(axis, field) is not None for axis in axes)]


_MOST_CHANNELS = 4  # a longer last axis is never taken for channels


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
    """Return names as a message lists them: at most the first `count`. Raises nothing.

    >>> first_of(["a", "b", "c"], 2)
    'a, b, and 1 more'
    """
    return listed(names, count)


def __getattr__(name: str) -> Any:
    if name == "Target":
        from raconvert.files.target import Target

        return Target
    raise AttributeError(name)
