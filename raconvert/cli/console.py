"""Output of the command line: results, notes, errors, progress, color, and streams that fail."""

from __future__ import annotations

import os
import sys

from raconvert.errors import LISTED, Corrupt, RaconvertError, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.conversion.progress import Progress as Event

_BOLD, _RED, _RESET = "\033[1m", "\033[1;31m", "\033[0m"


class Console:
    """The two output streams, under -q, -v, --json and --color."""

    def __init__(self, args: Any = None) -> None:
        self.quiet: bool = getattr(args, "quiet", False)
        self.verbose: int = getattr(args, "verbose", 0)
        self.json: bool = getattr(args, "json", False)
        self._names: dict[str, str] = {}
        self._printed_parts = False  # True once parts of the result were printed as lines
        self._color = getattr(args, "color", "auto")
        self._detects = getattr(args, "from_", None) is None

    def name(self, path: str, shown: str) -> None:
        """Print `shown` in place of a path from now on."""
        self._names[path] = shown

    def result(self, text: str) -> None:
        """Print lines of the result, with control characters as escapes, except those of `bold`."""
        if _BOLD in text and colorful(sys.stdout, self._color):
            parts = [part.split(_RESET) for part in text.split(_BOLD)]
            self.raw(_BOLD.join(_RESET.join(map(printable, part)) for part in parts))
        else:
            self.raw(printable(text))

    def raw(self, text: str) -> None:
        """Print a text as it is: pictures, words for a shell, names for sha256sum."""
        for path, shown in self._names.items():
            text = text.replace(path, shown)
        write(sys.stdout, text + "\n")

    def result_json(self, value: Any) -> None:
        """Print the result as JSON."""
        self.raw(json_text(value, indent=2))

    def result_line(self, value: Any) -> None:
        """Print a part of the result as one line of JSON, at once."""
        self._printed_parts = True
        self.raw(json_text(value))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print a one-line remark to the standard error, unless -q was given."""
        if not self.quiet:
            write(sys.stderr, one_line(text) + "\n")

    def notes(self, texts: list[str], mark: str = "") -> None:
        """Print the first of some remarks, and how many more there are."""
        for text in texts[:LISTED]:
            self.note(mark + text)
        if len(texts) > LISTED:
            self.note(f"{mark}and {len(texts) - LISTED} more notes")

    def detail(self, text: str) -> None:
        """Print a remark if -v was given."""
        if self.verbose:
            self.note(text)

    def failure(self, error: RaconvertError) -> int:
        """Print the error that ends the run, with --json also as JSON; return its exit code."""
        if self.json:
            print_json = self.result_line if self._printed_parts else self.result_json
            try:
                print_json({"error": error_facts(error)})
            except (RaconvertError, OSError):  # the standard output is gone; the exit code remains
                silence(sys.stdout)
        return self.error(error)

    def error(self, error: RaconvertError) -> int:
        """Print an error; return its exit code."""
        return print_error(error, self._color, detects=self._detects)

    def bold(self, text: str) -> str:
        """Return the text in bold if the standard output takes color."""
        return f"{_BOLD}{one_line(text)}{_RESET}" if colorful(sys.stdout, self._color) else text


def colorful(stream: Any, when: str = "auto") -> bool:
    """True if color is to be used: as asked, else on a terminal without NO_COLOR."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(stream.isatty())


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in printable ASCII, DEL escaped, too."""
    import json

    return json.dumps(value, indent=indent, allow_nan=False).replace("\x7f", r"\u007f")


def printable(text: str) -> str:
    """Return the text with control characters, except newlines, as escapes."""
    return quoted(text, lines=True)


def one_line(text: str) -> str:
    """Return the text with all control characters as escapes, for names inside a line."""
    return quoted(text)


def write(stream: Any, text: str) -> None:
    """Write text; names keep the bytes that they have on disk, whatever the encoding is.

    Standard output is flushed first, so that both streams keep their order in one pipe.
    """
    if stream is sys.stderr:
        try:
            sys.stdout.flush()
        except OSError:  # the message on standard error matters more
            silence(sys.stdout)
    try:
        _write(stream, text)
    except BrokenPipeError:
        if stream is not sys.stderr:
            raise
        silence(stream)
    except OSError as error:
        if stream is not sys.stderr:
            raise stdout_failed(error) from error
        silence(stream)  # a remark that cannot be printed fails nothing


def _write(stream: Any, text: str) -> None:
    """Write text in the encoding of the stream, or in UTF-8 with names byte for byte."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "surrogateescape"))
        stream.buffer.flush()


def print_error(error: RaconvertError, color: str = "auto", *, detects: bool = False) -> int:
    """Print an error, cause first, remedy last; return the exit code.

    `detects`: the format of its file was not given but detected, so that it is worth naming.
    """
    first, *more = error_lines(error, detects=detects)
    mark = "raconvert:"
    if colorful(sys.stderr, color):
        mark = f"{_RED}{mark}{_RESET}"
    lines = [f"{mark} {printable(first)}", *(f"  {printable(line)}" for line in more)]
    write(sys.stderr, "\n".join(lines) + "\n")
    return error.exit_code


def error_facts(error: RaconvertError) -> dict[str, Any]:
    """The parts of an error as values of JSON."""
    parts = {name: getattr(error, name) for name in ("path", "where", "expected", "got", "remedy")}
    return {
        "kind": error.kind,
        "exit_code": error.exit_code,
        "message": str(error),
        "what": error.what,
        **{name: None if part is None else str(part) for name, part in parts.items()},
    }


def error_lines(error: RaconvertError, *, detects: bool) -> list[str]:
    """Return the lines of an error: cause, detection of the file, notes, remedy."""
    cause = str(error)
    remedy = error.remedy or ""
    cause = cause.removesuffix(f"\n  {quoted(remedy, lines=True)}") if remedy else cause
    lines = [cause]
    if detects and isinstance(error, Corrupt) and error.path is not None:
        lines = _as_format(cause, error.path)
    notes = [note for note in getattr(error, "__notes__", []) if note not in remedy]
    return [*lines, *notes, *(line.strip() for line in remedy.splitlines())]


def _as_format(cause: str, path: str) -> list[str]:
    """Return the lines that name the format as which a damaged file was read, and why."""
    from raconvert import registry
    from raconvert.files.source import Source

    try:
        detection = registry.detect(Source(path))
    except RaconvertError:
        return [cause]
    title = detection.row.title
    cause = cause.removeprefix(f"'{quoted(path)}': ")
    return [
        f"cannot read '{path}' as {title}: {cause}",
        f"detected as {detection.row.name} by {detection.reason}",
    ]


class Progress:
    """Progress display: on a terminal one line that changes; in a log a line every few seconds."""

    DELAY = 0.5  # seconds before the first line: short work needs none
    INTERVAL = 0.1  # seconds between two lines on a terminal
    LOGGED = 5.0  # seconds between two lines in a log

    def __init__(self, label: str, *, log: bool = False) -> None:
        from time import monotonic

        self._clock = monotonic
        self._label = label
        self._log = log
        self._begin = self._next = monotonic()
        self._next += self.LOGGED if log else self.DELAY
        self._width = 0

    def __call__(self, state: Event) -> None:
        """Show how far a conversion is."""
        seconds = self.due()
        if seconds is None:
            return
        from raconvert.arrays.dtypes import size

        done, total = state.done, state.total
        share = f"{100 * done // total} %" if total else ""
        text = f"{share} of {size(total)}, {size(int(state.rate))}/s"
        if state.files > 1:
            text = f"{state.count} of {state.files} files, {text}"
        elif 0 < done < total:
            text += f", {duration(seconds * (total - done) / done)} left"
        self.show(text)

    def due(self) -> float | None:
        """The seconds since the work began, if it is time for another line; else None."""
        now = self._clock()
        if now < self._next:
            return None
        self._next = now + (self.LOGGED if self._log else self.INTERVAL)
        return max(now - self._begin, 1e-9)

    def show(self, text: str) -> None:
        """Show a line, cut to the width of the terminal."""
        text = f"{self._label}: {one_line(text)}"
        if self._log:
            write(sys.stderr, text + "\n")
            return
        text = text[: _columns() - 1]
        write(sys.stderr, "\r" + text.ljust(self._width))
        self._width = len(text)

    def clear(self) -> None:
        """Wipe the line."""
        if self._width:
            write(sys.stderr, "\r" + " " * self._width + "\r")
            self._width = 0


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def duration(seconds: float) -> str:
    """Format a time for people: ``7 s``, ``12:05 min``, ``3:04 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def progress_of(args: Any, console: Console, label: str) -> Progress | None:
    """Return the progress display, or None if --progress, -q or the terminal rule it out."""
    terminal = sys.stderr.isatty()
    by_default = args.progress == "auto" and terminal and not console.quiet
    wanted = args.progress == "always" or by_default
    return Progress(one_line(label), log=not terminal) if wanted else None


# Streams that are closed, full, or whose reader is gone -------------------------------------------


def flush() -> None:
    """Write the buffer of the standard output. Raises `RaconvertError` if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_failed(error) from error


def stdout_failed(error: OSError) -> RaconvertError:
    """Silence a standard output that cannot be written; return our error for it."""
    silence(sys.stdout)
    return RaconvertError(f"the standard output cannot be written: {error.strerror}")


def silence(stream: Any) -> None:
    """Give the interpreter somewhere to flush to when a stream cannot be written any more."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # a stream that is not a file
        pass


def fill_closed() -> None:
    """Open closed standard streams (``>&-``), before a file of ours gets their number.

    Messages to a closed standard error are dropped; results for a closed output are an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        mode = "r" if name == "stdin" else "w"
        stream = open(number, mode, errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
