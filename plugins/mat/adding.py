"""A MAT file with variables more, or other ones: all else in it is copied as it lies.

In versions 5 to 7 variables are elements one behind the other, of which each has its length; the
data of MATLAB's classes is an element too, whose offset is in the header, and which stays the last
one. Version 7.3 is HDF5 (`write73`).
"""

from __future__ import annotations

from struct import pack_into

from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.files.copy import copy_extent, write_all
from raconvert.plugin import Plan, array_exists, not_an_array

from .contents import Contents
from .header import HEADER_BYTES
from .level5 import lying
from .reader import level_of
from .tables import MI_COMPRESSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

    from raconvert.plugin import Bundle, Source, Target

    from .level5 import Lying

DEFAULT_LEVEL = 3  # as MATLAB itself compresses
_SUBSYSTEM = 116  # byte of the header with the offset of the data of classes, as uint64


def plan_added(
    bundle: Bundle, source: Source, present: Bundle, *, overwrite: bool, version: str, compress: str
) -> Plan:
    """Plan a copy of a file with the arrays as variables, in the version of the file.

    `present` are the arrays of the file. Raises `Unsupported` for version 4 and for big-endian
    files, `UsageError` for another version than that of the file.
    """
    level = level_of(source)
    if level == "4" or level is None:
        raise Unsupported(
            "is a MAT file of version 4, which is not written",
            path=source.path,
            remedy="convert it to version 6, 7 or 7.3 first",
        )
    if (level == "7.3") != (version == "7.3") and version != "6":
        raise UsageError(
            f"the file is of version {level}, and a variable cannot be added in version {version}",
            path=source.path,
        )
    contents = Contents(bundle, "7.3" if level == "7.3" else version)
    if level == "7.3":
        from .write73 import names_in, write

        names = names_in(source)
        _check_names(contents, names, present, source.path, overwrite=overwrite)
        number = None if compress in ("auto", "none") else int(compress)
        return Plan(
            contents.fits,
            lambda target: write(contents, target, number, source),
            names=contents.names,
            notes=_space_notes(contents, names),
        )
    header, elements = lying(source)
    if header.order == ">":
        raise Unsupported(
            "is a big-endian MAT file, and variables are written little-endian",
            path=source.path,
            remedy="convert all of it to a new file first",
        )
    names = [element.name for element in elements if element.name]
    _check_names(contents, names, present, source.path, overwrite=overwrite)
    is_compressed = version == "7" or any(each.code == MI_COMPRESSED for each in elements)
    number = DEFAULT_LEVEL if is_compressed else None
    if compress != "auto":
        number = None if compress == "none" else int(compress)
    return Plan(
        contents.fits,
        lambda target: _write(contents, target, number, source, header.subsystem, elements),
        names=contents.names,
    )


def _space_notes(contents: Contents, names: list[str]) -> list[str]:
    """A note for each variable of the file that is replaced, since its room is not used again."""
    old = [name for name, _ in contents.variables if name in names]
    return [f"the room of the old '{name}' stays in the file, unused" for name in old]


def _check_names(
    contents: Contents, names: list[str], present: Bundle, path: str, *, overwrite: bool
) -> None:
    """Refuse (`TargetExists`) the names of variables that are not arrays to be replaced."""
    for name, _ in contents.variables:
        if name not in names:
            continue
        if name not in present.names or name not in contents.names:
            raise not_an_array(path, name, "a variable that is not one array")
        if names.count(name) > 1:
            raise Unsupported(
                f"has more than one variable '{name}', so that it is open which one to replace",
                path=path,
                remedy="convert all of it to a new file first",
            )
        if not overwrite:
            raise array_exists(path, name)


def _write(
    contents: Contents, target: Target, level: int | None, source: Source, subsystem: int,
    elements: list[Lying],
) -> None:  # fmt: skip
    """Copy the file, with new variables instead of those of the same name, or behind the others."""
    from .writer import write_variable

    new = dict(contents.variables)
    file = target.open()
    head = bytearray(source.read_exact(0, HEADER_BYTES, "the MAT header"))
    write_all(file, [bytes(head)])
    done = HEADER_BYTES

    def copy_up_to(end: int) -> None:
        nonlocal done
        if end > done:
            copy_extent(b"", source.extent(done, end - done), file)
        done = end

    moved = 0
    for element in elements:
        name = element.name
        if element.begin == subsystem:
            copy_up_to(element.begin)
            _write_rest(file, target, contents, level, new)
            moved = file.tell()
        elif name in new:
            copy_up_to(element.begin)
            done = element.end
            write_variable(file, target, name, new.pop(name), contents, level)
    copy_up_to(max((element.end for element in elements), default=HEADER_BYTES))
    _write_rest(file, target, contents, level, new)
    copy_up_to(source.size)
    if moved:
        pack_into("<Q", head, _SUBSYSTEM, moved)
        offset = file.tell()
        file.seek(0)
        write_all(file, [bytes(head)])
        file.seek(offset)
    elif subsystem and any(each.end > subsystem > each.begin for each in elements):
        raise Corrupt("the data of classes does not begin where the header says", path=source.path)


def _write_rest(
    file: FileIO, target: Target, contents: Contents, level: int | None, new: dict
) -> None:
    """Write the new variables that did not replace any."""
    from .writer import write_variable

    for name in [*new]:
        write_variable(file, target, name, new.pop(name), contents, level)
