"""Plan of an NPZ file: whether the arrays fit, and the file itself."""

from __future__ import annotations

from raconvert.files import zips
from raconvert.files.names import members_of
from raconvert.files.paths import write_failed
from raconvert.files.zips import Archive
from raconvert.files.zipsplice import spliced
from raconvert.plugin import (
    Array,
    Bundle,
    Plan,
    Source,
    array_exists,
    equivalent,
    file_fits,
    not_an_array,
    refused,
)

from ..npy.header import header_of
from ..npy.plan import array_fits
from .tables import COMMENT, LONGEST_NAME, METHODS, SUFFIX, array_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.zipsplice import Put
    from raconvert.plugin import Target

__all__ = ["add", "plan"]


def plan(bundle: Bundle, *, compress: str = "none") -> Plan:
    """Plan one NPY member per array; names that NumPy cannot distinguish do not fit."""
    fits = []
    names: set[str] = set()
    keys = [member.removesuffix(SUFFIX) for member in members_of(bundle.names, SUFFIX)]
    taken = {*bundle.names, *keys}
    for array, key in zip(bundle.arrays, keys, strict=True):
        reason = _name_problem(array.name, key, names, taken)
        if reason:
            fits.append(refused(array.name, "names", reason))
        elif key != array.name:
            reason = (
                f"unpacking it would write elsewhere; its member is '{key}', and keeps the name"
            )
            fits.append(equivalent(array.name, "names", reason))
        fits += array_fits(array)
        names.add(array.name)
    return Plan(
        [*fits, *file_fits(bundle, "NPZ")],
        lambda target: _write(bundle, keys, target, METHODS[compress]),
        names=bundle.names,
    )


def add(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, compress: str = "none"
) -> Plan:
    """Plan an archive with its members copied unchanged, and one per added array; see `Add`."""
    members = zips.members(source)
    files = {array_name(member): member.filename for member in members}
    others = [file for name, file in files.items() if name not in bundle.names]
    keys = [
        member.removesuffix(SUFFIX) for member in members_of(bundle.names, SUFFIX, reserved=others)
    ]
    fits = plan(bundle, compress=compress).fits
    for name in bundle.names:
        _check_free(name, files, held, source.path, overwrite=overwrite)
        alike = {name + SUFFIX, name.removesuffix(SUFFIX)} - {name}
        fits += [
            refused(name, "names", f"numpy.load cannot tell it from '{other}' in one archive")
            for other in alike & files.keys()
        ]

    def write(target: Target) -> None:
        def put(array: Array, key: str) -> Put:
            return lambda archive: _write_member(archive, array, key, METHODS[compress], target)

        puts: dict[str, Put | None] = {}
        added: list[Put] = []
        for array, key in zip(bundle.arrays, keys, strict=True):
            if array.name in files:
                puts[files[array.name]] = put(array, key)
            else:
                added.append(put(array, key))
        try:
            spliced(source, target.open(), members, puts, added)
        except OSError as error:
            raise write_failed(target.path, error) from error

    return Plan(fits, write, names=bundle.names)


def _check_free(
    name: str, members: dict[str, str], held: Bundle, path: str, *, overwrite: bool
) -> None:
    """Refuse (`TargetExists`) the name of a member, unless it is an array to be replaced."""
    if name in held.names and not overwrite:
        raise array_exists(path, name)
    if name in members and name not in held.names:
        raise not_an_array(path, name, "a member without an array")


def _name_problem(name: str, key: str, before: set[str], taken: set[str]) -> str | None:
    """Return the reason why a name cannot be used, or None.

    `key` is the name of its member, `before` are the names of earlier arrays, `taken` has the names
    of all arrays and members.
    """
    if not name:
        return "an empty name"
    if name in before:
        return "the name is used twice"
    if not taken.isdisjoint((name + SUFFIX, key + SUFFIX)):
        return f"numpy.load cannot tell it from '{name}{SUFFIX}' in one archive"
    if "\0" in name:
        return "ZIP ends a name at a NUL"
    try:
        nbytes = max(len(name.encode()), len(key.encode()))
    except UnicodeEncodeError:
        return "the name is not valid text"
    return f"the name is above {LONGEST_NAME} bytes" if nbytes > LONGEST_NAME else None


def _write(bundle: Bundle, keys: list[str], target: Target, method: int) -> None:
    """Write the arrays of the bundle in order, block by block, little-endian."""
    try:
        archive = Archive(target.open())
        for array, key in zip(bundle.arrays, keys, strict=True):
            _write_member(archive, array, key, method, target)
        archive.finish()
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_member(archive: Archive, array: Array, key: str, method: int, target: Target) -> None:
    """Write an array as a member; its comment has the name of the array if that differs."""
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks

    def pieces() -> Iterator[Any]:
        yield header_of(array)
        for block in target.counted(blocks(array, block_bytes(target.max_memory))):
            yield block.reshape(-1).view(np.uint8).data

    comment = b"" if key == array.name else COMMENT + array.name.encode()
    archive.add(key + SUFFIX, pieces(), method, comment=comment)
