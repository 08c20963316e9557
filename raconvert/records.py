"""`Record`: `typing.NamedTuple` without the price of importing `typing` at start-up.

A subclass declares its fields with their types, and gets methods and defaults like a named tuple's;
type checkers see `typing.NamedTuple` itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from collections import namedtuple

    class _Maker(type):
        """Makes a named tuple out of the fields of a class body."""

        def __new__(cls, name, bases, body):
            """Return the named tuple; `Record` itself, which has no bases, stays what it is."""
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = list(body["__annotations__"])
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in ("__module__", "__qualname__", "__annotations__"):
                    setattr(made, key, value)
            made.__annotations__ = body["__annotations__"]
            return made

    class Record(metaclass=_Maker):
        """The base of classes whose fields are declared with their types."""


__all__ = ["Record"]
