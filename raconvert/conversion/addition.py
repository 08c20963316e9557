"""Adding an array to a container that exists: ``FILE#NAME`` as a destination.

The plugin writes the new container beside the old one, which it replaces in one rename (`add` of
`raconvert.plugin`). This module opens the old one, judges what may be replaced, and compares the
new container with it before the rename: all other arrays have their names, order, types and shapes.
"""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.bundle import Bundle
from raconvert.conversion.outputs import elements_hash, last_change
from raconvert.errors import TargetExists, Unsupported, WriteFailed, changed, quoted
from raconvert.files.paths import identity
from raconvert.files.source import Source, refuse_changed
from raconvert.metadata import SUFFIX
from raconvert.plugin import file_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import ExitStack
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.conversion.report import Conversion
    from raconvert.plugin import Plan


class Container:
    """The container before an array is added: its source, and its bundle."""

    __slots__ = ("bundle", "fields", "identity", "in_opts", "source")

    def __init__(self, run: Conversion) -> None:
        self.in_opts: dict[str, Any] = {}
        self.identity: tuple[int, int] | None = identity(run.path)
        self.source: Source = self._opened(run)
        row = registry.detect(self.source).row
        if row.name != run.row.name:
            raise Unsupported(
                f"is in the format {row.name}, so that no array of {run.row.name} can be added",
                path=run.path,
                remedy="name another file; FILE without #NAME, and `--overwrite`, replace the "
                "whole file",
            )
        self.bundle: Bundle = self.read(run)
        try:
            self.fields: dict[str, Any] | None = _sidecar(run, self.source)
        except BaseException:
            self.close()
            raise

    def _opened(self, run: Conversion) -> Source:
        """Return the source of the container: its file, or the file that marks its folder."""
        folder = run.path.rstrip("/" + os.sep) or run.path
        if run.row.folder:
            mark = next((m for m in run.row.marks if os.path.isfile(os.path.join(folder, m))), None)
            if mark is None:
                raise TargetExists(
                    f"is a folder that is not of the format {run.row.name}",
                    path=run.path,
                    remedy="name another folder",
                )
            folder = os.path.join(folder, mark)
        return Source(folder, max_memory=run.settings.max_memory)

    def read(self, run: Conversion) -> Bundle:
        """Read the container; return an empty bundle if the plugin can read no array in it."""
        try:
            return run.plugin.read(self.source, **self.in_opts)
        except Unsupported:
            return Bundle([])

    def refuse_changed(self, path: str) -> None:
        """Refuse (`Changed`) to replace a container that changed since it was copied.

        Another process has added to it meanwhile, whose arrays would be lost.
        """
        if identity(path) != self.identity:
            raise changed(path)
        refuse_changed(self.source.seen)

    def compare(self, run: Conversion, written: Bundle) -> None:
        """Refuse (`WriteFailed`) a new container in which another array has changed.

        With ``--verify`` every element of the others is compared, too.
        """
        names, before = run.plan.names, self.bundle
        old, new = _others(before, names), _others(written, names)
        expected, got = [*map(_facts, old)], [*map(_facts, new)]
        if expected != got:
            self.refuse_changed(run.path)
            differing = [fact for fact in expected if fact not in got] or expected
            raise _changed(run, str(differing[0][0]) if differing else "")
        if run.settings.verify:
            for array, copy in zip(old, new, strict=True):
                if array.problem is None and elements_hash(array) != elements_hash(copy):
                    raise _changed(run, array.name)

    def sidecar_fields(
        self, run: Conversion, described: dict[str, dict[str, Any]], *, asked: bool
    ) -> dict[str, Any]:
        """Return the fields of the sidecar of the new container; empty if it has none.

        The other arrays keep theirs. `described` are those of the new one, which are added if a
        sidecar is `asked` for.
        """
        from raconvert.metadata.roundtrip import record_of, record_of_file

        bundle, fields = self.bundle, self.fields
        others = _others(bundle, run.plan.names)
        for own in described.values():
            own.pop("items", None)
        if fields is None:
            if not asked:
                return {}
            records = {array.name: record_of(array) for array in others if array.problem is None}
            return {"complete": True, **record_of_file(bundle), "arrays": {**records, **described}}
        arrays = fields.get("arrays")
        if not isinstance(arrays, dict):  # the sidecar of a container of one array lacks its name
            arrays = {array.name: fields for array in bundle.arrays[:1]}
            fields = {"complete": fields.get("complete", False)}
        arrays = {name: own for name, own in arrays.items() if name not in run.plan.names}
        return {**fields, "arrays": {**arrays, **(described if asked else {})}}

    def close(self) -> None:
        """Close the bundle and the source. Raises nothing."""
        self.bundle.close()
        self.source.close()


def _sidecar(run: Conversion, source: Source) -> dict[str, Any] | None:
    """Return the fields of the sidecar of the container; `Corrupt` for another file's; or None."""
    if run.row.sidecar == "never" or not os.path.lexists(run.path + SUFFIX):
        return None
    from raconvert.metadata import sidecar

    return sidecar.load(source, run.plugin.data_range)


def skips(run: Conversion) -> str:
    """Return the reason why an existing array is left as it is; "" if it is not."""
    if run.settings.skip_existing:
        return "exists already"
    if run.settings.update and not _is_older(run):
        return "is not older than its source"
    return ""


def _is_older(run: Conversion) -> bool:
    newest = max(map(last_change, run.report.sources), default=float("inf"))
    return os.path.getmtime(run.path) < newest


def plan(run: Conversion, bundle: Bundle, stack: ExitStack) -> bool:
    """Set the plan of a run; False if an existing array stays. Raises what `plan_of` raises."""
    try:
        run.plan = plan_of(run, bundle, stack)
    except TargetExists as error:
        reason = skips(run)
        if not reason:
            raise
        run.report.skipped.append((f"{error.path}#{run.name}", reason))
        return False
    return True


def plan_of(run: Conversion, bundle: Bundle, stack: ExitStack) -> Plan:
    """Plan the container that results when the arrays of a bundle are added to it.

    The container stays open until the `stack` is closed.

    Raises `TargetExists` for arrays that exist and may not be replaced, `Unsupported` for a format,
    or a container, that arrays cannot be added to.
    """
    add = run.plugin.add
    if add is None:
        raise Unsupported(
            f"format {run.row.name} takes no array beside those that a file has",
            path=run.path,
            remedy="write all arrays together: FILE without #NAME, and `--overwrite`, replace the "
            "whole file",
        )
    container = run.container = Container(run)
    stack.callback(container.close)
    additions = Bundle(bundle.arrays)
    additions.format = bundle.format
    replaces = run.replaces and not skips(run)
    plan = add(additions, container.source, container.bundle, overwrite=replaces, **run.options)
    if plan.in_opts != container.in_opts:
        container.bundle.close()
        container.in_opts = plan.in_opts
        container.bundle = container.read(run)
    title = f"'{quoted(run.path)}', which keeps its own,"
    plan.fits += file_fits(bundle, title)
    if not run.row.folder:
        count = len(_others(container.bundle, plan.names))
        others = f"its {count} other arrays" if count != 1 else "its other array"
        size = container.source.size
        line = f"'{run.path}' ({size} bytes) is written anew with the array; "
        run.report.add_notes([line + f"{others} and all else in it are copied as they are"])
    run.report.add_notes(plan.notes)
    return plan


def _others(bundle: Bundle, names: list[str]) -> list[Array]:
    """Return the arrays of a bundle that have none of these names."""
    return [array for array in bundle.arrays if array.name not in names]


def _facts(array: Array) -> tuple[Any, ...]:
    """Return the properties of an array that an addition to its container must not change."""
    problem = type(array.problem).__name__ if array.problem else ""
    return array.name, problem, array.element, array.dims, array.index_order


def _changed(run: Conversion, name: str) -> WriteFailed:
    return WriteFailed(
        f"array '{name}' of the container would not be what it was; this is a bug, nothing was "
        "replaced",
        path=run.path,
    )
