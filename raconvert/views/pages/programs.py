"""Programs that read an array without raconvert, true for one file and ready to paste."""

from __future__ import annotations

from math import prod
from re import split

from raconvert.arrays.dtypes import dtype_of, ml_name, needs_swap
from raconvert.declared import Record
from raconvert.files.quoting import QUOTED, c, julia, matlab, path, python, r

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array

# kind and bytes of an element -> its type in Julia, MATLAB and C; `_R` has those of R
_TYPES = {
    ("int", 1): ("Int8", "int8", "int8_t"),
    ("int", 2): ("Int16", "int16", "int16_t"),
    ("int", 4): ("Int32", "int32", "int32_t"),
    ("int", 8): ("Int64", "int64", "int64_t"),
    ("uint", 1): ("UInt8", "uint8", "uint8_t"),
    ("uint", 2): ("UInt16", "uint16", "uint16_t"),
    ("uint", 4): ("UInt32", "uint32", "uint32_t"),
    ("uint", 8): ("UInt64", "uint64", "uint64_t"),
    ("float", 2): ("Float16", "uint16", "uint16_t"),
    ("float", 4): ("Float32", "single", "float"),
    ("float", 8): ("Float64", "double", "double"),
    ("complex", 8): ("ComplexF32", "single", "float complex"),
    ("complex", 16): ("ComplexF64", "double", "double complex"),
    ("bool", 1): ("Bool", "uint8", "uint8_t"),
    ("bfloat", 2): ("UInt16", "uint16", "uint16_t"),
}
_R = {  # readBin's arguments by element type
    ("int", 1): '"integer", N, size = 1',
    ("int", 2): '"integer", N, size = 2',
    ("int", 4): '"integer", N, size = 4',
    ("uint", 1): '"integer", N, size = 1, signed = FALSE',
    ("uint", 2): '"integer", N, size = 2, signed = FALSE',
    ("float", 4): '"double", N, size = 4',
    ("float", 8): '"double", N, size = 8',
    ("complex", 16): '"complex", N',
    ("bool", 1): '"logical", N, size = 1',
}
LANGUAGES = ("Python", "Julia", "MATLAB", "R", "C")


class Stored(Record):
    """The location of elements stored as they are: file, offset, type, axes, order.

    `big`: they are big-endian.
    """

    file: str
    offset: int
    element: Any
    big: bool
    dims: tuple[int, ...]
    index_order: str | None

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes in the order of the indices."""
        return self.dims if self.index_order == "F" else self.dims[::-1]


def stored_of(array: Array, name: str) -> Stored | None:
    """Locate the elements of an array in the file called `name`; None if they are encoded.

    None, too, for arrays that are damaged, empty, or of an odd byte order.
    """
    extent = array.extent
    if extent is None or array.problem is not None or not array.nbytes:
        return None
    if extent.swap != needs_swap(array.element):
        return None
    return Stored(
        name, extent.offset, array.element, extent.swap > 1, array.dims, array.index_order
    )


def julia_type(element: Any) -> str:
    """The type of an element in Julia; bytes for one that Julia lacks."""
    names = _TYPES.get((element.kind, element.nbytes))
    return names[0] if names else f"NTuple{{{element.nbytes},UInt8}}"


def programs(stored: Stored) -> dict[str, str]:
    """A program for each of `LANGUAGES`."""
    makers = (_python, _julia, _matlab, _r, _c)
    return {name: make(stored) for name, make in zip(LANGUAGES, makers, strict=True)}


def filled(templates: dict[str, str], location: str, name: str) -> dict[str, str]:
    """The programs of a plugin (`Plugin.programs`), with the names of the file and the array."""
    words = {"FILE": path(location), "NAME": name, "PATH": f"/{name}"}
    lines = {}
    for language in LANGUAGES:
        if language in templates:
            literals = {word: QUOTED[language](text) for word, text in words.items()}
            parts = split(r"\b(FILE|NAME|PATH)\b", templates[language])
            lines[language] = "".join(literals.get(part, part) for part in parts)
    return lines


def _python(stored: Stored) -> str:
    element = stored.element
    lines = ["import numpy as np"]
    after = ""
    if (name := ml_name(element)) is not None:
        lines.insert(0, "import ml_dtypes")
        width = f"u{element.nbytes}"
        dtype, after = repr((">" if stored.big else "<") + width), f".view(ml_dtypes.{name})"
        if stored.big:
            after = '.astype("<u2")' + after
    else:
        numpy_type = dtype_of(element)
        has_fields = numpy_type.names is not None
        dtype = ascii(numpy_type.descr if has_fields else numpy_type.str)
        if has_fields and "''" in dtype:  # padding, which has no name
            dtype = repr(f"V{element.nbytes}")
    order = ', order="F"' if stored.index_order == "F" and len(stored.dims) > 1 else ""
    lines += [
        f"x = np.fromfile({python(path(stored.file))}, dtype={dtype}, "
        f"count={stored.elements}, offset={stored.offset})",
        f"x = x{after}.reshape({stored.shape}{order})",
    ]
    return "\n".join(lines)


def _dims(stored: Stored, least: int = 0) -> str:
    """The lengths of the axes, fastest first; at least so many, the others being 1."""
    dims = [*stored.dims, *[1] * (least - len(stored.dims))]
    return ", ".join(map(str, dims))


def _julia(stored: Stored) -> str:
    kind = julia_type(stored.element)
    rank = f",{len(stored.dims)}"
    size = f"(undef, {_dims(stored)})" if stored.dims else "(undef)"
    lines = [
        f"x = open({julia(path(stored.file))}) do io",
        f"    seek(io, {stored.offset})",
        f"    read!(io, Array{{{kind}{rank}}}{size})",
        "end",
    ]
    if stored.element.kind == "complex" and stored.big:
        lines.append("x = complex.(ntoh.(real.(x)), ntoh.(imag.(x)))")
    elif stored.big:
        lines.append("x = ntoh.(x)")
    if stored.element.kind == "bfloat":
        lines.append("x = reinterpret.(Float32, UInt32.(x) .<< 16)  # the values of bfloat16")
    return "\n".join(lines)


def _matlab(stored: Stored) -> str:
    element = stored.element
    _, kind, _ = _TYPES.get((element.kind, element.nbytes), ("", "uint8", ""))
    count, dims = stored.elements, _dims(stored, 2).replace(",", "")
    lines = [
        f"f = fopen({matlab(path(stored.file))}, 'r', '{'ieee-be' if stored.big else 'ieee-le'}');",
        f"fseek(f, {stored.offset}, 'bof');",
    ]
    if element.kind == "user":
        count *= element.nbytes
        dims = f"{element.nbytes} {dims}"
    if element.kind == "complex":
        lines.append(f"x = fread(f, {2 * count}, '{kind}=>{kind}');")
        lines.append("x = complex(x(1:2:end), x(2:2:end));")
    else:
        lines.append(f"x = fread(f, {count}, '{kind}=>{kind}');")
    lines.append("fclose(f);")
    made = f"reshape(x, [{dims}])"
    if element.kind == "bool":
        made = f"logical({made})"
    lines.append(f"x = {made};")
    if (element.kind, element.nbytes) == ("float", 2):
        lines.append("x = half.typecast(x);  % Fixed-Point Designer")
    elif element.kind == "bfloat":
        lines.append("x = reshape(typecast(bitshift(uint32(x(:)), 16), 'single'), size(x));")
    elif element.kind == "user":
        lines.append(f"% {element.nbytes} bytes for each element, as they are")
    return "\n".join(lines)


def _r(stored: Stored) -> str:
    element = stored.element
    key = element.kind, element.nbytes
    end = f'endian = "{"big" if stored.big else "little"}"'
    lines = [
        f'f <- file({r(path(stored.file))}, "rb")',
        f"invisible(seek(f, {stored.offset}))",
    ]
    dims = _dims(stored, 1)
    read = _R.get(key)
    if read is not None:
        lines.append(f"x <- readBin(f, {read.replace('N', str(stored.elements), 1)}, {end})")
    elif key == ("uint", 4):
        lines.append(f'x <- readBin(f, "integer", {2 * stored.elements}, size = 2, signed = FALSE,')
        first, second = ("FALSE, TRUE", "TRUE, FALSE")[:: 1 if stored.big else -1]
        lines.append(f"             {end})")
        lines.append(f"x <- x[c({first})] + 65536 * x[c({second})]")
    elif key == ("complex", 8):
        lines.append(f'x <- readBin(f, "double", {2 * stored.elements}, size = 4, {end})')
        lines.append("x <- complex(real = x[c(TRUE, FALSE)], imaginary = x[c(FALSE, TRUE)])")
    else:
        lines.append(f'x <- readBin(f, "raw", {stored.elements * element.nbytes})')
        lines.append(f"# R has no such numbers: {element.nbytes} bytes for each element")
        dims = f"{element.nbytes}, {dims}"
    lines += ["close(f)", f"x <- array(x, dim = c({dims}))"]
    return "\n".join(lines)


def _c(stored: Stored) -> str:
    element = stored.element
    _, _, kind = _TYPES.get((element.kind, element.nbytes), ("", "", ""))
    width = needs_swap(element._replace(order=">")) if stored.big else 1
    heads = ["#include <complex.h>"] if element.kind == "complex" else []
    heads += ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>"]
    if not kind:
        kind = "element"
        heads += ["", f"typedef struct {{ unsigned char bytes[{element.nbytes}]; }} element;"]
    lines = [
        "#define _FILE_OFFSET_BITS 64",
        *heads,
        "",
        "int main(void) {",
        f"    size_t n = {stored.elements};  /* {_index(stored)} */",
        f"    {kind} *x = malloc(n * sizeof *x);",
        f'    FILE *f = fopen({c(path(stored.file))}, "rb");',
        f"    if (!x || !f || fseeko(f, {stored.offset}, SEEK_SET)",
        "        || fread(x, sizeof *x, n, f) != n)",
        "        return 1;",
    ]
    if width > 1:
        lines += [
            "    unsigned char *b = (unsigned char *)x;",
            f"    for (size_t i = 0; i < n * sizeof *x; i += {width})  /* big-endian */",
            f"        for (size_t j = 0; j < {width // 2}; j++) {{",
            f"            unsigned char t = b[i + j]; b[i + j] = b[i + {width - 1} - j];",
            f"            b[i + {width - 1} - j] = t;",
            "        }",
        ]
    return "\n".join([*lines, "    return 0;", "}"])


def _index(stored: Stored) -> str:
    """Return the formula in C for the index of an element."""
    if not stored.dims:
        return "one number"
    names = "ijklmnopqrstuvw"[: len(stored.dims)]
    if len(names) < len(stored.dims):
        return f"{len(stored.dims)} axes, the fastest first: {_dims(stored)}"
    by_speed = names if stored.index_order == "F" else names[::-1]
    text = by_speed[-1]
    for name, length in zip(by_speed[-2::-1], stored.dims[-2::-1], strict=True):
        text = f"({text}) * {length} + {name}" if " " in text else f"{text} * {length} + {name}"
    return f"x[{text}] is element [{', '.join(names)}]"
