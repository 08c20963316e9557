"""Checks of empty arrays whose other axes are so long that a header cannot hold them."""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import Element, dtype_of, element
from raconvert.errors import UsageError, WouldLose
from raconvert.testing.kit import read, require_none, scratch, suffix_of, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    import numpy as np

# Shapes near the limits of 16, 31, 32, 62, 63 and 64 bits, which one axis, the product of all, or
# the bytes that numpy counts for an empty array reach.
EMPTY = (
    (2**16, 0),
    (2**31 - 1, 0),
    (0, 2**32),
    (0, 2**30, 2**30),
    (2**40, 2**40, 0),
    (0, 2**59),
    (2**62, 0, 1),
    (0, 2**64 - 1),
    (*(0,) * 63, 2),
)
TYPES = (element("float", 4), element("float", 8), element("bool", 1), element("complex", 16))


class _Nothing:
    """Array source of a shape that no ndarray has, and without an element."""

    def __init__(self, kind: Element, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = dtype_of(kind)

    def stream(self, _: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield nothing."""
        return iter(())

    def __getitem__(self, key: object) -> Any:
        raise AssertionError("an element of an empty array was asked for")


def check_empty_shapes(plugin: ModuleType) -> None:
    """An empty array with huge axes is refused by the plan, or written so that it reads back.

    Raises `AssertionError` that lists what is wrong.
    """
    if not plugin.FORMAT.writes:
        return
    choices = [
        {option.name: choice}
        for option in plugin.FORMAT.write_options
        for choice in (option.choices if isinstance(option.choices, tuple) else ())
    ]
    problems = []
    with scratch() as folder:
        path = folder / f"x{suffix_of(plugin)}"
        for options in [{}, *choices]:
            for kind in TYPES:
                for shape in EMPTY:
                    problem = _problem(plugin, path, kind, shape, options)
                    if problem:
                        problems.append(
                            f"{kind.kind}{8 * kind.nbytes} {shape} {options}: {problem}"
                        )
    require_none(problems, "empty arrays are mishandled")


def _problem(
    plugin: ModuleType, path: Path, kind: Element, shape: tuple[int, ...], options: dict[str, Any]
) -> str | None:
    """Write and read an empty array; return a description of the fault, or None."""
    array = Array(kind, shape[::-1], name="x", index_order="C", data=_Nothing(kind, shape))
    try:
        report = write(plugin, [array], path, overwrite=True, out_opts=options)
        if any(fit.property == "shape" for fit in report.equivalent):
            shape = ()  # the plan reports another shape
        with read(plugin, path) as bundle:
            shape_read = bundle.arrays[0].shape
    except (UsageError, WouldLose):
        return None
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        return f"raises {error!r}, and nothing was refused"
    return f"came back as {shape_read}" if shape and shape_read != shape else None
