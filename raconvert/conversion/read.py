"""One source as a bundle of lazy arrays: detected, read, with its sidecar, chosen arrays only."""

from __future__ import annotations

import os
import stat

from raconvert import registry
from raconvert.conversion.options import Settings
from raconvert.declared import Record
from raconvert.errors import Corrupt, ReadFailed, UsageError, counted, did_you_mean, listed
from raconvert.files.paths import is_in_doubt, is_remote
from raconvert.files.source import HEAD_BYTES, Source
from raconvert.metadata import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.catalogue import Row
    from raconvert.files.source import Identity
    from raconvert.plugin import Plugin


AT_URL = "files at the URL"  # the reason for a folder


class Opened:
    """A source that is open: its arrays, and facts about how it was opened.

    `source` is the file, None for several together; `reason` explains why its format was chosen;
    `used` are the paths of all files that are read for it, `seen` the identities of those that were
    opened (`Source.seen`). `left_behind` maps arrays to their companions (`Metadata.companions`)
    that were not chosen with them, and what is lost without these; `bare` are the names of the
    arrays of an .ra that fixes no index order.
    """

    __slots__ = ("bare", "bundle", "left_behind", "reason", "seen", "source", "used")

    def __init__(
        self, bundle: Bundle, used: set[str], seen: dict[str, Identity], reason: str = ""
    ) -> None:
        self.bundle: Bundle = bundle
        self.used: set[str] = used
        self.seen: dict[str, Identity] = seen
        self.reason: str = reason
        self.source: Source | None = None
        self.left_behind: dict[str, dict[str, str]] = {}
        self.bare: set[str] = set()

    @property
    def array(self) -> Array:
        """The one array."""
        return self.bundle.arrays[0]

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.bundle.close()


class Found(Record):
    """A source whose format is known."""

    source: Source
    name: str | None  # of an array in it
    row: Row
    reason: str


def open_spec(spec: str, settings: Settings) -> Opened:
    """Open one source, ``FILE`` or ``FILE#name``, and apply its sidecar."""
    return open_found(find(spec, settings), settings)


def find(spec: str, settings: Settings) -> Found:
    """Detect the format of a source, ``FILE`` or ``FILE#name``, by its first bytes or its files."""
    path, name = spec, None
    try:
        mode = os.stat(spec).st_mode
    except (OSError, ValueError):
        from raconvert.conversion.inputs import split_spec

        path, name = split_spec(spec)
        mode = stat.S_IFDIR if os.path.isdir(path) else 0
    if "://" in spec:
        path, name, mode = *_located(spec), 0
        path = path.rstrip("/") if registry.names_folder(path) else path
    if is_in_doubt([path]):
        from raconvert.files.unfinished import refuse_unfinished

        refuse_unfinished([path], single=True)
    source = Source(
        path, max_memory=settings.max_memory, trust_external="external" in settings.trust
    )
    return Found(source, name, *_detect(source, settings.from_, folder=stat.S_ISDIR(mode)))


def _located(spec: str) -> tuple[str, str | None]:
    """Return the file, and the array in it or None, that a spec with ``://`` names: often a URL."""
    from raconvert.conversion.inputs import split_spec
    from raconvert.files.remote import located

    return split_spec(located(spec))


def is_native(spec: str) -> bool:
    """True for a file, or ``FILE#NAME``, of a format that native code reads, by its first bytes."""
    path = spec
    if not os.path.lexists(spec):
        from raconvert.conversion.inputs import split_spec

        path = split_spec(spec)[0]
    try:
        if not os.path.isfile(path):  # no pipe is read here, and no device
            return False
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return False
    return registry.begins_native(head)


def open_found(
    detected: Found, settings: Settings, read: Callable[..., Bundle] | None = None
) -> Opened:
    """Open a source whose format is known, and apply its sidecar; choose arrays and parts.

    `read` replaces the function of the plugin.
    """
    source, name, row, reason = detected
    plugin = registry.load(row)
    options = registry.check_options(row, "read", settings.in_opts or {})
    if settings.meta == "ignore" and row.sidecar == "never":
        options["metadata"] = False
    folder = reason == AT_URL if is_remote(source.path) else os.path.isdir(source.path)
    if read is None and folder and plugin.read_together is not None:
        bundle = _read_folder(plugin.read_together, row, source, options)
    else:
        bundle = (read or plugin.read)(source, **options)
    bundle.path, bundle.format = source.path, row.name
    bundle.close_with(source.close)
    source.used.add(source.path)
    if is_remote(source.path) and not (row.folder or folder):
        from raconvert.files.remote.objects_by_ranges import notes_of

        bundle.notes.extend(notes_of(source.path, source.identity))
    opened = Opened(bundle, source.used, source.seen, reason)
    opened.source = source
    try:
        if settings.meta != "ignore" and _has_sidecar(bundle, source, row):
            apply_sidecar(bundle, source, row)
        bundle.check_names(source)
        if settings.verify and not settings.allows("arrays"):  # which leaves out damaged ones
            _check_sums(source, plugin)
        if settings.index_order:
            bundle.arrays = [_indexed(array, settings.index_order) for array in bundle.arrays]
        opened.bare = _bare(bundle.arrays, row)
        if bundle.more and (name is not None or settings.arrays):
            bundle.arrays = [*bundle.arrays, *bundle.more]
        part = _part_in(name, bundle) if name is not None else None
        name = name if part is None else part[0] or None
        patterns = [name] if name is not None else settings.arrays
        if patterns:
            _choose(opened, patterns, source, literal=name is not None)
        _take_scales(bundle, settings)
        bundle.arrays = bundle.arrays if part is None else _parts_of(bundle.arrays, part[1])
    except BaseException:
        bundle.close()
        raise
    return opened


def _choose(opened: Opened, patterns: Sequence[str], source: Source, *, literal: bool) -> None:
    """Keep the arrays of an open source that patterns name, and note what they leave behind."""
    from raconvert.arrays.interop.conventions import left_out, take_calendars

    bundle = opened.bundle
    names, arrays = set(bundle.names), bundle.arrays
    bundle.arrays = select(bundle, patterns, literal=literal)
    opened.left_behind = _left_behind(bundle.arrays, names)
    _keep_of_chosen(bundle)
    take_calendars(bundle.arrays, arrays, source.limits)
    bundle.notes.extend(left_out(bundle.arrays, names))


def _parts_of(arrays: Sequence[Array], key: str) -> list[Array]:
    """Return the part of each array at a key as text."""
    from raconvert.arrays.slicing import part_of

    return [part_of(array, key) for array in arrays]


def _check_sums(source: Source, plugin: Plugin) -> None:
    """Compare the sums in a file with its bytes, if the format has them. Raises `Corrupt`."""
    if plugin.check is not None:
        plugin.check(source)


def _read_folder(
    read_together: Callable[..., Bundle], row: Row, source: Source, options: dict[str, Any]
) -> Bundle:
    """Read the files of a folder, on this machine or at a URL, together as one bundle."""
    from raconvert.conversion.inputs import files_together, urls_together

    together = urls_together if is_remote(source.path) else files_together
    paths, others = together(source.path, row)
    files = [source.at(path) for path in paths]
    source.used.update(paths)
    bundle = read_together(files, folder=source.path, **options)
    if others:
        names = listed([os.path.basename(path) for path in others])
        bundle.notes.append(f"left out {counted(len(others), 'file')} of other formats: {names}")
    return bundle


def open_together(paths: Sequence[str], settings: Settings) -> Opened | None:
    """Open files that are read together as one source; None if their format is another.

    Raises what opening one of them raises.
    """
    suggested = {registry.by_suffix(path) for path in paths} - {None}
    if settings.from_ is None and not all(row.together for row in suggested if row is not None):
        return None
    first = find(paths[0], settings)
    plugin = registry.load(first.row)
    if plugin.read_together is None or os.path.isdir(first.source.path):
        first.source.close()
        return None
    sources = [first.source, *(first.source.at(path) for path in paths[1:])]

    def read(_: Source, **options: Any) -> Bundle:
        return plugin.read_together(sources, folder=None, **options)  # type: ignore[misc]

    first.source.used.update(paths)
    return open_found(first, settings, read)


def _take_scales(bundle: Bundle, settings: Settings) -> None:
    """Convert arrays to physical values with ``--unscale``; else note which are stored scaled."""
    if not settings.unscale and not any(map(_has_attributes, bundle.arrays)):
        return
    if not settings.unscale:
        from raconvert.arrays.scales import refuse_varying, scale_notes

        for array in bundle.arrays:
            if _has_attributes(array):
                refuse_varying(array)
        bundle.notes.extend(scale_notes(bundle.arrays))
        return
    from raconvert.arrays.unscale import all_unscaled

    rounds = settings.allows("precision")
    bundle.arrays, notes = all_unscaled(bundle.arrays, round_values=rounds, decoded=bundle.decoded)
    bundle.notes.extend(notes)
    if not notes:  # elements changed, so that the shortcut must not copy them
        bundle.alike = None


def _has_attributes(array: Array) -> bool:
    """True if an array has metadata in which a scale could be."""
    return bool(array.meta.attributes or array.meta.formats)


def _part_in(name: str, bundle: Bundle) -> tuple[str, str] | None:
    """Return the array and the part that ``NAME[1:, 0]`` names; None for the name of an array."""
    from raconvert.arrays.slicing import split_part

    part = split_part(name)
    return None if part is None or name in bundle or name in bundle.groups else part


def _indexed(array: Array, index_order: str) -> Array:
    """Return the array with this index order, if it has none."""
    return array.listed(index_order) if array.index_order is None else array


def _bare(arrays: list[Array], row: Row) -> set[str]:
    """Return the names of arrays without an index order, in an .ra, whose sidecar could have it.

    Other formats without indices list their axes in the order in which their users count them.
    """
    if row.sidecar == "asked" or row.index_orders:
        return set()
    return {array.name for array in arrays if array.index_order is None}


def _detect(source: Source, name: str | None, *, folder: bool) -> tuple[Row, str]:
    """Return the format of a source and the reason; for folders by the files in them."""
    if folder:
        if name:
            row = registry.by_name(name)
        else:
            row = registry.row_of_folder(source.path) or registry.folder_row()
        if row.together:
            return row, "a folder of its files"
        mark = next((m for m in row.marks if os.path.isfile(os.path.join(source.path, m))), None)
        if not row.folder and mark is None:
            raise UsageError(f"is a folder, no file in format {row.name}", path=source.path)
        return row, f"a folder with {mark or row.marks[0]}"
    if is_remote(source.path):
        return _detect_at_url(source, name)
    detection = registry.detect(source, name)
    return detection.row, detection.reason


def _detect_at_url(source: Source, name: str | None) -> tuple[Row, str]:
    """Return the format of a URL and the reason; folders are recognised by suffix or files."""
    from raconvert.conversion.inputs import row_of_url
    from raconvert.files.remote.listing import is_missing

    if registry.names_folder(source.path) and name is None:
        return registry.target_row(source.path), "suffix of a URL"
    try:
        if name is None:
            _ = source.head  # raises if nothing is at the URL
    except ReadFailed as error:
        row = row_of_url(source.path) if is_missing(error) else None
        if row is None:
            raise
        return row, AT_URL
    detection = registry.detect(source, name)
    return detection.row, detection.reason


def _has_sidecar(bundle: Bundle, source: Source, row: Row) -> bool:
    """True if metadata may lie beside the file, or behind its data."""
    if row.sidecar == "never":
        return False
    behind = row.trailer and any(array.described for array in bundle.arrays)
    if behind or not is_remote(source.path):
        return behind or os.path.exists(source.path + SUFFIX)
    from raconvert.metadata.sidecar import lies_beside

    return lies_beside(source.path)


def apply_sidecar(bundle: Bundle, source: Source, row: Row) -> None:
    """Give the arrays of a file, and the file, the metadata in its sidecar or trailer."""
    from raconvert.metadata import sidecar
    from raconvert.metadata.roundtrip import apply_to_file

    bundle.arrays = [sidecar.read_trailer(array, source) for array in bundle.arrays]
    fields = sidecar.load(source, registry.load(row).data_range)
    if fields is None:
        if (note := sidecar.overlooked(source.path)) is not None:
            bundle.notes.append(note)
        return
    path = sidecar.path_of(source.path)
    source.used |= {path, sidecar.items_path_of(source.path)}
    many = _typed(fields, "arrays", path)
    if "arrays" not in fields and len(bundle.arrays) == 1:
        many = {bundle.arrays[0].name: fields}
    elif fields.get("complete") is True:
        apply_to_file(fields, bundle, path, complete=True)
    complete = fields.get("complete") is True
    described = {
        array.name: _described(array, many.get(array.name), source, path, complete=complete)
        for array in bundle.arrays
    }
    # The sidecar lists arrays in their order before the file was written.
    order = [*many, *(name for name in described if name not in many)]
    bundle.arrays = [described[name] for name in order if name in described]
    if len(set(bundle.names)) < len(bundle.arrays):
        raise Corrupt("metadata gives two arrays one name", path=path)


def _typed(fields: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    """Return a field that must be a mapping, empty if it is missing; `Corrupt` for other types."""
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise Corrupt(f"metadata field '{name}' has the wrong form", path=path)
    return value


def _described(array: Array, fields: Any, source: Source, path: str, *, complete: bool) -> Array:
    """Return an array with its metadata in a sidecar, its items included."""
    if fields is None or array.problem is not None:
        return array
    if not isinstance(fields, dict):
        raise Corrupt(f"metadata of array '{array.name}' has the wrong form", path=path)
    from raconvert.metadata.roundtrip import apply

    array = apply(fields, array, path, source.limits, complete=complete)
    if fields.get("items"):
        from raconvert.metadata.sidecar import items_reader

        items = items_reader(source, array, fields.get("items_file"))
        array.meta = array.meta.replace(items=items)
    return array


def select(bundle: Bundle, patterns: Sequence[str], *, literal: bool = False) -> list[Array]:
    """Return the arrays of these names, groups or globs, in the bundle's order.

    A ``/`` in front is optional; `literal` names are not globs. An alias stands for its array, or
    for all arrays in its group. Raises `UsageError` for a pattern without an array.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        names = _named(bundle, pattern, literal)
        if not names:
            raise _no_array(bundle, pattern)
        chosen |= names
    return [array for array in bundle.arrays if array.name in chosen]


def _left_behind(chosen: list[Array], names: set[str]) -> dict[str, dict[str, str]]:
    """Return the companions that exist but are not chosen, for each chosen array with some."""
    chosen_names = {array.name for array in chosen}
    missing_by_name = {array.name: _missing(array, names, chosen_names) for array in chosen}
    return {name: missing for name, missing in missing_by_name.items() if missing}


def _missing(array: Array, names: set[str], chosen: set[str]) -> dict[str, str]:
    """Return the companions of an array that exist but are not chosen, and the loss without each.

    The array may have been moved into groups since its companions were recorded; then they are
    searched in its group first, and in those around it.
    """
    missing = {}
    for name, loss in array.meta.companions.items():
        groups = array.name.split("/")[:-1]
        paths = ("/".join([*groups[:n], name]) for n in range(len(groups), -1, -1))
        current = next((path for path in paths if path in names), None)
        if current is not None and current not in chosen:
            missing[current] = loss
    return missing


def _named(bundle: Bundle, pattern: str, literal: bool) -> set[str]:
    """Return the names of the arrays that a name, a group or a glob stands for."""
    from fnmatch import fnmatchcase

    names = set(bundle.names)
    # Each array by all of its names; aliases of groups are followed only if nothing else matches.
    real_name = {a: n for a, n in bundle.aliases.items() if n in names} | {n: n for n in names}
    name = pattern.lstrip("/")
    matching = {real_name[n] for n in (pattern, name) if n in real_name}
    matching = matching or {real_name[n] for n in real_name if n.startswith(f"{name}/")}
    real = name if matching else bundle.without_aliases(name)
    if real != name:
        inside = f"{real}/" if real else ""
        matching = {real_name[n] for n in real_name if n == real or n.startswith(inside)}
    if not matching and not literal:
        matching = {real_name[n] for n in real_name if fnmatchcase(n, name)}
    return matching


def _no_array(bundle: Bundle, pattern: str) -> UsageError:
    """Return the error for a name that no array has, with the notes about that name."""
    name = pattern.lstrip("/")
    quoted = tuple(f"'{n}{end}" for n in (name, bundle.without_aliases(name)) for end in "'.")
    # A note is about the name that it quotes first, maybe as a member of an archive, with a suffix.
    notes = [m for m in bundle.notes if "'" in m and m[m.index("'") :].startswith(quoted)]
    reason = f": {'; '.join(notes)}" if notes else did_you_mean(pattern, bundle.names)
    return UsageError(
        f"has no array '{pattern}'{reason}",
        path=bundle.path,
        remedy=f"its arrays: {listed(bundle.names)}",
    )


def _keep_of_chosen(bundle: Bundle) -> None:
    """Drop the groups in which no chosen array lies, and the aliases of dropped names."""
    names = bundle.names
    groups = {"/".join(n.split("/")[:k]) for n in names for k in range(1, n.count("/") + 1)}
    bundle.groups = {group: own for group, own in bundle.groups.items() if group in groups}
    remaining = {*names, *groups, ""}
    bundle.aliases = {a: real for a, real in bundle.aliases.items() if real in remaining}


def open_bundle(spec: str | os.PathLike[str], **reading: Any) -> Bundle:
    """Open one source, ``FILE`` or ``FILE#name``, as a bundle of lazy arrays.

    `reading` are arguments of `convert` that concern sources: `from_`, `arrays`, `in_opts`,
    `meta`, `index_order`, `trust`, `max_memory`.
    """
    return open_spec(os.fspath(spec), Settings(**reading)).bundle
