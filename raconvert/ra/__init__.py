"""RA (RawArray) files, directly: the Python library for the format.

`read` and `write` are the fast path: one open, one read, one close; no sidecar is looked for.
`raconvert.read` and `raconvert.open` also honour sidecars. All of them hand out arrays in C order:
the same bytes, the shape being the file's dims reversed, as the README of the format says for
Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers, what `_PUBLIC` says at run time
    from raconvert.ra.description import query as query
    from raconvert.ra.fast import read as read
    from raconvert.ra.fast import write as write
    from raconvert.ra.header import Header as Header

_PUBLIC = {
    "Header": "raconvert.ra.header",
    "query": "raconvert.ra.description",
    "read": "raconvert.ra.fast",
    "write": "raconvert.ra.fast",
}
__all__ = sorted(_PUBLIC)  # noqa: PLE0605 - the table is the one place for public names


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that header work needs no numpy."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'raconvert.ra' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, without those that are imported for internal use."""
    return sorted([*_PUBLIC, "__doc__"])
