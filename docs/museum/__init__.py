"""The museum of silent losses: what well-known libraries change without a word, as programs.

Each exhibit is a program of up to three parts, one below the other: what a library loses, the safe
way in that library where there is one, and the same task by raconvert. They are pasted here as a
user pastes them at the prompt of Python, in an empty folder. `given` is what goes in, `back` what
the library gives back, `safe` and `ours` what the other parts give. `python -m docs.museum` runs
them with the installed versions; `tests/test_museum.py` holds what the page docs/museum.md says.
"""

from __future__ import annotations

import ast
import code
import contextlib
import importlib
import inspect
import io
import re
import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import raconvert

Values = Any  # an array, or what else a library gives back
HERE = Path(__file__).resolve().parent
# The folders -> what the page says of them.
ROOMS = {
    "values": (
        "Values change",
        "Elements come back as other numbers, or what was masked comes back as a value.",
    ),
    "form": ("The form changes", "The values are there; their type, axes or names are others."),
    "defaults": (
        "Documented defaults",
        "The manual says so, and an option gives what is stored, if there is one. Whoever calls "
        "the function without it is not told.",
    ),
}
SAFE, OURS = "# The safe way", "# raconvert\n"


@dataclass(frozen=True)
class Exhibit:
    """One loss: the program, and where the library says what it does."""

    path: Path
    title: str
    library: str
    manual: tuple[tuple[str, str], ...]  # an object or a module, and what its text says
    links: tuple[tuple[str, str], ...]  # an address, and what stands there
    unsafe: str  # why there is no safe way in the library
    parts: dict[str, str]  # "loss", "safe", "ours" -> the lines

    @property
    def room(self) -> str:
        """The folder."""
        return self.path.parent.name

    @property
    def anchor(self) -> str:
        """Where it is on the page."""
        return self.path.stem.replace("_", "-")


@dataclass(frozen=True)
class Outcome:
    """What one exhibit did with the installed versions."""

    given: Values
    back: Values
    safe: Values  # None if there is no such part
    ours: Values
    report: object  # what raconvert said
    error: BaseException | None  # how the part of raconvert ended
    said: tuple[str, ...]  # warnings of the library


class _Prompt(code.InteractiveConsole):
    """The prompt of Python, which keeps the error that a line raises."""

    error: BaseException | None = None

    def showtraceback(self) -> None:
        self.error = sys.exc_info()[1]

    def showsyntaxerror(self, *_: Any, **__: Any) -> None:
        self.error = sys.exc_info()[1]


def parsed(path: Path) -> Exhibit:
    """Read an exhibit from its file."""
    text = path.read_text(encoding="utf-8")
    title, _, rest = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    fields = re.findall(r"^(library|manual|link|unsafe): (.+)$", rest, re.MULTILINE)
    pairs: dict[str, list[tuple[str, str]]] = {"manual": [], "link": []}
    for name, value in fields:
        if name in pairs:
            first, _, second = value.partition(" | ")
            pairs[name].append((first, second))
    found = dict(fields)
    program = text.split('"""\n', 2)[1] if text.startswith('"""\n') else text.split('"""', 2)[2]
    loss, _, ours = program.partition(OURS)
    loss, mark, safe = loss.partition(SAFE)
    parts = {"loss": loss.strip(), "safe": (mark + safe).strip(), "ours": (OURS + ours).strip()}
    return Exhibit(
        path, title.rstrip("."), found["library"], tuple(pairs["manual"]), tuple(pairs["link"]),
        found.get("unsafe", ""), {name: part for name, part in parts.items() if part},
    )  # fmt: skip


def gather() -> list[Exhibit]:
    """Return all exhibits, room by room."""
    return [parsed(path) for room in ROOMS for path in sorted((HERE / room).glob("*.py"))]


def missing(exhibit: Exhibit) -> str:
    """The name of the library if it is not installed."""
    try:
        version(exhibit.library)
    except PackageNotFoundError:
        return exhibit.library
    return ""


def versions(exhibit: Exhibit) -> str:
    """The library and its version; for h5py also that of HDF5."""
    found = f"{exhibit.library} {version(exhibit.library)}"
    if exhibit.library == "h5py":
        found += f" with HDF5 {importlib.import_module('h5py').version.hdf5_version}"
    return found


def run(exhibit: Exhibit, folder: Path) -> Outcome:
    """Paste the parts at the prompt, in a folder; an error of the first part is raised."""
    names: dict[str, Any] = {}
    with contextlib.chdir(folder), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        if error := paste(exhibit.parts["loss"], names):
            raise error
        said = tuple(str(one.message) for one in told)
        safe = paste(exhibit.parts.get("safe", ""), names)
        ours = paste(exhibit.parts["ours"], names)
    if safe is None:
        safe = names.get("safe")
    return Outcome(
        names["given"], names["back"], safe, names.get("ours"), names.get("report"), ours, said
    )


def paste(program: str, names: dict[str, Any]) -> BaseException | None:
    """Type the lines of a program at the prompt; return the error that ends it."""
    prompt = _Prompt(names)
    with contextlib.redirect_stdout(io.StringIO()), _no_echo():
        for line in [*program.splitlines(), ""]:
            prompt.push(line)
            if prompt.error:
                return prompt.error
    return None


@contextlib.contextmanager
def _no_echo() -> Any:
    """Values of expressions are neither printed nor kept."""
    kept, sys.displayhook = sys.displayhook, lambda _: None
    try:
        yield
    finally:
        sys.displayhook = kept


def text_of(name: str) -> str:
    """The arguments and the docstring of an object, or the text of a module, in one line."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        if inspect.ismodule(found):
            whole = re.sub(r"^\s*# ?", "", inspect.getsource(found), flags=re.MULTILINE)
        else:
            whole = f"{_signature(found)} {inspect.getdoc(found)}"
        return " ".join(whole.split())
    raise ImportError(name)


def _signature(found: Any) -> str:
    """The arguments with their defaults, where Python knows them."""
    try:
        return str(inspect.signature(found))
    except (TypeError, ValueError):
        return ""


def reason(error: BaseException) -> str:
    """The cause of a refusal in one line, without the name of the file."""
    lines = re.sub(r"'/[^']*/([^'/]+)'", r"'\1'", str(error)).splitlines()
    cause = lines[1].strip() if "cannot hold this as it is" in lines[0] else lines[0]
    return re.sub(r"^'(ours|x)[.\w]*': ", "", re.split(r" \((?:allow with|no option)", cause)[0])


def shown(values: Values) -> str:
    """Type, shape and values of an array; what else there is, as Python writes it."""
    if isinstance(values, BaseException):
        return f"{type(values).__name__}: {str(values) or 'raised'}"
    if not isinstance(values, np.ndarray):
        return repr(values)
    kind = values.dtype.str.lstrip("|<") if values.dtype.kind in "SU" else values.dtype.name
    if values.size > 8:
        return f"{kind} {values.shape}"
    if values.dtype == np.longdouble and values.dtype != np.float64:
        text = np.array2string(values, floatmode="unique", precision=None)
    elif values.dtype.kind in "biufcOSU" and not np.ma.isMaskedArray(values):
        text = str(values.tolist())
    else:
        text = str(values)
    return f"{kind} {values.shape} {' '.join(text.split())}"


def verdict(found: Outcome) -> str:
    """The answer of raconvert in one line: exact, what was said, or refused."""
    if isinstance(found.error, raconvert.RaconvertError):
        return f"refused, {type(found.error).__name__}: {reason(found.error)}"
    if found.error:
        raise found.error
    if same(found.given, found.ours):
        return "exact"
    if isinstance(found.report, raconvert.Report) and (says := said(found.report)):
        return f"said: {says}"
    return f"SILENT: {shown(found.ours)}"


def said(report: raconvert.Report) -> str:
    """The lines of a report about what is not as it was."""
    lines = [str(line).split(": ", 1)[-1] for line in report.equivalent]
    return "; ".join(lines or report.notes)


def same(first: Values, second: Values) -> bool:
    """Compare type (byte order aside), shape, mask and values, NaN being equal to itself."""
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return type(first) is type(second) and bool(first == second)
    if first.dtype.newbyteorder("=") != second.dtype.newbyteorder("="):
        return False
    if not np.array_equal(np.ma.getmaskarray(first), np.ma.getmaskarray(second)):
        return False
    given, found = np.ma.filled(first, 0), np.ma.filled(second, 0)
    return np.array_equal(given, found, equal_nan=first.dtype.kind in "fc")
