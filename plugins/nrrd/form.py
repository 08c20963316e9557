"""The form in which NRRD holds an array: type, sizes, and what the array `was` then."""

from __future__ import annotations

from collections import namedtuple

from raconvert.arrays.reinterpret import is_void
from raconvert.metadata.roundtrip import difference
from raconvert.plugin import Array, Element, element

from .tables import BLOCK, NAME_OF_TYPE

# What an array is in NRRD: type, bytes of a block (else 0), sizes, whether an axis of two stands
# for the parts of complex numbers, and what makes the array again what it was.
Form = namedtuple("Form", "type block sizes pairs was")


def form_of(array: Array) -> Form:
    """The form in which an array that NRRD can hold is written."""
    kind, nbytes, _, _ = held = array.element
    sizes, pairs = array.dims, kind == "complex"
    if pairs:
        held, sizes = element("float", nbytes // 2), (2, *sizes)
    elif kind == "bool":
        held = element("uint", 1)
    elif kind == "user" and not is_void(held):
        held = Element("user", nbytes, "|")
    block = nbytes if kind == "user" else 0
    name = BLOCK if kind == "user" else NAME_OF_TYPE[held.kind, held.nbytes]
    sizes = sizes or (1,)
    # Only column-major order needs to be told: without any, dims are read as those of C.
    order = None if array.index_order == "F" and array.ndim > 1 else array.index_order
    back = Array(held, sizes, name=array.name, index_order=order)
    return Form(name, block, sizes, pairs, difference(array, array, back))
