"""The options of a conversion: their types, one table, and `Settings`, the values in one of them.

The families (`Opening`, `Reading`, `Writing`, `Converting`, ...) declare the type of each option,
for type checkers and for the checks at run time. `OPTIONS` has the rest: default, help, and the
form on a command line.
"""

from __future__ import annotations

import os

from raconvert.declared import Options, Record
from raconvert.errors import UsageError, did_you_mean
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from raconvert.conversion.progress import Progress

META_MODES = ("auto", "sidecar", "trailer", "drop", "ignore")
TRUSTS = ("external",)
LOSSES = ("dtype", "precision", "nulls", "names", "elements", "arrays", "all")


# Families of options, as ``**options: Unpack[Converting]`` has them -------------------------------


class Opening(Options, total=False):
    """The options of everything that opens files."""

    from_: str | None
    in_opts: dict[str, Any] | None
    meta: str
    index_order: str | None
    trust: Sequence[str]
    max_memory: int


class Reading(Opening, total=False):
    """The options of `open` and `read`."""

    mmap: bool
    unscale: bool


class Inspecting(Opening, total=False):
    """The options of functions that look at some arrays of a file."""

    arrays: Sequence[str] | None


class Filtering(Options, total=False):
    """The options that choose files of a folder."""

    include: Sequence[str]
    exclude: Sequence[str]


class Gathering(Filtering, total=False):
    """The options that choose source files and their order."""

    sort: str | None
    recursive: bool
    files_from: str | os.PathLike[str] | Sequence[str] | None
    null_separated: bool


class Verifying(Inspecting, Gathering, total=False):
    """The options of `verify`: those of the file, and of the sources it is compared with."""


class Storing(Options, total=False):
    """The options of everything that writes arrays."""

    out_opts: dict[str, Any] | None
    overwrite: bool
    skip_existing: bool
    allow: Sequence[str]
    strict: bool
    dtype: str | None
    axes: str | None
    scale: str | None
    bits: int
    max_memory: int
    verify: bool


class Writing(Storing, total=False):
    """The options of `write`."""

    to: str | None
    sync: bool


class Transferring(Opening, Filtering, Storing, total=False):
    """The options that `convert` and `migrate` share."""

    arrays: Sequence[str]
    update: bool
    unscale: bool
    dry_run: bool


class Converting(Transferring, Gathering, Writing, total=False):
    """The options of `convert`."""

    out_dir: str | os.PathLike[str] | None
    stack: bool | str | tuple[str, int] | None
    strict_sequence: bool
    planes: bool | int
    slice: str | None
    labels: str | os.PathLike[str] | None
    name: str | None
    skip_bad: bool
    jobs: int | None
    fail_fast: bool
    progress: Callable[[Progress], object] | None


# Default, help and command line of each ----------------------------------------------------------


class Option(Record):
    """One option of a conversion: a named argument of `convert`, and its form on a command line.

    `flags` are the words on the command line ("": only in Python), `how` and `kind` the treatment
    of the word that follows (`raconvert.cli.options`); `type` is the annotation as text, which
    `table` takes from a family.
    """

    name: str
    default: Any
    help: str
    flags: str = ""
    how: str = "value"
    metavar: str | None = None
    kind: str = ""
    choices: tuple[str, ...] = ()
    exclusive: str = ""
    type: str = ""


def table(family: type, *rows: Option) -> tuple[Option, ...]:
    """Return the rows with the types that a family declares."""
    types = family.__annotations__
    return tuple(row._replace(type=types[row.name]) for row in rows)


def options_of(family: type, **defaults: Any) -> tuple[Option, ...]:
    """Return the options of a family in the order of the one list, some with another default."""
    types = family.__annotations__
    return tuple(
        row._replace(type=types[row.name], default=defaults.get(row.name, row.default))
        for row in (_MMAP, *OPTIONS)
        if row.name in types
    )


def _text(name: str, help: str, flags: str, metavar: str = "", **more: Any) -> Option:
    return Option(name, None, help, flags, metavar=metavar or None, **more)


def _flag(name: str, help: str, flags: str, exclusive: str = "") -> Option:
    return Option(name, False, help, flags, "flag", exclusive=exclusive)


def _list(name: str, help: str, flags: str, metavar: str, **more: Any) -> Option:
    return Option(name, (), help, flags, "append", metavar, **more)


def _pairs(name: str, help: str, flags: str) -> Option:
    return Option(name, None, help, flags, "append", "K=V", "pair")


_MMAP = Option("mmap", False, "regions are views of a map of the file; only in Python")
# The one list: `convert`, the command line and their documentation come from it.
OPTIONS = table(
    Converting,
    _text("out_dir", "one file each below this folder, the source tree mirrored",
          "--out-dir", "DIR"),
    _text("from_", "format of the sources", "--from --input-format", "FORMAT"),
    _text("to", "format of the destination", "--to --output-format", "FORMAT"),
    _pairs("in_opts", "option of the reading format (repeatable)", "--in-opt"),
    _pairs("out_opts", "option of the writing format (repeatable)", "--out-opt"),
    _list("arrays", "array to take from a container (repeatable, glob)", "-a --array", "NAME"),
    Option("stack", None,
           "True: stack the sources on a new first axis; ('concat', AXIS): join them along one "
           "that they have; 'each': one destination for each source"),
    _text("sort", "order of the sources (default: as listed, natural in globs and folders)",
          "--sort", choices=("natural", "given", "name", "mtime")),
    _flag("recursive", "folders with everything below them", "-r --recursive"),
    _list("include", "only files of these names (repeatable)", "--include", "GLOB"),
    _list("exclude", "no files of these names (repeatable)", "--exclude", "GLOB"),
    Option("files_from", None, "sources from a list, one per line; - is stdin", "--files-from",
           metavar="LIST"),
    _flag("null_separated", "the list is separated by NUL", "-0 --null"),
    _flag("strict_sequence", "refuse gaps in numbered sources", "--strict-sequence"),
    Option("planes", False,
           "arrays as one 2-D file per plane: the planes that peek shows, or those along an axis",
           "--planes", "maybe", "AXIS", "axis"),
    _flag("overwrite", "replace destinations that exist; of FILE#NAME the array alone",
          "--overwrite", "existing"),
    _flag("skip_existing", "leave destinations that exist", "--skip-existing", "existing"),
    _flag("update", "replace destinations that are older than their source", "--update",
          "existing"),
    _list("allow", f"losses to allow: {', '.join(LOSSES)}", "--allow", "LOSS,...", kind="words"),
    _list("trust", "external: read files that a file names outside its own folder", "--trust",
          "WHAT", kind="trust"),
    _flag("strict", "refuse changes of form too, where every value is kept", "--strict"),
    _text("dtype", "element type to convert to, every value checked", "--dtype", "TYPE"),
    _text("slice", "part of the array, as Python writes it: '1:, ..., ::2, 0'", "--slice", "PART"),
    _text("axes", "c | fortran | keep-memory | 2,0,1: order of the axes", "--axes", "SPEC"),
    _text("index_order", "how axes of a bare .ra are indexed", "--index-order",
          choices=("C", "F")),
    Option("meta", "auto", "where metadata goes (auto: a sidecar beside .ra)", "--meta",
           choices=META_MODES),
    _text("labels", "write the folder names of the sources as labels: to this file, or as "
          "arrays of this name in the container with the stack", "--labels", "FILE"),
    _text("name", "name of the array in a container, as of FILE#NAME", "--name"),
    _flag("skip_bad", "leave sources that cannot be read out of a stack", "--skip-bad"),
    _text("scale", "none | unit | minmax | LO:HI: map values to whole numbers", "--scale",
          "RANGE"),
    _flag("unscale", "physical values: apply slope, intercept and fill value (as NaN)",
          "--unscale"),
    Option("bits", 8, "8 | 16: width of scaled values", "--bits", metavar="N", kind="width"),
    Option("jobs", None, "processes that read the files of a stack (default 1)",
           "-j --jobs", metavar="N", kind="count"),
    Option("max_memory", DEFAULT_MAX_MEMORY,
           "most bytes of data in memory at once: 500M, 2G (default 1G)", "--max-memory",
           metavar="SIZE", kind="size"),
    _flag("verify", "read what was written and compare", "--verify"),
    _flag("dry_run", "print the plan and its losses, write nothing", "-n --dry-run"),
    _flag("fail_fast", "stop at the first file that fails", "--fail-fast"),
    Option("sync", True, "wait until the data is on the disk"),
    Option("progress", None,
           "called with a `Progress`: file, done and total bytes, count and number of files, rate"),
)  # fmt: skip


class Settings:
    """Settings of a conversion: the options with their values, paths as text."""

    out_dir: str | None
    from_: str | None
    to: str | None
    in_opts: dict[str, Any] | None
    out_opts: dict[str, Any] | None
    arrays: Sequence[str]
    stack: bool | str | tuple[str, int] | None
    sort: str | None
    recursive: bool
    include: Sequence[str]
    exclude: Sequence[str]
    files_from: str | Sequence[str] | None
    null_separated: bool
    strict_sequence: bool
    planes: bool | int
    overwrite: bool
    skip_existing: bool
    update: bool
    allow: Sequence[str]
    trust: Sequence[str]
    strict: bool
    dtype: str | None
    slice: str | None
    axes: str | None
    index_order: str | None
    meta: str
    labels: str | None
    name: str | None
    skip_bad: bool
    scale: str | None
    unscale: bool
    bits: int
    jobs: int | None
    max_memory: int
    verify: bool
    dry_run: bool
    fail_fast: bool
    sync: bool
    progress: Callable[[int, int], object] | None

    def __init__(self, **named: Any) -> None:
        if not named.keys() <= Settings.__annotations__.keys():
            unknown = next(name for name in named if name not in Settings.__annotations__)
            raise TypeError(f"convert() has no argument '{unknown}'")
        self.__dict__.update(named)
        self.arrays = _words(self.arrays)
        self.allow = _words(self.allow)
        self.trust = _words(self.trust)
        _check_words("--meta", [self.meta], META_MODES)
        _check_words("--allow", self.allow, LOSSES)
        _check_words("--trust", self.trust, TRUSTS)
        check_jobs(self.jobs)
        if self.index_order is not None:
            _check_words("--index-order", [self.index_order], ("C", "F"))

    @property
    def cuts(self) -> bool:
        """True if planes were asked for; 0 is an axis."""
        return self.planes is not False

    def replace(self, **changes: Any) -> Settings:
        """Return the same settings with some of them changed."""
        return Settings(**{**self.__dict__, **changes})

    def allows(self, loss: str) -> bool:
        """True if ``--allow`` names this loss."""
        return loss in self.allow or "all" in self.allow


for _option in OPTIONS:  # defaults, as attributes of the class
    setattr(Settings, _option.name, _option.default)


def normalized(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a caller as `Settings` takes them: paths as text, `progress` by bytes."""
    options = {name: _path_as_text(value) for name, value in given.items()}
    if options.get("progress") is not None:
        from raconvert.conversion.progress import Listener

        options["progress"] = Listener(options["progress"])
    return options


def _path_as_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def begin(settings: Settings, file: str, count: int = 0, files: int = 1) -> None:
    """Give the listener, if any, the current source, the number of finished ones, and of all."""
    begin_source = getattr(settings.progress, "begin", None)
    if begin_source is not None:
        begin_source(file, count, files)


def _words(value: Any) -> list[str]:
    """Return an option of several words as a list; one word alone may be a text."""
    return [value] if isinstance(value, str) else list(value or ())


def is_bare(name: str) -> bool:
    """True for a word that is the name of an array, not the path of a file."""
    return not set(name) & {"/", os.sep, "."}


def check_jobs(jobs: int | None) -> None:
    """Refuse (`UsageError`) a number of processes below 1."""
    if jobs is not None and jobs < 1:
        raise UsageError("`--jobs` is not a valid number", expected="1 or more", got=jobs)


def _check_words(flag: str, words: Iterable[str], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            raise UsageError(
                f"`{flag}` does not know '{word}'{did_you_mean(word, list(known))}",
                expected=" | ".join(known),
            )
