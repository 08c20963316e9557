"""Values that are given for an array: what numpy makes of them, and whether they fit it."""

from __future__ import annotations

from raconvert.arrays.dtypes import element_of, flattened, type_name
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from raconvert.arrays.dtypes import Element


def fields_of(
    values: Any, index_order: str | None, like: Any
) -> tuple[Element, tuple[int, ...], Any]:
    """The element, dims and data of values in logical order, of the shape of `like` if given."""
    found = values_of(values)
    if like is not None and found.shape != like.shape:
        raise _other_shape(like.name, like.shape, found.shape)
    column_major = index_order == "F"
    dims = found.shape if column_major else found.shape[::-1]
    return element_of(found.dtype), dims, found.T if column_major else found


def _other_shape(name: str, shape: tuple[int, ...], got: tuple[int, ...]) -> UsageError:
    return UsageError(
        f"the values for array '{name}' have another shape",
        expected=shape,
        got=got,
        remedy="give them in the order of `shape`, as numpy.asarray(array) does",
    )


def take_values(fields: dict[str, Any], changes: dict[str, Any]) -> None:
    """Put values, as their index order sees them, into the fields of an array."""
    values = values_of(fields["data"])
    column_major = fields["index_order"] == "F"
    shape = tuple(fields["dims"] if column_major else fields["dims"][::-1])
    if values.shape != shape:
        raise _other_shape(fields["name"], shape, values.shape)
    found = element_of(values.dtype)
    if "element" not in changes:
        fields["element"] = found
    elif found.kind != fields["element"].kind or found.nbytes != fields["element"].nbytes:
        raise UsageError(
            f"the values for array '{fields['name']}' have another type",
            expected=type_name(fields["element"]),
            got=type_name(found),
        )
    fields["data"] = values.T if column_major else values
    fields["extent"], fields["storage"] = None, {}


def values_of(values: Any) -> np.ndarray[Any, Any]:
    """The ndarray that numpy makes of values; `UsageError` where it makes none, and for a mask.

    No format here keeps a mask. Lists of unequal lengths are not an array.
    """
    import numpy as np

    if type(values).__module__.partition(".")[0] == "numpy" and hasattr(values, "mask"):
        raise UsageError("a masked array would lose its mask", remedy="fill it first: a.filled()")
    try:
        found = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"what is given is not an array: {error}", expected="what numpy makes one of"
        ) from error
    return found if found.dtype.names is None else flattened(found)
