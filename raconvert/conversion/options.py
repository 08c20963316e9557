"""The options of a conversion: one table, and `Settings`, their values in one conversion."""

from __future__ import annotations

import os

from raconvert.declared import Record
from raconvert.errors import UsageError, did_you_mean
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from raconvert.conversion.progress import Listener, Progress

    T = TypeVar("T")

META_MODES = ("auto", "sidecar", "trailer", "drop", "ignore")
TRUSTS = ("external",)
LOSSES = ("dtype", "precision", "nulls", "names", "elements", "arrays", "all")


class Option(Record):
    """One option of a conversion: a named argument of `convert`, and what it is on a command line.

    `type` is the annotation as text; `flags` the words on the command line (none: only in Python);
    `how` and `kind` what is done with the word that follows (`raconvert.cli.options`).
    """

    name: str
    type: str
    default: Any
    help: str
    flags: str = ""
    how: str = "value"
    metavar: str | None = None
    kind: str = ""
    choices: tuple[str, ...] = ()
    exclusive: str = ""


def _text(name: str, help: str, flags: str, metavar: str = "", **more: Any) -> Option:
    return Option(name, "str | None", None, help, flags, metavar=metavar or None, **more)


def path_option(name: str, help: str, flags: str, metavar: str = "FILE") -> Option:
    """An option that names a file or a folder."""
    return Option(name, "str | os.PathLike[str] | None", None, help, flags, metavar=metavar)


def text_of(path: T | os.PathLike[str]) -> T | str:
    """A path as text; any other value stays as it is."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def listening(tell: Callable[[Progress], object] | None) -> Listener | None:
    """What tells a listener how far a conversion is, by the bytes that it is called with."""
    if tell is None:
        return None
    from raconvert.conversion.progress import Listener

    return Listener(tell)


def _flag(name: str, help: str, flags: str, exclusive: str = "") -> Option:
    return Option(name, "bool", False, help, flags, "flag", exclusive=exclusive)


def _list(name: str, help: str, flags: str, metavar: str, **more: Any) -> Option:
    return Option(name, "Sequence[str]", (), help, flags, "append", metavar, **more)


def _pairs(name: str, help: str, flags: str) -> Option:
    return Option(name, "dict[str, Any] | None", None, help, flags, "append", "K=V", "pair")


# The one list: `convert`, `Settings`, the command line and their documentation come from it.
OPTIONS = (
    path_option("out_dir", "one file each below this folder, the source tree mirrored",
                "--out-dir", "DIR"),
    _text("from_", "format of the sources", "--from --input-format", "FORMAT"),
    _text("to", "format of the destination", "--to --output-format", "FORMAT"),
    _pairs("in_opts", "option of the reading format (repeatable)", "--in-opt"),
    _pairs("out_opts", "option of the writing format (repeatable)", "--out-opt"),
    _list("arrays", "array to take from a container (repeatable, glob)", "-a --array", "NAME"),
    Option("stack", "bool | str | tuple[str, int] | None", None,
           "True: stack the sources on a new first axis; ('concat', AXIS): join them along one "
           "that they have; 'each': one destination for each source"),
    _text("sort", "order of the sources (default: as listed, natural in globs and folders)",
          "--sort", choices=("natural", "given", "name", "mtime")),
    _flag("recursive", "folders with everything below them", "-r --recursive"),
    _list("include", "only files of these names (repeatable)", "--include", "GLOB"),
    _list("exclude", "no files of these names (repeatable)", "--exclude", "GLOB"),
    Option("files_from", "str | os.PathLike[str] | Sequence[str] | None", None,
           "sources from a list, one per line; - is stdin", "--files-from", metavar="LIST"),
    _flag("null_separated", "the list is separated by NUL", "-0 --null"),
    _flag("strict_sequence", "refuse gaps in numbered sources", "--strict-sequence"),
    Option("planes", "bool | int", False,
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
    Option("meta", "str", "auto", "where metadata goes (auto: a sidecar beside .ra)", "--meta",
           choices=META_MODES),
    path_option("labels", "write the folder names of the sources as labels: to this file, or as "
                "arrays of this name in the container with the stack", "--labels"),
    _text("name", "name of the array in a container, as of FILE#NAME", "--name"),
    _flag("skip_bad", "leave sources that cannot be read out of a stack", "--skip-bad"),
    _text("scale", "none | unit | minmax | LO:HI: map values to whole numbers", "--scale",
          "RANGE"),
    _flag("unscale", "physical values: apply slope, intercept and fill value (as NaN)",
          "--unscale"),
    Option("bits", "int", 8, "8 | 16: width of scaled values", "--bits", metavar="N",
           kind="width"),
    Option("jobs", "int | None", None, "processes that read the files of a stack (default 1)",
           "-j --jobs", metavar="N", kind="count"),
    Option("max_memory", "int", DEFAULT_MAX_MEMORY,
           "most bytes of data in memory at once: 500M, 2G (default 1G)", "--max-memory",
           metavar="SIZE", kind="size"),
    _flag("verify", "read what was written and compare", "--verify"),
    _flag("dry_run", "print the plan and its losses, write nothing", "-n --dry-run"),
    _flag("fail_fast", "stop at the first file that fails", "--fail-fast"),
    Option("sync", "bool", True, "wait until the data is on the disk"),
    Option("progress", "Callable[[Progress], object] | None", None,
           "called with a `Progress`: file, done and total bytes, count and number of files, rate"),
)  # fmt: skip


class Settings:
    """How to convert: the options with their values."""

    # options: begin (written by `python -m docs.generate` from `OPTIONS`)
    out_dir: str | None = None
    from_: str | None = None
    to: str | None = None
    in_opts: dict[str, Any] | None = None
    out_opts: dict[str, Any] | None = None
    arrays: Sequence[str] = ()
    stack: bool | str | tuple[str, int] | None = None
    sort: str | None = None
    recursive: bool = False
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    files_from: str | Sequence[str] | None = None
    null_separated: bool = False
    strict_sequence: bool = False
    planes: bool | int = False
    overwrite: bool = False
    skip_existing: bool = False
    update: bool = False
    allow: Sequence[str] = ()
    trust: Sequence[str] = ()
    strict: bool = False
    dtype: str | None = None
    slice: str | None = None
    axes: str | None = None
    index_order: str | None = None
    meta: str = "auto"
    labels: str | None = None
    name: str | None = None
    skip_bad: bool = False
    scale: str | None = None
    unscale: bool = False
    bits: int = 8
    jobs: int | None = None
    max_memory: int = DEFAULT_MAX_MEMORY
    verify: bool = False
    dry_run: bool = False
    fail_fast: bool = False
    sync: bool = True
    progress: Callable[[int, int], object] | None = None
    # options: end

    def __init__(self, **named: Any) -> None:
        if not named.keys() <= Settings.__annotations__.keys():
            odd = next(name for name in named if name not in Settings.__annotations__)
            raise TypeError(f"convert() has no argument '{odd}'")
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


def begin(settings: Settings, file: str, count: int = 0, files: int = 1) -> None:
    """Let a listener know the source at hand, how many are done with, and how many there are."""
    go_on = getattr(settings.progress, "begin", None)
    if go_on is not None:
        go_on(file, count, files)


def _words(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def is_bare(name: str) -> bool:
    """True for a word that is the name of an array, not the path of a file."""
    return not set(name) & {"/", os.sep, "."}


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of processes that is none (`UsageError`)."""
    if jobs is not None and jobs < 1:
        raise UsageError("`--jobs` is not a valid number", expected="1 or more", got=jobs)


def _check_words(flag: str, words: Iterable[str], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            raise UsageError(
                f"`{flag}` does not know '{word}'{did_you_mean(word, list(known))}",
                expected=" | ".join(known),
            )
