"""Facts about files and formats as plain values, for `raconvert info` and `raconvert formats`.

Nothing here reads elements, and nothing prints. All values can be dumped as JSON.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from raconvert import registry
from raconvert.arrays.array import UNKNOWN
from raconvert.arrays.dtypes import type_name
from raconvert.catalogue import ROWS, Row
from raconvert.conversion.options import Inspecting, Settings, options_of
from raconvert.conversion.read import open_spec
from raconvert.declared import Record, accepts, checked
from raconvert.errors import RaconvertError, ReadFailed
from raconvert.files.paths import is_remote, public_name, walk
from raconvert.files.source import Source, path_of
from raconvert.plugin import NO, SURE
from raconvert.references import proof_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Unpack

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.arrays.dtypes import Element
    from raconvert.declared import Readable

_ORDERS = {"<": "little", ">": "big", "|": None}


# Files -----------------------------------------------------------------------------------------


@accepts(options_of(Inspecting, arrays=None))
def info(
    path: Readable,
    **options: Unpack[Inspecting],
) -> dict[str, Any]:
    """The content of a file: format, sizes, arrays with type and both axis views, metadata.

    Only headers are read; sizes are in bytes. `path` and the options as in `raconvert.open`;
    `arrays` are the names or globs of the arrays to show.

    >>> (one,) = raconvert.info("grid.ra")["arrays"]
    >>> one["type"], one["shape"], one["dims"], one["nbytes"]
    ('int32', [3, 4], [4, 3], 48)

    Raises `ReadFailed`, `UnknownFormat` or `Corrupt` for the file.
    """
    settings = Settings(**options)
    with ExitStack() as stack:
        local = public_name(path_of(path, stack))
        if proof_beside(local) is None:
            return _opened(local, settings, stack)
        from raconvert.references.check import shown

        return shown(local, settings.max_memory, lambda: _opened(local, settings, stack))


def _opened(local: str, settings: Settings, stack: ExitStack) -> dict[str, Any]:
    """The facts about a file, which stays open as long as the stack."""
    opened = stack.enter_context(open_spec(local, settings))
    return describe(opened.bundle, local, opened.reason)


def describe(
    bundle: Bundle, path: str, reason: str = "", *, only: Sequence[Array] | None = None
) -> dict[str, Any]:
    """Return the facts of an open bundle; the keys are the same for every format.

    `only` are the arrays to describe; without it, all are.
    """
    row = registry.by_name(bundle.format)
    sidecar = bundle.path + ".yaml"
    return {
        "path": path,
        "format": row.name,
        "title": row.title,
        "reason": reason,
        "plugin": row.module,
        "container": row.many,
        "stored_bytes": _stored_bytes(bundle.path, row),
        "nbytes": sum(array.nbytes for array in bundle.arrays if not array.pending),
        "sidecar": sidecar if row.sidecar != "never" and _is_sidecar(sidecar) else None,
        "attributes": plain(bundle.attributes),
        "groups": plain(bundle.groups),
        "aliases": dict(bundle.aliases),
        "arrays": [
            describe_array(one, bundle) for one in (bundle.arrays if only is None else only)
        ],
        "notes": list(bundle.notes),
        "references": None,
    }


def _stored_bytes(path: str, row: Row) -> int | None:
    """Return the size of a file, or of all files in a folder; None for one at a URL."""
    if is_remote(path):
        return None if row.folder else Source(path).size
    if not os.path.isdir(path):
        return os.stat(path).st_size
    paths = (os.path.join(folder, name) for folder, _, names in walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in paths)


def _is_sidecar(path: str) -> bool:
    """True if a sidecar exists at this path or URL, and raconvert has written it."""
    if not is_remote(path) and not os.path.exists(path):
        return False
    from raconvert.metadata.sidecar import is_ours

    return is_ours(path)


def describe_array(array: Array, bundle: Bundle) -> dict[str, Any]:
    """Return the facts of one array of an open bundle."""
    element = UNKNOWN if array.pending else array.element
    extent = array.extent
    layout: dict[str, Any] = {"kind": "encoded", "offset": None, "nbytes": None, "swap": None}
    if extent is not None:
        layout = {
            "kind": "plain",
            "offset": extent.offset,
            "nbytes": extent.nbytes,
            "swap": extent.swap,
        }
    return {
        "name": array.name,
        "type": array.pending or type_text(element),
        "kind": element.kind,
        "element_bytes": None if array.pending else element.nbytes,
        "byte_order": _ORDERS[element.order],
        "descr": plain(element.descr),
        "index_order": array.index_order,
        "shape": list(array.shape),
        "dims": list(array.dims),
        "count": array.count,
        "nbytes": None if array.pending else array.nbytes,
        "layout": layout,
        "storage": plain(array.storage),
        "metadata": plain(array.meta.to_dict()),
        "to_ra": _to_ra(array),
        "problem": None if array.problem is None else _reason(array.problem, bundle.path),
    }


def _reason(problem: RaconvertError, path: str) -> str:
    """The reason why an array cannot be read."""
    from raconvert.conversion.unreadable import why

    return why(problem, path)


def type_text(element: Element) -> str:
    """The name of a type, without its byte order."""
    if element is UNKNOWN:
        return "unknown"
    return type_name(element._replace(order="<") if element.order == ">" else element)


def _to_ra(array: Array) -> dict[str, Any]:
    """The fields that an .ra of this array would leave to its sidecar, and whether it is exact."""
    if array.problem is not None:
        return {"exact": False, "sidecar": []}
    if not array.pending and array.bare:
        return {"exact": True, "sidecar": []}
    from raconvert.metadata.roundtrip import record_of

    if array.pending:
        return {"exact": True, "sidecar": ["dtype", *record_of(array)]}
    return {"exact": True, "sidecar": list(record_of(array, beside_ra=True))}


def plain(value: Any) -> Any:
    """Return a value of metadata in the types of JSON.

    Bytes become hex digits, dates ISO text, bytes left in a file their offset and size, and the
    numbers that JSON lacks the words ``nan``, ``inf`` and ``-inf``.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # inf - inf and nan - nan are nan
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "offset") and hasattr(value, "nbytes"):
        return {"offset": value.offset, "nbytes": value.nbytes}
    if hasattr(value, "tolist"):
        return str(value) if value.dtype.kind in "mM" else plain(value.tolist())
    return str(value)


# Formats ---------------------------------------------------------------------------------------


def formats() -> list[dict[str, Any]]:
    """Return one row per format, built-in and installed ones, without importing built-in plugins.

    Formats whose packages are missing are listed with the packages to install, and plugins that
    cannot be used, which neither read nor write anything, with the reason as ``broken``.

    >>> [row["suffixes"] for row in raconvert.formats() if row["name"] == "npy"]
    [['.npy']]

    Raises nothing: a plugin that is broken is a row.
    """
    rows = [_format_row(row) for row in registry.rows()]
    return rows + [_broken_row(name, error) for name, error in registry.broken().items()]


def _broken_row(name: str, error: RaconvertError) -> dict[str, Any]:
    """The row of a format whose plugin cannot be used: its name and the reason."""
    abilities: dict[str, Any]
    abilities = dict.fromkeys(("reads", "writes", "many", "lazy", "stream", "proof"), False)
    nothing: dict[str, Any] = {"suffixes": (), "magic": (), "needs": ()}
    row = Row(name, module="", title="", meta="none", index_orders="", **abilities, **nothing)
    return {**_format_row(row), "broken": error.what}


def _format_row(row: Row) -> dict[str, Any]:
    """The row of a format."""
    missing = registry.missing_needs(row)
    return {
        "name": row.name,
        "title": row.title,
        "reads": row.reads,
        "writes": row.writes,
        "many": row.many,
        "lazy": row.lazy,
        "stream": row.stream,
        "meta": row.meta,
        "holds": list(row.holds),
        "index_orders": row.index_orders,
        "suffixes": list(row.suffixes),
        "magic": [{"offset": at, "hex": text.hex()} for at, text in row.magic],
        "proof": row.proof,
        "plugin": row.module,
        "built_in": row in ROWS,
        "needs": [requirement for _, requirement in row.needs],
        "missing": missing,
        "broken": None,
    }


def format_details(name: str) -> dict[str, Any]:
    """Return all facts about one format, options and losses included; imports its plugin."""
    from importlib import import_module

    row = registry.by_name(name)
    form = import_module(row.module).FORMAT  # importable even where its packages are missing
    return {
        **_format_row(row),
        "spec": form.spec,
        "losses": form.losses,
        "read_options": [_option(option) for option in form.read_options],
        "write_options": [_option(option) for option in form.write_options],
    }


def _option(option: Any) -> dict[str, Any]:
    """An option of a format as values of JSON."""
    choices = option.choices
    words = list(choices) if isinstance(choices, tuple) else _CHOICES.get(choices, "text")
    return {
        "name": option.name,
        "default": plain(option.default),
        "choices": words,
        "help": option.help,
    }


_CHOICES = {int: "whole number", float: "number", bool: ["yes", "no"], str: "text"}


class Probe(Record):
    """The format that a file is taken for, and the reason.

    `format` is None if no format claims the file; `error` then explains what the file is and what
    can be done.

    >>> raconvert.probe("grid.ra")
    Probe(path='grid.ra', format='ra', reason='signature at byte 0', error=None)
    """

    path: str
    format: str | None
    reason: str
    error: RaconvertError | None = None


@checked
def probe(path: Readable) -> Probe:
    r"""The format that a file is taken for, by its first bytes and its suffix; no array is read.

    `path` as in `raconvert.open`.

    >>> found = raconvert.probe("grid.ra")
    >>> found.format, found.reason
    ('ra', 'signature at byte 0')
    >>> raconvert.probe(b"a,b\n1,2\n").format is None
    True

    Raises `ReadFailed` for a file that cannot be read.
    """
    with ExitStack() as stack:
        local = public_name(path_of(path, stack))
        source = Source(local)
        try:
            detection = registry.detect(source)
        except ReadFailed:
            raise
        except RaconvertError as error:
            return Probe(local, None, error.what, error)
        finally:
            source.close()
        return Probe(local, detection.row.name, detection.reason)


def why(path: str) -> dict[str, Any]:
    """The format that a file is taken for, and the verdict of every format on it.

    ``format`` is None if no format claims the file; ``reason`` then says why.
    """
    taken = probe(path)
    source = Source(taken.path)
    code = 0 if taken.error is None else taken.error.exit_code
    facts: dict[str, Any] = {"path": taken.path, "format": taken.format, "reason": taken.reason}
    facts["exit_code"] = code
    facts["candidates"] = [_verdict(source, row) for row in registry.rows()]
    facts["candidates"] += [
        {"name": name, "verdict": "broken", "reason": error.what, "suffix": False}
        for name, error in registry.broken().items()
    ]
    return facts


def _verdict(source: Source, row: Row) -> dict[str, Any]:
    """The verdict of one format on one file, with its reason; ``unknown`` if it fails to answer."""
    try:
        verdict, reason = registry.ask(source, row) if row.reads else (NO, "is write only")
        word = registry.VERDICTS[verdict]
    except RaconvertError as error:
        verdict, word, reason = NO, "unknown", error.what
    matches_suffix = registry.by_suffix(source.path, (row,)) is not None
    if verdict != SURE:
        reason += f"; suffix {'matches' if matches_suffix else 'is another'}"
    return {"name": row.name, "verdict": word, "reason": reason, "suffix": matches_suffix}
