"""The options of every verb, as tables.

One row is one option: `how` is what it does with its value (see `HOW` in `raconvert.cli.parser`),
`kind` turns the value's text into what the core takes, `exclusive` names the group of options of
which only one may be given, `dest` is the name of the parameter of
`raconvert.conversion.pipeline.convert` or of the verb's function.
"""

from __future__ import annotations

from raconvert.conversion.options import OPTIONS, TRUSTS, Option
from raconvert.declared import Record
from raconvert.errors import UsageError, did_you_mean
from raconvert.migration.options import MIGRATION
from raconvert.references import KINDS as VIEWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Verb(Record):
    """One command: its usage, its operands as (dest, nargs, help), its options, an epilog."""

    usage: str
    operand: tuple[str, str | int | None, str]
    options: tuple[Opt, ...]
    more: str = ""


class _Opt(Record):
    """The fields of an option."""

    flags: tuple[str, ...]
    dest: str
    how: str
    help: str
    metavar: str | None
    kind: Callable[[str], object] | None
    choices: tuple[str, ...]
    default: object
    exclusive: str
    const: object


class Opt(_Opt):
    """One option of the command line."""

    __slots__ = ()

    def __new__(
        cls,
        flags: str,
        help: str,
        *,
        dest: str | None = None,
        how: str = "value",
        metavar: str | None = None,
        kind: Callable[[str], object] | None = None,
        choices: tuple[str, ...] = (),
        default: object = None,
        exclusive: str = "",
        const: object = None,
    ) -> Opt:
        """Return the option; without `dest`, that is made from its first long flag."""
        names = tuple(flags.split())
        name = next((n for n in names if n.startswith("--")), names[0])
        if dest is None:
            dest = name.lstrip("-").replace("-", "_")
        if default is None:
            default = {"flag": False, "count": 0}.get(how)
        return super().__new__(
            cls, names, dest, how, help, metavar, kind, choices, default, exclusive, const
        )


# Values ----------------------------------------------------------------------------------------

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(text: str) -> int:
    """Return a number of bytes: ``4096``, ``500M``, ``1.5G``, ``64KiB`` (powers of 1024)."""
    number = text.strip().lower()
    for ending in ("ib", "b"):
        if number.endswith(ending):
            number = number[: -len(ending)]
            break
    unit = number[-1:] if number[-1:].isalpha() else ""
    try:
        value = float(number[: len(number) - len(unit)])
        nbytes = int(value * 1024 ** _UNITS[unit])
    except (ValueError, KeyError, OverflowError) as error:
        raise UsageError(
            f"'{text}' is not a valid size", expected="such as 1G, 500M, 64KiB or plain bytes"
        ) from error
    if nbytes <= 0:
        raise UsageError(f"'{text}' is not a valid size", expected="more than 0 bytes")
    return nbytes


def pair(text: str) -> tuple[str, str]:
    """Return the two sides of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"'{text}' sets no option", expected="KEY=VALUE")
    return key, value


def words(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"'{text}' is not a number") from error


def whole(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"'{text}' is not a whole number") from error


def count(text: str) -> int:
    """Return a number of things, at least 1."""
    value = whole(text)
    if value < 1:
        raise UsageError(f"'{text}' is not a valid number", expected="1 or more")
    return value


def axis_or_none(text: str) -> int | bool:
    """Return the number of an axis; True for an option without a value."""
    return whole(text) if text else True


def width(text: str) -> int:
    """Return the number of bits of scaled values: 8 or 16."""
    return int(one_of("--bits", ("8", "16"))(text))


def concat(text: str) -> tuple[str, int]:
    """The value that `convert` takes for ``--concat AXIS``."""
    return "concat", whole(text)


def one_of(flag: str, choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a check that a value is one of the words."""

    def check(text: str) -> str:
        """Return the word. Raises `UsageError` for another one, with a suggestion."""
        if text in choices:
            return text
        raise UsageError(
            f"{flag} does not know '{text}'{did_you_mean(text, list(choices))}",
            expected=" | ".join(choices),
        )

    return check


# Options that several verbs share ---------------------------------------------------------------

_WHEN = ("auto", "always", "never")
_DEBUG = (Opt("--debug", "show where a bug of raconvert is", how="flag"),)
COMMON = (
    Opt("--json", "print the result as JSON, for programs", how="flag"),
    Opt("-q --quiet", "no notes, only results and errors", how="flag"),
    Opt("-v --verbose", "say more, such as every path written or kept", how="count"),
    Opt("--color", "color on a terminal (NO_COLOR is honoured)", choices=_WHEN, default="auto"),
    *_DEBUG,
)


def _opt(option: Option) -> Opt:
    """The option of the command line for an option of a conversion."""
    return Opt(
        option.flags,
        option.help,
        dest=option.name,
        how=option.how,
        metavar=option.metavar,
        kind=_KINDS[option.kind] if option.kind else None,
        choices=option.choices,
        default=None if option.how == "append" else option.default,
        exclusive=option.exclusive,
    )


_KINDS = {
    "count": count, "axis": axis_or_none, "number": number, "pair": pair, "size": size,
    "trust": one_of("--trust", TRUSTS), "width": width, "words": words,
}  # fmt: skip
_STACK = (  # three ways to say `stack`
    Opt("--stack", "stack the sources on a new first axis", how="const", const=True,
        exclusive="many"),
    Opt("--concat", "join the sources along an axis they have", dest="stack", metavar="AXIS",
        kind=concat, exclusive="many"),
    Opt("--each", "one destination for each source", dest="stack", how="const", const="each",
        exclusive="many"),
)  # fmt: skip
_OPTIONS: dict[str, tuple[Opt, ...]] = {
    option.name: (_opt(option),) for option in OPTIONS if option.flags
}
_OPTIONS["stack"] = _STACK


def _named(*names: str) -> tuple[Opt, ...]:
    """The options of these names of a conversion."""
    return tuple(opt for name in names for opt in _OPTIONS[name])


READ_META = Opt(
    "--meta", "ignore: do not look at sidecars", choices=("auto", "ignore"), default="auto"
)
READING = (
    *_named("from_", "in_opts", "arrays", "index_order"),
    READ_META,
    *_named("trust", "max_memory"),
)
GATHERING = _named("sort", "recursive", "include", "exclude", "files_from", "null_separated")

BELOW = _named("recursive", "include", "exclude")

# convert ----------------------------------------------------------------------------------------

PROGRESS = Opt(
    "--progress",
    "a line on the terminal that says how far it is; always: in a log too, every few seconds",
    choices=_WHEN,
    default="auto",
)
CONVERT = (
    Opt("-o --output", "destination: file, DIR/, '{stem}.npy', - for stdout; FILE#NAME adds an "
        "array to a container that exists, and leaves the others as they are", metavar="DST"),
    *_named(*(option.name for option in OPTIONS if option.name in _OPTIONS)),
    Opt("--report", "write what became of each file, and what was lost, as JSON lines",
        metavar="FILE"),
    PROGRESS,
)  # fmt: skip

GRAPHICS = ("auto", "kitty", "iterm2", "sixel", "blocks", "plain", "none")  # of `peek`
_SOURCES = ("src", "*", "files, FILE#NAME, quoted globs, or folders")
_FILES = ("files", "+", "files, folders, or FILE#NAME for one array of a container")

VERBS = {
    "convert": Verb(
        "[convert] SRC... -o DST [options]",
        _SOURCES,
        (*CONVERT, *COMMON),
        "raconvert formats NAME lists what --in-opt and --out-opt take for a format, such as "
        "--out-opt level=9 for png",
    ),
    "info": Verb(
        "info FILE... [options]",
        _FILES,
        (
            Opt("-s --short", "one line per array", how="flag"),
            Opt("--html", "a page about the file or the folder, written to -o", how="flag"),
            Opt("-o --output", "where the page of --html goes, - for stdout", metavar="PAGE"),
            Opt("--overwrite", "replace a page that exists", how="flag"),
            Opt("--full", "with --html: read all elements, however many", how="flag"),
            *BELOW,
            *READING,
            *COMMON,
        ),
        "a folder of more than 10 files is summed up, unless -s, -v or --json is given; "
        "-v shows all metadata that single formats keep, one field a line; --json whole values too",
    ),
    "peek": Verb(
        "peek FILE... [options]",
        _FILES,
        (
            Opt("--full", "read all elements, for exact numbers", how="flag"),
            Opt("--graphics", "how pictures are shown", choices=GRAPHICS, default="auto"),
            *BELOW,
            *READING,
            *COMMON,
        ),
        "a folder is summed up with all folders in it: kinds, a sample, what differs; -v shows "
        "every file; "
        "of a container the largest array is shown, unless FILE#NAME or --array names another; "
        "numbers are of the part that is shown, and say so, unless --full is given; --json has "
        "the tree, the array and its numbers",
    ),
    "view": Verb(
        "view FILE|FOLDER [options]",
        ("files", 1, "a file, FILE#NAME, or a folder"),
        (
            Opt("--port", "port on this machine; else a free one", metavar="N", kind=count,
                default=0),
            Opt("--no-browser", "print the address, open nothing", how="flag"),
            *READING,
            *COMMON,
        ),
        "Ctrl-C ends it; other users and other sites see nothing: the server is on 127.0.0.1, and "
        "its address has a secret",
    ),
    "formats": Verb(
        "formats [NAME] [--why FILE] [options]",
        ("name", "?", "show everything about this format"),
        (Opt("--why", "what every format says about a file", metavar="FILE"), *COMMON),
    ),
    "diff": Verb(
        "diff A B [options]",
        ("files", 2, "the two files, or FILE#NAME, or two folders"),
        (
            Opt("--atol", "absolute difference to accept", metavar="X", kind=number, default=0.0),
            Opt(
                "--rtol",
                "difference to accept relative to the larger value",
                metavar="X",
                kind=number,
                default=0.0,
            ),
            Opt("--bitwise", "tell -0.0 from 0.0, and NaN payloads", how="flag"),
            Opt("--ignore-meta", "compare type, shape and elements only", how="flag"),
            Opt("--ignore-singletons", "take (1, 3, 4) for (3, 4)", how="flag"),
            Opt("--html", "also a page with pictures of what differs, written to -o", how="flag"),
            Opt("-o --output", "where the page of --html goes, - for stdout", metavar="PAGE"),
            Opt("--overwrite", "replace a page that exists", how="flag"),
            *BELOW,
            *READING,
            *COMMON,
        ),
        "exit codes: 0 the same, 1 different, 2 cannot compare",
    ),
    "verify": Verb(
        "verify FILE... [--against SRC...] [options]",
        _FILES,
        (
            Opt("--against", "what the file was made from; a tree for a tree", how="rest",
                metavar="SRC"),
            Opt("--combined", "write a line for each file of a tree: = same, * different, - only "
                "in FILE, + only in SRC, ! not compared", metavar="LIST"),
            Opt("--certificate", "check a tree by the digests in this certificate of migrate",
                metavar="JSON"),
            *READING,
            *GATHERING,
            *COMMON,
        ),
    ),
    "digest": Verb(
        "digest FILE... [--as NAME] [options]",
        ("files", "+", "files, or FILE#NAME; with --as stacked as convert would"),
        (
            Opt("--as", "print this name, so that sha256sum -c checks it", dest="as_",
                metavar="NAME"),
            Opt("-s --short", "one line for each FILE or folder: the SHA-256 of all lines below it",
                how="flag"),
            *BELOW,
            *READING,
            *COMMON,
        ),
        "for a canonical .ra file the digest is that of sha256sum",
    ),
    "refs": Verb(
        "refs SRC... -o DST [options]",
        _SOURCES,
        (
            Opt("-o --output", "the view to write", metavar="DST"),
            Opt("--as", "kind of view; else by the suffix of DST", dest="kind", choices=(*VIEWS,)),
            Opt("--digest", "keep the SHA-256 of every file in the proof; reads them", how="flag"),
            Opt("--allow", "arrays: leave out what no view can show", metavar="arrays", kind=words),
            Opt("--overwrite", "replace DST", how="flag"),
            *BELOW,
            *READING,
            *COMMON,
        ),
        "no element is read or copied; raconvert verify DST finds files that were edited, cut, "
        "moved or deleted since",
    ),
    "migrate": Verb(
        "migrate SRC_TREE DST_TREE --to FORMAT [options]",
        ("trees", "*", "the tree to convert, and the tree to write"),
        (
            Opt("--to --output-format", "format of the destination", dest="to", metavar="FORMAT"),
            *(_opt(option) for option in MIGRATION),
            Opt("--status", "tell how far the migration into this tree is", metavar="DST_TREE"),
            PROGRESS,
            *COMMON,
        ),
        "raconvert migrate lab lab-ra --to ra: interrupted in any way, the same command goes on "
        "where it was; raconvert migrate --status lab-ra tells how far it is",
    ),
    "completion": Verb(
        "completion SHELL",
        ("shell", "*", "bash, zsh, fish or tcsh"),
        (
            Opt("--words", "print what may stand at the end of the line that is given; for the "
                "scripts", how="flag"),
            *_DEBUG,
        ),
        "for bash and zsh: eval \"$(raconvert completion bash)\"; for fish: raconvert completion "
        "fish | source",
    ),
    "help": Verb("help [VERB]", ("name", "?", "the verb whose options are shown"), _DEBUG),
    "version": Verb("version [options]", ("nothing", 0, ""), COMMON),
}  # fmt: skip

# The same options as keywords of Python ----------------------------------------------------------

_WRITTEN = r"(--?[a-z][a-z-]*)(?:[ =](?:'([^']*)'|(.*?)))?(?= --?[a-z]|$)"
_ARGUMENTS = {"output": "dst"}  # `dest` of an option -> argument in Python, if that is another


def _all_options() -> dict[str, Opt]:
    """The options by flag; of two verbs with one flag, the first counts."""
    options: dict[str, Opt] = {}
    for verb in ("convert", "migrate", "refs", *VERBS):
        for option in VERBS[verb].options:
            for flag in option.flags:
                options.setdefault(flag, option)
    return options


def keywords(text: str) -> str:
    """Translate options of the command line to Python arguments; unknown ones are unchanged.

    >>> keywords("--allow names --overwrite"), keywords("--out-opt version=7.3"), keywords("--axes")
    ('allow=["names"], overwrite=True', 'out_opts={"version": "7.3"}', 'axes')
    """
    import re

    known = _all_options()
    values: dict[str, tuple[Opt, list[str]]] = {}
    for flag, quoted_value, value in re.findall(_WRITTEN, text):
        if flag not in known:
            return text
        option = known[flag]
        name = _ARGUMENTS.get(option.dest, option.dest)
        given = quoted_value or value
        values.setdefault(name, (option, []))[1].extend([given] if given else [])
    return ", ".join(_keyword(name, *pair) for name, pair in values.items())


def _keyword(name: str, option: Opt, values: list[str]) -> str:
    """One argument with its value as Python has it; the name alone without a value."""
    if option.how == "const":
        return f"{name}={_literal(option.const)}"
    if option.how == "flag" or (option.how == "maybe" and not values):
        return f"{name}=True"
    if not values:
        return name
    if option.kind is pair:
        sides = [value.partition("=") for value in values]
        return f"{name}={{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, _, v in sides)}}}"
    if option.kind is concat:
        return f'{name}=("concat", {values[0]})'
    if option.how in ("append", "rest"):
        items = ",".join(values).split(",") if option.kind else values
        return f"{name}=[{', '.join(map(_literal, items))}]"
    if option.kind in (count, axis_or_none, number, width):
        return f"{name}={values[0]}"
    if option.kind is size and values[0][:1].isdigit():
        return f"{name}={size(values[0])}"
    return f"{name}={_literal(values[0])}"


def _literal(value: object) -> str:
    """A value as Python has it; an ellipsis for an empty text, whose value is left open."""
    if not isinstance(value, str):
        return repr(value)
    from json import dumps

    return dumps(value, ensure_ascii=False) if value else "..."
