"""Files of a tree that go with another one: sidecars, and what headers name."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import RaconvertError
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX
from raconvert.migration.found import Found, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_ASKED = "not asked for"
_MOST = 1000  # files that are opened
_SMALL = 64 << 10  # bytes of a file that has its data elsewhere, at most


def without_partners(root: str, files: list[Found], left_out: list[tuple[str, str]]) -> Tree:
    """Leave out what belongs to other files of the tree, and say to which."""
    # A file without a suffix of ours may be the data of a header beside it.
    odd = {path for path, why in left_out if why != NOT_ASKED} | {f.path for f in files if f.format}
    odd |= {file.path for file in files if file.path.endswith((SUFFIX, ITEMS_SUFFIX))}
    if not odd:
        return Tree(files, left_out)
    owner = dict(_sidecars({file.path for file in files}, odd))
    odd -= owner.keys()
    owner.update(_named(root, [f for f in files if f.path not in owner], odd))
    kept = [file for file in files if file.path not in owner]
    left_out = [(path, why) for path, why in left_out if path not in owner]
    left_out += [(path, f"goes with {file}") for path, file in owner.items()]
    return Tree(kept, left_out)


def _sidecars(there: set[str], odd: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the metadata files among `odd`, and the file that each is of."""
    for path in odd:
        for suffix in (SUFFIX, ITEMS_SUFFIX):
            if path.endswith(suffix) and path.removesuffix(suffix) in there:
                yield path, path.removesuffix(suffix)


def _named(root: str, files: list[Found], odd: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the files among `odd` that are read when another one is, with that.

    Only files are opened that may name one, and not more than `_MOST`: those that share their stem
    with one in the same folder, and small ones of a format that names files. What these are like
    is believed of the rest: where an .nhdr had its .raw, others have theirs.
    """
    stems: dict[str, list[str]] = {}
    for path in odd:
        stems.setdefault(_stem(path), []).append(path)
    above = {folder for path in odd for folder in _folders(path)}
    beside = [file for file in files if _stem(file.path) in stems and _is_single(file)]
    others = [f for f in files if _may_name(f, above) and _stem(f.path) not in stems]
    asked = [*beside, *others][:_MOST]
    sources = {file.path for file in files}  # which nothing but a header takes away
    pairs: set[tuple[str, str]] = set()
    for path, file in _used(root, asked, odd):
        pairs.add((_ending(file), _ending(path)))
        yield path, file
    for one in beside[_MOST:]:
        for path in stems[_stem(one.path)]:
            if path not in sources and (_ending(one.path), _ending(path)) in pairs:
                yield path, one.path


def _used(root: str, asked: list[Found], odd: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the files among `odd` that are read when one of those asked is opened, with that."""

    def used(number: int) -> list[str]:
        with open_spec(os.path.join(root, asked[number].path), Settings()) as opened:
            return sorted(opened.used)

    paths = [os.path.join(root, file.path) for file in asked]
    for file, found in zip(asked, outcomes(paths, Jobs(used), fewest=1), strict=True):
        if isinstance(found, RaconvertError | OSError):
            continue  # it is told when it is its turn
        for path in found:
            below = os.path.relpath(path, root).replace(os.sep, "/")
            if below in odd and below != file.path:
                yield below, file.path


def _stem(path: str) -> str:
    """A path up to the first dot of its name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + name.partition(".")[0]


def _ending(path: str) -> str:
    """All behind the first dot of a name."""
    return path.rpartition("/")[2].partition(".")[2]


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a file is in, up to the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_single(file: Found) -> bool:
    return not (file.format and registry.by_name(file.format).folder)


def _may_name(file: Found, above: set[str]) -> bool:
    """True if a file is one that may name others, and some of them lie in its folder or below."""
    if file.size > _SMALL or file.path.rpartition("/")[0] not in above:
        return False
    row = registry.by_name(file.format) if file.format else registry.by_suffix(file.path)
    return row is not None and row.names_files and not row.folder
