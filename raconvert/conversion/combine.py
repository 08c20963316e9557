"""Several sources as one bundle: a stack, one after the other along an axis, or named arrays."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.reinterpret import Reshaped
from raconvert.conversion.inputs import gather
from raconvert.conversion.options import Settings
from raconvert.conversion.outputs import stem_of
from raconvert.conversion.read import Opened, find, open_found, open_spec, open_together
from raconvert.conversion.unreadable import without
from raconvert.errors import Corrupt, UsageError, counted, listed
from raconvert.files.paths import folders_of
from raconvert.plugin import equivalent, first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.inputs import Gathered
    from raconvert.plugin import Fit


GATHERING = (
    "sort", "recursive", "include", "exclude", "files_from", "null_separated"
)  # fmt: skip


def open_sources(specs: Sequence[str], **reading: Any) -> Bundle:
    """Open sources as `convert` would: one file as it is, several files stacked.

    `reading` as for `open_bundle`, and those of `raconvert.conversion.inputs.gather`.
    """
    gathering = {name: reading.pop(name) for name in GATHERING if name in reading}
    settings = Settings(**reading)
    if len(specs) == 1 and os.path.isfile(specs[0]) and not gathering:
        return open_spec(specs[0], settings).bundle
    gathered = gather(specs, **gathering)
    if not gathered.many:
        return open_spec(gathered.paths[0], settings).bundle
    together = open_together(gathered.paths, settings)
    return (together or open_stack(gathered, settings)).bundle


# Stacks ----------------------------------------------------------------------------------------


def stack_name(paths: Sequence[str], target: str = "") -> str:
    """Return the name of a stack: that of the folder of its files, or the stem of its target.

    The first of these that is a name in every format (letters, digits and ``_``), else the first
    one; the stem of the first file if there is neither. Raises nothing.
    """
    folders = [*folders_of(paths)]
    common = folders[0] if len(folders) == 1 else _common(folders)
    folder = os.path.basename(common.rstrip("/" + os.sep))
    names = [] if folder in ("", os.curdir, os.pardir) or folder[-1] == ":" else [folder]
    names += [stem_of(target)] if target not in ("", "-") else []
    usual = [name for name in names if name.isascii() and name.isidentifier()]
    return [*usual, *names, stem_of(paths[0])][0]


def _common(folders: list[str]) -> str:
    """Return the folder above all of them; empty if they share none."""
    try:
        return os.path.commonpath(folders)
    except ValueError:  # on several drives, or some from the root
        return ""


def open_stack(gathered: Gathered, settings: Settings, target: str = "") -> Opened:
    """Return the files as one lazy array on a new first axis, named by `stack_name`.

    Formats that can read many small files at once (`read_stack`) do; the others go through the
    general stack, file by file.
    """
    paths = gathered.paths
    first = find(paths[0], settings)
    row = first.row
    read_stack = registry.load(row).read_stack
    joined = isinstance(settings.stack, tuple)
    used = set(paths)
    missing: dict[str, str] = {}
    # A quick stack has the metadata of its items only at its end; these options need it before.
    needs_metadata = settings.axes or settings.meta == "trailer" or joined or settings.arrays
    may_be_quick = not (needs_metadata or settings.unscale)  # each file may have its own slope
    if read_stack is not None and may_be_quick and not gathered.has_sidecars():
        first.source.close()
        options = registry.check_options(row, "read", settings.in_opts or {})
        array = read_stack(paths, max_memory=settings.max_memory, **options)
    else:
        from raconvert.arrays.stack import stack

        notes: dict[str, None] = {}  # as a set in order, since every file is opened twice

        def one_array(path: str, opened: Opened | None = None) -> Opened:
            opened = _with_one_array(
                opened or open_spec(path, settings), path, settings, row, notes
            )
            used.update(opened.used)
            for companions in opened.left_behind.values():
                missing.update(companions)
            return opened

        opened = one_array(paths[0], open_found(first, settings))
        array = stack(paths, opened, one_array, settings.max_memory)
        array.data.notes.extend(_first_notes(notes))
    if settings.jobs and hasattr(array.source, "jobs"):
        array.source.jobs = settings.jobs
    if hasattr(array.source, "common"):
        array.meta = array.meta.replace(later=array.source)
    array.name = stack_name(paths, target)
    bundle = Bundle([array], notes=getattr(array.source, "notes", []))
    bundle.path, bundle.format = paths[0], row.name
    stacked = Opened(bundle, used, {}, first.reason)  # the stack itself checks for changed files
    stacked.left_behind = {array.name: missing} if missing else {}
    return stacked


def refuse_other_format(error: Corrupt, paths: Sequence[str], settings: Settings) -> None:
    """Refuse (`UsageError`) a stack if a file seemed damaged because it has another format.

    The quick stacks read all files in the format of the first one.
    """
    if error.path is None or error.path not in paths or settings.from_ is not None:
        return
    first, damaged = (find(path, settings) for path in (paths[0], error.path))
    for file in (first, damaged):
        file.source.close()
    if damaged.row.name != first.row.name:
        raise _other_format(damaged.source.path, first.row, damaged.row) from error


def _other_format(path: str, row: Row, other: Row) -> UsageError:
    return UsageError(
        "files to stack are in different formats, and a stack needs one format",
        path=path,
        expected=row.title,
        got=other.title,
        remedy="convert each on its own with `--each`",
    )


def _first_notes(notes: dict[str, None]) -> list[str]:
    """Return the notes; of five or more only three, and the number of the others."""
    listed_notes = list(notes)
    if len(listed_notes) < 5:
        return listed_notes
    return [*listed_notes[:3], f"{len(listed_notes) - 3} more notes on single files"]


def _with_one_array(
    opened: Opened, path: str, settings: Settings, row: Row, notes: dict[str, None]
) -> Opened:
    """Return a file as an item of a stack: checked by `_only_array`, or closed."""
    try:
        opened.bundle.arrays = [_only_array(opened.bundle, path, settings, row, notes)]
    except BaseException:
        opened.bundle.close()
        raise
    return opened


def _only_array(
    bundle: Bundle, path: str, settings: Settings, row: Row, notes: dict[str, None]
) -> Array:
    """Return the one array of a file with the attributes of the file; `notes` gets its notes.

    Raises `UsageError` for another format than that of the first file, and for several arrays.
    """
    notes.update(dict.fromkeys(f"'{path}': {note}" for note in bundle.notes))
    if bundle.format != row.name:
        raise _other_format(path, row, registry.by_name(bundle.format))
    whole, lost = without(bundle, settings)
    notes.update(dict.fromkeys(f"'{path}': array '{fit.array}' {fit.reason}" for fit in lost))
    if len(whole.arrays) != 1:
        raise UsageError(
            f"has {counted(len(whole.arrays), 'array')}; a stack needs one of each file",
            path=path,
            remedy=f"choose with `--array NAME`: {listed(whole.names)}",
        )
    array, renamed = _with_attributes(whole.arrays[0], bundle)
    if renamed:
        notes[f"'{path}': {_RENAMED}: {first_of(renamed)}"] = None
    return array


def concatenated(array: Array, axis: int, max_memory: int) -> Array:
    """Join the items of a stack along an existing axis instead of a new one."""
    from raconvert.arrays.transpose import permuted

    rank = array.ndim - 1
    if not -rank <= axis < rank:
        what = f"`--concat {axis}` is not an axis of the items"
        raise UsageError(what, expected=f"0 to {rank - 1}")
    axis %= rank
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank + 1))
    moved = permuted(array, order, max_memory) if axis else array
    shape = moved.shape
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    meta = moved.meta.replace(items=None)  # there are no items any more
    meta = meta.without_axis(axis, moved.ndim)  # the one that the stack added
    if len(meta.axes) == rank:  # labels were of the indices of one item
        axes = [*meta.axes[:axis], meta.axes[axis].replace(labels=None), *meta.axes[axis + 1 :]]
        meta = meta.replace(axes=axes)
    return moved.replace(dims=joined[::-1], data=Reshaped(moved, joined), meta=meta)


# One named array each --------------------------------------------------------------------------


OPEN_AT_ONCE = 32  # files: each may keep a descriptor, and its library a cache
_RENAMED = "attributes of one name, of the file, its groups and its array, are kept as"


def open_named(gathered: Gathered, settings: Settings) -> tuple[Opened, list[Fit]]:
    """Open files as one array each, named after the stems; return the changes by that, too."""
    together = Opened(Bundle([]), set(), {})
    try:
        return together, _add_named(together, gathered.paths, settings)
    except BaseException:
        together.bundle.close()
        raise


def _add_named(together: Opened, paths: list[str], settings: Settings) -> list[Fit]:
    """Add the arrays of the files; return the changes and losses of their metadata."""
    bundle = together.bundle
    file_of: dict[str, str] = {}  # of each array, by its name
    renamed: list[str] = []
    lost: list[str] = []
    before: list[tuple[str, str]] = []  # the file of each array, and its name in that
    for number, path in enumerate(paths):
        opened = open_spec(path, settings)
        one = opened.bundle
        if number >= OPEN_AT_ONCE:
            from raconvert.conversion.reopened import closed

            one.arrays = closed(opened, path, settings)
        bundle.add_notes_of(one)
        together.used |= opened.used
        together.seen |= opened.seen
        stem = stem_of(path)
        alone, chosen = len(one.arrays) == 1, one.path != path  # FILE#NAME
        for array in one.arrays:
            name = array.name if chosen else stem if alone else f"{stem}/{array.name}"
            if name in file_of:
                raise UsageError(
                    f"two sources would both become array '{name}'",
                    path=path,
                    expected="distinct file stems",
                    got=f"'{file_of[name]}' and this one",
                )
            file_of[name] = path
            bundle.arrays.append(array.replace(name=name))
            before.append((path, array.name))
            together.bare |= {name} if array.name in opened.bare else set()
            if array.name in opened.left_behind:
                together.left_behind[name] = opened.left_behind[array.name]
        if alone:
            named, new_names = _with_attributes(one.arrays[0], one)
            bundle.arrays[-1] = named.replace(name=bundle.arrays[-1].name)
            empty = [group for group, own in one.explicit_groups().items() if not own]
            lost += [f"group '{group}' of '{path}'" for group in empty]
        else:
            new_names = _keep_metadata_of(bundle, one, stem, chosen=chosen)
        renamed += [f"'{attribute}' of '{path}'" for attribute in new_names]
        if alone and not chosen:  # the stem replaces every name
            lost_aliases = [*one.aliases]
        else:
            lost_aliases = _keep_aliases(bundle, one, "" if chosen else f"{stem}/")
        lost += [f"name '{alias}' of '{path}'" for alias in lost_aliases]
    for alias in [alias for alias in bundle.aliases if alias in file_of]:
        lost.append(f"name '{alias}' of '{bundle.aliases.pop(alias)}'")
    bundle.arrays = _following(bundle.arrays, before)
    bundle.path = paths[0]
    changes = ((_RENAMED, renamed), ("one file of several has no place for", lost))
    return [
        equivalent("", "metadata", f"{text}: {first_of(names)}") for text, names in changes if names
    ]


def _following(arrays: list[Array], before: list[tuple[str, str]]) -> list[Array]:
    """Return the arrays, with attributes that name others changed to the new names of these."""
    if all(array.name == name for array, (_, name) in zip(arrays, before, strict=True)):
        return arrays
    from raconvert.arrays.interop.conventions import following

    return following(arrays, before)


def _with_attributes(array: Array, bundle: Bundle) -> tuple[Array, list[str]]:
    """Return the one array of a file with the attributes of its groups and of the file, too.

    If several have an attribute of one name, the array's own keeps it, else that of the innermost
    group; the others are named by their group, as ``group/name``, and those of the file ``/name``.
    The new names are returned, too.
    """
    around = [group for group in bundle.groups if f"{array.name}/".startswith(f"{group}/")]
    others = [group for group in bundle.groups if group not in around]
    groups = {group: bundle.groups[group] for group in (*sorted(around)[::-1], *others)}
    groups[""] = bundle.attributes
    if not any(groups.values()):
        return array, []
    attributes, renamed = _joined(array.meta.attributes, groups)
    return array.replace(meta=array.meta.replace(attributes=attributes)), renamed


def _joined(
    attributes: Mapping[str, Any], groups: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Return attributes with those of groups, and the new names of those whose name was taken."""
    joined = dict(attributes)
    renamed = []
    for group, own in groups.items():
        for name, value in own.items():
            title = name
            while title in joined and not _alike(joined[title], value):
                title = f"{group}/{name}" if title == name else f"/{title}"
            if title != name and title not in joined:
                renamed.append(title)
            joined[title] = value
    return joined, renamed


def _alike(a: Any, b: Any) -> bool:
    """True if two values of attributes are the same, their types too: 1 is not True."""
    return repr(a) == repr(b)


def _keep_aliases(bundle: Bundle, part: Bundle, above: str) -> list[str]:
    """Add the aliases of a file to a bundle; return those that are taken by others already.

    `above` is put before the names of its arrays and groups.
    """
    lost = []
    for alias, real in part.aliases.items():
        name = f"{above}{real}".rstrip("/")
        if bundle.aliases.setdefault(above + alias, name) != name:
            lost.append(alias)
    return lost


def _keep_metadata_of(bundle: Bundle, part: Bundle, stem: str, *, chosen: bool) -> list[str]:
    """Add the attributes and groups of one of several files to a bundle, in the group of its stem.

    If arrays are `chosen` by name, groups keep their names, as the arrays do. Returns the new names
    of attributes whose names were taken.
    """
    renamed: list[str] = []
    above = "" if chosen else f"{stem}/"
    groups = {above + group: own for group, own in part.groups.items()}
    if part.attributes:
        groups[stem], renamed = _joined(groups.get(stem, {}), {"": part.attributes})
    for group, own in groups.items():
        if bundle.groups.setdefault(group, own) != own:
            raise UsageError(
                f"two sources have different attributes of group '{group}'",
                path=part.path,
                remedy="convert them one by one, or choose arrays with `--array`",
            )
    return renamed
