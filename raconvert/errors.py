"""Every error that raconvert raises on purpose, as one tree.

::

    RaconvertError                 exit code 1   something failed; nothing was written
    ├── UsageError (ValueError)    exit code 2   the call itself is wrong, or cannot be compared
    ├── UnknownFormat              exit code 3   no format claims the file, or the name is unknown
    │   ├── NotSupportedYet        exit code 3   the format is recognised, but has no plugin
    │   └── MissingDependency      exit code 3   the plugin exists, a package it needs does not
    ├── Corrupt                    exit code 1   the file contradicts its own format
    │   └── Changed                exit code 1   the file is not what it was when it was opened
    ├── Unsupported                exit code 1   valid, but beyond what the plugin reads or writes
    ├── ReadFailed (OSError)       exit code 1   the operating system refused to read
    │   └── NotFound (FileNotFoundError)         there is no such file
    ├── WriteFailed (OSError)      exit code 1   the operating system refused to write
    ├── WouldLose                  exit code 4   the target cannot hold it; names the allowing flag
    ├── Unsafe                     exit code 4   refused for safety
    │   └── TooLarge               exit code 4   needs more memory than `max_memory` allows
    └── TargetExists (FileExistsError)  exit code 5   refused: the destination exists

Those with a name in parentheses are also exceptions of Python of that kind, with `filename`,
`strerror` and, where it is known, `errno`.

A message is one sentence made of parts, so that none of them is forgotten: what is wrong, in which
file, where in it, what was expected, what was got, and what to do.

A message names an option between backticks, as the command line has it: ```--overwrite```,
```--allow names```. It is shown so while the command line runs, and as a keyword else:
``overwrite=True``, ``allow=["names"]`` (`worded`). An error keeps the text as it was written, so
that one from another process is shown in the words of the process that shows it.
"""

from __future__ import annotations

from errno import EEXIST, ENOENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


# Characters that a terminal obeys, shows as something else, or cannot show: control characters,
# marks of the direction of writing, separators of lines, halves of surrogate pairs, tags.
_ODD = ((0, 32), (127, 160), (0x61C, 0x61D), (0x200E, 0x2010), (0x2028, 0x202F), (0x2066, 0x206A),
        (0xD800, 0xE000), (0xFEFF, 0xFF00), (0xE0000, 0xE0080))  # fmt: skip
LISTED = 20  # names in one message, and notes of one file


def quoted(text: str, *, lines: bool = False) -> str:
    r"""Return text from elsewhere as it may be shown: odd characters as ``\xNN`` or ``\uNNNN``.

    With `lines`, newlines stay: they are ours.
    """
    if (text.replace("\n", "") if lines else text).isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escaped(c) for c in text)


def _escaped(letter: str) -> str:
    """Return a character that is not printable as it may be shown."""
    code = ord(letter)
    if letter == "\n":
        return r"\n"
    if not any(low <= code < high for low, high in _ODD):
        return letter
    if 0xDC80 <= code < 0xDD00:  # a byte of a name that is not in the encoding of the system
        code -= 0xDC00
    if code < 256:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


# Options in messages ----------------------------------------------------------------------------

_as_flags = False  # while the command line runs
_keywords: Callable[[str], str] = str  # makes keywords of flags; `register_keywords`


def flags_named() -> bool:
    """True if messages name options as flags of the command line."""
    return _as_flags


def name_flags(as_flags: bool) -> bool:
    """Choose how messages name options, as flags or keywords; return the choice before."""
    global _as_flags
    before, _as_flags = _as_flags, as_flags
    return before


def register_keywords(keywords: Callable[[str], str]) -> None:
    """Set the function that turns flags in messages into keywords of Python."""
    global _keywords  # noqa: PLW0603 - one hook of the process
    _keywords = keywords


def worded(text: str) -> str:
    """Return a message in which options are flags on the command line, and else keywords.

    >>> print(worded("use `--overwrite` to replace it"))
    use overwrite=True to replace it
    """
    if "`-" not in text:
        return text
    import re

    form = str if _as_flags else _keywords
    return re.sub("`(--?[a-z][^`\\n]*)`", lambda option: form(option[1]), text)


class _Part:
    """A part of a message: kept as it was written, shown by `worded`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, error: Any, owner: type) -> Any:
        value = error.__dict__[self._name]
        return worded(value) if isinstance(value, str) else value

    def __set__(self, error: Any, value: Any) -> None:
        error.__dict__[self._name] = value


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, ``1 array``, ``2 arrays``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Return names as a message lists them: at most the first `most`, and the number of others."""
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(quoted(name) for name in names[:most]) + more


def without_secrets(text: str) -> str:
    """Return a text with the secrets of its URLs replaced: passwords and signed queries."""
    import re

    text = re.sub(r"(?<=://)[^/@\s'\"]*:[^/@\s'\"]*@", "***@", text)
    return re.sub(r"(https?://[^\s?'\"]*)\?[^\s'\")>]*", r"\1?***", text)


class RaconvertError(Exception):
    """Base of all errors of raconvert; `exit_code` is what the command line returns.

    >>> try:
    ...     raconvert.read("none.ra")
    ... except raconvert.RaconvertError as error:
    ...     print(type(error).__name__, error.path, error.exit_code)
    NotFound none.ra 1
    """

    exit_code = 1
    if TYPE_CHECKING:
        what: str
        where: str | None
        expected: object
        got: object
        remedy: str | None
    else:
        what, where, expected, got, remedy = _Part(), _Part(), _Part(), _Part(), _Part()

    def __init__(
        self,
        what: str,
        *,
        path: object = None,
        where: str | None = None,
        expected: object = None,
        got: object = None,
        remedy: str | None = None,
    ) -> None:
        self.what = what
        self.path: str | None = None if path is None else str(path)
        self.where = where
        self.expected = expected
        self.got = got
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what
        if self.path:  # values in memory have none
            text = f"'{self.path}': {text}"
        if self.where is not None:
            text += f", at {self.where}"
        if self.expected is not None:
            text += f"; expected {self.expected}"
        if self.got is not None:
            text += f"{',' if self.expected is not None else ';'} got {self.got}"
        text = quoted(text)
        if self.remedy is not None:
            text += f"\n  {quoted(self.remedy, lines=True)}"
        return without_secrets(text) if "://" in text else text

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class, arguments and state for pickle, so that all parts reach a process."""
        return (type(self), (self.__dict__["what"],), self.__dict__)

    def as_written(self, part: str) -> str | None:
        """Return a part of the message as text, with options between backticks."""
        value = self.__dict__[part]
        return None if value is None else str(value)

    @property
    def kind(self) -> str:
        """The name of the class as reports have it."""
        return type(self).__name__


class _SystemError(RaconvertError, OSError):
    """An error of ours that is an `OSError` too, with its attributes."""

    _number: int | None = None  # the `errno` of all errors of a class

    def __init__(self, what: str, **parts: Any) -> None:
        super().__init__(what, **parts)
        self.errno: int | None = self._number

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the same with the number, which `__dict__` lacks."""
        return (type(self), (self.__dict__["what"],), {**self.__dict__, "errno": self.errno})

    @property
    def filename(self) -> str | None:
        """The path, as an `OSError` calls it."""
        return self.path

    @property
    def strerror(self) -> str:  # type: ignore[override]
        """The first part of the message, as an `OSError` calls it."""
        return self.what


class UsageError(RaconvertError, ValueError):
    """The call itself is wrong: an unknown option, a contradiction, two things not comparable.

    >>> raconvert.read("grid.ra", meta="all")
    Traceback (most recent call last):
    raconvert.errors.UsageError: ...
    """

    exit_code = 2


class UnknownFormat(RaconvertError):
    """The format of the file, or a given name of a format, is unknown.

    >>> raconvert.read(b"nothing of the kind")
    Traceback (most recent call last):
    raconvert.errors.UnknownFormat: ...no format claims this file...
    """

    exit_code = 3


class NotSupportedYet(UnknownFormat):
    """The file was recognised as one of a known format, but no plugin reads that format.

    >>> raconvert.write("x.jld2", np.zeros(3))
    Traceback (most recent call last):
    raconvert.errors.NotSupportedYet: 'x.jld2': JLD2 is not supported yet as a destination...
    """


class MissingDependency(UnknownFormat):
    """A package that the plugin needs is not installed. The remedy is the install line.

    >>> issubclass(raconvert.MissingDependency, raconvert.UnknownFormat)
    True
    """


class Corrupt(RaconvertError):
    """The file contradicts its own format: damaged, cut off or hostile.

    >>> raconvert.read(Path("grid.ra").read_bytes()[:-1])
    Traceback (most recent call last):
    raconvert.errors.Corrupt: ...
    """


class Changed(Corrupt):
    """The file was changed, replaced or cut while it was read.

    >>> issubclass(raconvert.Changed, raconvert.Corrupt)
    True
    """


class Unsupported(RaconvertError):
    """A valid file or array that lies beyond what the plugin can read or write.

    >>> raconvert.write("x.bin", np.zeros(3), to="raw")
    Traceback (most recent call last):
    raconvert.errors.Unsupported: 'x.bin': format raw is read only
    """


class ReadFailed(_SystemError):
    """The operating system refused to open or read the source.

    >>> raconvert.read("none.ra")
    Traceback (most recent call last):
    raconvert.errors.NotFound: 'none.ra': ...
    """


class NotFound(ReadFailed, FileNotFoundError):
    """The file does not exist; reports call it `ReadFailed`, as any file that cannot be read.

    >>> try:
    ...     raconvert.read("none.ra")
    ... except FileNotFoundError as error:
    ...     print(error.filename, isinstance(error, raconvert.ReadFailed))
    none.ra True
    """

    _number = ENOENT

    @property
    def kind(self) -> str:
        """The name of the class as reports have it."""
        return ReadFailed.__name__


class WriteFailed(_SystemError):
    """The operating system refused to write the destination.

    >>> raconvert.write("nowhere/x.ra", np.zeros(3))
    Traceback (most recent call last):
    raconvert.errors.WriteFailed: 'nowhere/x.ra': cannot be written: folder 'nowhere' does not...
    """


class WouldLose(RaconvertError):
    """The target cannot hold what the source has; the message names the flag that allows it.

    >>> raconvert.write("x.png", np.zeros((2, 3)))
    Traceback (most recent call last):
    raconvert.errors.WouldLose: 'x.png': png cannot hold this as it is...
    """

    exit_code = 4


class Unsafe(RaconvertError):
    """Refused for safety: pickled objects, paths outside the folder, devices.

    >>> np.save("objects.npy", np.array([{}]), allow_pickle=True)
    >>> raconvert.read("objects.npy")
    Traceback (most recent call last):
    raconvert.errors.Unsafe: 'objects.npy': ...
    """

    exit_code = 4


class TooLarge(Unsafe):
    """The operation needs more memory than `max_memory` allows; the need was computed first.

    >>> raconvert.read("grid.ra", max_memory=8)
    Traceback (most recent call last):
    raconvert.errors.TooLarge: ...
    """


class TargetExists(_SystemError, FileExistsError):
    """The destination exists and neither overwriting nor skipping was asked for.

    >>> raconvert.write("grid.ra", np.zeros(3))
    Traceback (most recent call last):
    raconvert.errors.TargetExists: 'grid.ra': ...
    """

    exit_code = 5
    _number = EEXIST


# Errors of reading elements: no failures of a destination, nor values that do not fit there.
UNREADABLE: tuple[type[RaconvertError], ...] = (Corrupt, ReadFailed, Unsafe)


def changed(path: str, *, shorter: bool = False) -> Changed:
    """Return the error for a file that was changed after it was first opened."""
    return Changed(
        f"file {'became shorter' if shorter else 'changed'} while it was read",
        path=path,
        remedy="try again when nothing writes to it",
    )


def did_you_mean(word: str, known: list[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean 'x'?`` for the closest of `known`, or an empty string.

    `cutoff` is the least likeness of the two, from 0 to 1.
    """
    from difflib import get_close_matches

    close = get_close_matches(word, known, cutoff=cutoff)
    close.sort(key=lambda name: sorted(name) != sorted(word))  # the same letters come first
    return f"; did you mean '{close[0]}'?" if close else ""
