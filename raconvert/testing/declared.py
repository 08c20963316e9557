"""Checks of the declarations of a plugin, and of its sniffer."""

from __future__ import annotations

import inspect
import random

from raconvert.catalogue import ROWS, Row
from raconvert.files.source import Source
from raconvert.foreign import FOREIGN
from raconvert.plugin import API, MAYBE, NO, SURE, Format, Option
from raconvert.testing.cases import SEED
from raconvert.testing.damage import damaged, prefixes
from raconvert.testing.kit import (
    in_new_interpreter,
    require,
    require_none,
    sample_files,
    scratch,
    suffix_of,
    tuple_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


# Field -> a test of its value, and what the test expects, in words.
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (
        lambda v: isinstance(v, str) and v.isidentifier() and v == v.lower(),
        "a lower-case word",
    ),
    "title": (lambda v: isinstance(v, str) and bool(v), "a text"),
    "suffixes": (
        lambda v: tuple_of(str, v) and all(s[:1] in (".", "-") and s == s.lower() for s in v),
        "a tuple of lower-case suffixes with their dot (or hyphen), or () for folders",
    ),
    "magic": (
        lambda v: (
            isinstance(v, tuple)
            and all(type(at) is int and at >= 0 and isinstance(m, bytes) and m for at, m in v)
        ),
        "a tuple of (offset, bytes)",
    ),
    **{
        field: (lambda v: isinstance(v, bool), "True or False")
        for field in ("proof", "reads", "writes", "many", "lazy", "stream")
    },
    "meta": (lambda v: v in ("all", "some", "none"), "all, some or none"),
    "index_orders": (lambda v: v in ("", "C", "F", "CF"), "'', 'C', 'F' or 'CF'"),
    "needs": (
        lambda v: isinstance(v, tuple) and all(tuple_of(str, need, 2) for need in v),
        "a tuple of (import name, requirement)",
    ),
    "read_options": (lambda v: tuple_of(Option, v), "a tuple of Option"),
    "write_options": (lambda v: tuple_of(Option, v), "a tuple of Option"),
    "samples": (
        lambda v: (
            isinstance(v, dict)
            and all(isinstance(n, str) and isinstance(c, bytes) and c for n, c in v.items())
        ),
        "a mapping from file name to bytes",
    ),
    "spec": (lambda v: isinstance(v, str), "a text"),
    "losses": (lambda v: isinstance(v, str), "a text"),
}


def check_format_is_frozen(plugin: ModuleType) -> None:
    """FORMAT is a `Format` of this version of the contract, and cannot be changed.

    Raises `AssertionError` that lists what is wrong.
    """
    form = plugin.FORMAT
    require(isinstance(form, Format), f"FORMAT is a {type(form).__name__}, not a Format")
    require(form.api == API, f"FORMAT.api is {form.api}, expected {API}")
    try:
        form.name = form.name
    except AttributeError:
        return
    raise AssertionError("FORMAT can be changed")


def check_format_fields(plugin: ModuleType) -> None:
    """Every field of FORMAT has the right type.

    Raises `AssertionError` that lists what is wrong.
    """
    wrong = [
        f"{field} = {getattr(plugin.FORMAT, field)!r}, expected {words}"
        for field, (is_right, words) in _FIELDS.items()
        if not is_right(getattr(plugin.FORMAT, field))
    ]
    require_none(wrong, "fields of FORMAT are wrong")


def check_catalogue(plugin: ModuleType) -> None:
    """The catalogue row of a built-in format equals its FORMAT; no other has a built-in's name.

    Raises `AssertionError` that lists what is wrong.
    """
    row = next((row for row in ROWS if row.module == plugin.__name__), None)
    if row is None:
        names = [other.name for other in ROWS]
        require(plugin.FORMAT.name not in names, f"'{plugin.FORMAT.name}' is a built-in format")
        return
    odd = [
        f"{field}: catalogue {getattr(row, field)!r}, FORMAT {getattr(plugin.FORMAT, field)!r}"
        for field in Row._fields
        if field != "module" and getattr(row, field) != getattr(plugin.FORMAT, field)
    ]
    require_none(odd, "fields differ")


def check_import_is_light(plugin: ModuleType) -> None:
    """Importing the plugin imports neither numpy nor the packages that it needs.

    Raises `AssertionError` that lists what is wrong.
    """
    heavy = ["numpy", *(module for module, _ in plugin.FORMAT.needs)]
    code = "import importlib\nimportlib.import_module(sys.argv[1])\n"
    code += "answer = ' '.join(set(sys.argv[2:]) & set(sys.modules))"
    loaded = in_new_interpreter(plugin, code, plugin.__name__, *heavy)
    require(not loaded, f"importing {plugin.__name__} imports {loaded}")


def check_options(plugin: ModuleType) -> None:
    """Options are keyword-only parameters with the names and defaults of their `Option` rows.

    Raises `AssertionError` that lists what is wrong.
    """
    form = plugin.FORMAT
    signatures: list[tuple[str, list[str], tuple[Any, ...]]] = [("sniff", ["source"], ())]
    if form.reads:
        signatures.append(("read", ["source"], form.read_options))
    if form.writes:
        signatures.append(("plan", ["bundle"], form.write_options))
    wrong = []
    for function, positional, options in signatures:
        if not callable(getattr(plugin, function, None)):
            wrong.append(f"function `{function}` is missing")
            continue
        parameters = inspect.signature(getattr(plugin, function)).parameters
        kinds = {kind: [n for n, p in parameters.items() if p.kind == kind] for kind in _KINDS}
        given = kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
        named = {n: parameters[n].default for n in kinds[inspect.Parameter.KEYWORD_ONLY]}
        declared = {option.name: option.default for option in options}
        if given != positional or sum(map(len, kinds.values())) != len(parameters):
            wrong.append(f"{function}{tuple(parameters)}, expected {tuple(positional)}, then only "
                         "keyword-only options")  # fmt: skip
        if named != declared:
            wrong.append(f"{function} has the options {named}, FORMAT declares {declared}")
        wrong += [
            f"option {option.name} of {function} has the default {option.default!r}, not one of "
            f"{option.choices}"
            for option in options
            if not _is_choice(option)
        ]
    require_none(wrong, "options are wrong")


_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _is_choice(option: Any) -> bool:
    """True if the default of an option is one of its choices, or of its type."""
    if isinstance(option.choices, tuple):
        return option.default in option.choices
    return option.choices in (int, float, bool, str) and type(option.default) is option.choices


# Sniffing --------------------------------------------------------------------------------------


def check_samples_are_sure(plugin: ModuleType) -> None:
    """Check that a sample exists, that each has a suffix and a magic of the format, and is sure.

    A format without suffix and magic is read only if it is named, and needs no sample.

    Raises `AssertionError` that lists what is wrong.
    """
    form = plugin.FORMAT
    if not (form.samples or form.suffixes or form.magic):
        return
    require(form.samples, "magic bytes may be declared only together with a sample")
    with sample_files(plugin) as paths:
        for path in paths:
            contents = path.read_bytes()
            fitting = any(contents[at : at + len(text)] == text for at, text in form.magic)
            require(fitting or not form.magic, f"sample {path.name} has none of the magics")
            fitting = path.name.endswith(form.suffixes) or not form.suffixes
            require(fitting, f"sample {path.name} has another suffix")
            verdict = plugin.sniff(Source(str(path)))
            require(verdict == SURE, f"sniff says {verdict} to sample {path.name}")


def check_sniff_rejects_others(plugin: ModuleType) -> None:
    """`sniff` says NO to the samples of all other formats, to an empty file, and to random bytes.

    Raises `AssertionError` that lists what is wrong.
    """
    others = {"empty": b"", "text": b"0.5 1.5\n" * 20, "zeros": bytes(5000)}
    rng = random.Random(SEED)  # noqa: S311 - reproducible on purpose
    others |= {f"random {n}": rng.randbytes(n) for n in (1, 4, 16, 64, 500, 5000)}
    for row in ROWS:
        if row.module != plugin.__name__:
            form = __import__(row.module, fromlist=["FORMAT"]).FORMAT
            others |= {f"{row.name} {name}": data for name, data in form.samples.items()}
    for foreign in (row for row in FOREIGN if row.kind != "archive"):
        for number, (at, text) in enumerate(foreign.magic):
            others[f"{foreign.title} {number}"] = bytes(at) + text + bytes(64)
    claimed = []
    with scratch() as folder:
        for number, (name, contents) in enumerate(others.items()):
            path = folder / f"{number}{suffix_of(plugin)}"
            path.write_bytes(contents)
            verdict = plugin.sniff(Source(str(path)))
            if verdict != NO:
                claimed.append(f"{name}: {verdict}")
    require_none(claimed, "foreign contents are claimed")


def check_sniff_never_raises(plugin: ModuleType) -> None:
    """`sniff` answers for every prefix of a sample.

    Raises `AssertionError` that lists what is wrong.
    """
    failed = []
    for path, contents in damaged(plugin, prefixes(plugin)):
        try:
            verdict = plugin.sniff(Source(str(path)))
        except Exception as error:  # noqa: BLE001 - any error is what is looked for
            failed.append(f"{contents}: {error!r}")
        else:
            if verdict not in (NO, MAYBE, SURE):
                failed.append(f"{contents}: answer {verdict!r}")
    require_none(failed, "cut samples have no answer")
