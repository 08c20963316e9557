"""Declarations with types: the fields of `Record`, and the arguments of public functions.

`Record` is `typing.NamedTuple` without the price of importing `typing` at start-up: a subclass
declares its fields with their types, and gets methods and defaults like a named tuple's; type
checkers see `typing.NamedTuple` itself. Nothing is compiled for a class, which is what makes
`collections.namedtuple` slow.

`checked` compares arguments with what the signature declares, by one rule for all: an argument of a
wrong type is a `UsageError` that names it and what was expected; an argument that a function does
not have is a `TypeError`, as Python raises it.

`accepts` does so for a function of a family of options (``**options: Unpack[Converting]``), and
gives it the signature and the documentation of each of them.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType

from raconvert.errors import UsageError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, ParamSpec, TypeVar
    from typing import NamedTuple as Record
    from typing import TypedDict as Options

    # A source: a path or URL, content, or a file that is open for bytes.
    Readable = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]

    P = ParamSpec("P")
    T = TypeVar("T")

__all__ = ["PATH", "Options", "Record", "accepts", "check", "checked", "chosen"]

if not TYPE_CHECKING:

    class Options:
        """The base of families of options: `typing.TypedDict` for type checkers."""

        def __init_subclass__(cls, *, total=True):
            """Declare the options of the bases as well; `total` is for type checkers."""
            declared = {}
            for base in reversed(cls.__mro__[:-1]):
                declared.update(base.__annotations__)
            cls.__annotations__ = declared

    class _Maker(type):
        """Metaclass that makes a named tuple from the annotated fields of a class body."""

        def __new__(cls, name, bases, body):
            """Return the class; a class without fields of its own inherits those of its base."""
            fields = tuple(body.get("__annotations__", ()))
            if fields:
                body["_fields"] = body["__match_args__"] = fields
                body["_field_defaults"] = {f: body.pop(f) for f in fields if f in body}
                last, count = tuple(body["_field_defaults"].values()), len(fields)
                body["_rests"] = {count - n: last[len(last) - n :] for n in range(len(last) + 1)}
                types = body["__annotations__"]  # what `help` shows of a field
                getters = [
                    property(operator.itemgetter(i), doc=types[f]) for i, f in enumerate(fields)
                ]
                body.update(zip(fields, getters, strict=True))
            body.setdefault("__slots__", ())
            return super().__new__(cls, name, bases, body)

    class Record(tuple, metaclass=_Maker):
        """The base of classes whose fields are declared with their types."""

        _fields = ()
        _field_defaults = {}  # noqa: RUF012 - as in a named tuple
        _rests = {0: ()}  # noqa: RUF012 - by number of values the defaults of the other fields

        def __new__(cls, *values, **named):
            """Return a record; each field is given by place or by name, or has a default."""
            rest = cls._rests.get(len(values))
            if named or rest is None:
                return tuple.__new__(cls, cls._filled(values, named))
            return tuple.__new__(cls, values + rest)

        @classmethod
        def _make(cls, values):
            """Return the record of all its values, in order."""
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
            return made

        @classmethod
        def _filled(cls, values, named):
            """Return all values in order, with defaults for the missing ones."""
            given = {**dict(zip(cls._fields, values, strict=False)), **named}
            filled = {**cls._field_defaults, **given}
            if filled.keys() != set(cls._fields) or len(given) < len(values) + len(named):
                expected = ", ".join(cls._fields)
                raise TypeError(f"{cls.__name__}() takes each of its fields once: {expected}")
            return map(filled.__getitem__, cls._fields)

        def _replace(self, **named):
            """Return a copy with some fields changed."""
            made = tuple.__new__(type(self), map(named.pop, self._fields, self))
            if named:
                raise TypeError(f"{type(self).__name__} has no field {next(iter(named))}")
            return made

        def _asdict(self):
            """Return the fields and their values."""
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({fields})"


# The arguments of public functions ------------------------------------------------------------

PATH = "str | os.PathLike[str]"


def _is_path(value: Any) -> bool:
    text = isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )
    return text and "\0" not in os.fspath(value)


def _is_readable(value: Any) -> bool:
    return _is_path(value) or isinstance(value, (bytes, bytearray, memoryview)) or _is_file(value)


def _is_file(value: Any) -> bool:
    return callable(getattr(value, "read", None)) and not isinstance(value, type)


def _is_sources(value: Any) -> bool:
    return _is_readable(value) or (isinstance(value, Sequence) and all(map(_is_readable, value)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(text, str) for text in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_count(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool) and getattr(value, "shape", ()) == ()


def _is_options(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_paths(value: Any) -> bool:
    return _is_path(value) or (isinstance(value, Sequence) and all(map(_is_path, value)))


def _is_stack(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2
    return (
        isinstance(value, str)
        or _is_flag(value)
        or (pair and isinstance(value[0], str) and _is_count(value[1]))
    )


def _is_metadata(value: Any) -> bool:
    return type(value).__name__ == "Metadata"


# Declared type -> its check, and the words for it in messages. ``| None`` allows None as well.
_DECLARED: dict[str, tuple[Callable[[Any], bool], str]] = {
    PATH: (_is_path, "a path (str or os.PathLike, without NUL)"),
    "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]": (_is_paths, "a path or several"),
    "Readable": (_is_readable, "a path, bytes, or a file open for bytes"),
    "Readable | Sequence[str | os.PathLike[str]]": (
        lambda value: _is_readable(value) or _is_paths(value),
        "a path or several, bytes, or a file open for bytes",
    ),
    "Readable | Sequence[Readable]": (
        _is_sources,
        "a path or several, bytes, or a file open for bytes",
    ),
    "str": (_is_text, "a str without NUL"),
    "Sequence[str]": (_is_texts, "a list of str"),
    "str | os.PathLike[str] | Sequence[str]": (_is_paths, "a path or several"),
    "bool": (_is_flag, "True or False"),
    "int": (_is_count, "a whole number"),
    "bool | int": (lambda value: isinstance(value, int), "True, False, or the number of an axis"),
    "float": (lambda value: isinstance(value, int | float), "a number"),
    "dict[str, Any]": (_is_options, "a dict with names of options"),
    "bool | str | tuple[str, int]": (_is_stack, "True, a name, or a name and an axis"),
    "Metadata | str": (
        lambda value: _is_metadata(value) or _is_text(value),
        "a Metadata, or a word that says where metadata goes",
    ),
    "Callable[[Progress], object]": (callable, "a function"),
    "Callable[[Event], object]": (callable, "a function"),
}


@functools.cache
def _rule_of(declared: str) -> tuple[tuple[Callable[[Any], bool], str] | None, bool]:
    """Return the row of a declared type in `_DECLARED`, or None, and True if None is allowed."""
    return _DECLARED.get(declared.removesuffix(" | None")), declared.endswith(" | None")


def check(name: str, value: Any, declared: str) -> None:
    """Raise `UsageError` for a value that is not of a declared type."""
    rule, or_none = _rule_of(declared)
    if rule is not None and not (value is None and or_none) and not rule[0](value):
        got = type(value).__name__ + (f" {value!r:.60}" if _has_short_text(value) else "")
        raise UsageError(f"argument {name} is of the wrong type", expected=rule[1], got=got)


def _has_short_text(value: Any) -> bool:
    """True for a value whose text is part of a message."""
    return isinstance(value, bytes | str | int | float | tuple | list | None.__class__)


class Shown:
    """Base of classes that a notebook shows as HTML: arrays, bundles, reports."""

    __slots__ = ()
    cell: Callable[[Any], str]  # makes the HTML; registered by the package

    def _repr_html_(self) -> str:
        return type(self).cell(self)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with a check of its arguments before it is called."""
    return _checking(function, ())


def accepts(
    options: Iterable[Any], *, listed: bool = False
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function of ``**options``: each has a `name`, a `type`, a `default` and a `help`.

    Its arguments are checked, its signature shows the options with their defaults, and its
    docstring, if they are to be `listed`, ends with what each of them does.
    """
    rows = tuple(options)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        call = _checking(function, rows)
        outline = _outline(function, rows)
        outline.__annotations__ = call.__annotations__
        call.__wrapped__ = outline  # type: ignore[attr-defined]
        if listed and call.__doc__:
            call.__doc__ += _listed(call.__doc__, rows)
        return call

    return decorate


def _checking(function: Callable[P, T], options: tuple[Any, ...]) -> Callable[P, T]:
    """Return the function with a check of its own arguments and of `options`."""
    own = _arguments(function)
    types = {name: function.__annotations__.get(name, "") for name in own}
    types |= {option.name: option.type for option in options}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in zip(own, args, strict=False):
            check(name, value, types[name])
        for name, value in kwargs.items():
            if name not in types:
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument '{name}'"
                    f"{did_you_mean(name, list(types))}"
                )
            check(name, value, types[name])
        return function(*args, **kwargs)

    call.__annotations__ = {**types, "return": function.__annotations__.get("return", "")}
    return call


def _arguments(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the arguments that a function declares one by one."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _outline(function: Callable[..., object], options: tuple[Any, ...]) -> FunctionType:
    """Return a function with all arguments for `inspect.signature`; it cannot be called.

    `inspect`, which is slow to import, follows ``__wrapped__`` to it, and reads its names and
    defaults. It has the line numbers of `function`, so that `inspect` shows the source of that.
    """
    code = function.__code__
    names = (*_arguments(function), *(option.name for option in options))
    outline = FunctionType(
        _not_called.__code__.replace(
            co_name=function.__name__,
            co_qualname=function.__qualname__,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_argcount=code.co_argcount,
            co_kwonlyargcount=len(names) - code.co_argcount,
            co_varnames=names,
            co_nlocals=len(names),
        ),
        function.__globals__,
        argdefs=function.__defaults__,
    )
    outline.__module__ = function.__module__
    outline.__doc__ = function.__doc__
    outline.__kwdefaults__ = {
        **(function.__kwdefaults__ or {}),
        **{option.name: option.default for option in options},
    }
    return outline


def _not_called() -> None:
    raise TypeError("only shows the arguments of the function that it is the `__wrapped__` of")


_WIDTH = 100  # characters of a line of documentation


def _listed(doc: str, options: tuple[Any, ...]) -> str:
    """Return lines on each option that continue a docstring, indented as its last line."""
    indent = doc[doc.rindex("\n") + 1 :]
    lines = []
    for option in options:
        line = f"{indent}* `{option.name}`: {option.help}"
        while len(line) > _WIDTH:
            end = line.rindex(" ", 0, _WIDTH + 1)
            lines.append(line[:end])
            line = f"{indent}  {line[end + 1 :]}"
        lines.append(line)
    return "\n" + "\n".join([*lines, indent])


# The options of formats ---------------------------------------------------------------------

_BOOLS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def chosen(option: Any, value: Any, flag: str) -> Any:
    """Return the value of an option of a format (`raconvert.plugin.Option`) in its declared type.

    Words become ints, floats or bools. Raises `UsageError`, which names the flag, for a value that
    is not allowed.
    """
    choices = option.choices
    if isinstance(choices, tuple):
        if value in choices:
            return value
        if not isinstance(value, bool) and str(value) in choices:  # 2 and 7.3 are words, too
            return str(value)
        expected = " | ".join(map(str, choices))
    elif choices is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in _BOOLS:
            return _BOOLS[str(value).lower()]
        expected = "yes or no"
    else:
        try:
            return choices(value)
        except (ValueError, TypeError, OverflowError):
            expected = {int: "a whole number", float: "a number"}.get(choices, choices.__name__)
    raise UsageError(
        f"`{flag} {option.name}={value}` is not allowed", expected=expected, got=f"'{value}'"
    )
