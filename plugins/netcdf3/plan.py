"""Plan of a netCDF classic file: its variables, its version, and what does not fit."""

from __future__ import annotations

from raconvert.arrays.interop.conventions import renamed, without_coordinates
from raconvert.errors import UsageError
from raconvert.plugin import Bundle, Plan, equivalent, first_of, refused, stack_fits

from .header import Header, beyond, laid_out_if, smallest
from .metadata import Draft
from .structure import Structure, keys_of
from .tables import TITLE, WRITE_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from raconvert.plugin import Fit, Target


def plan(bundle: Bundle, *, version: str = "auto", unlimited: str = "auto") -> Plan:
    """Plan the variables in order, behind the coordinates that are made from axes.

    `version` is auto, 1, 2 or 5; `unlimited` is auto, none, or the name of the axis along which
    the file is records. Raises `UsageError` for other words.
    """
    check_version(version)
    keys = keys_of(bundle.names)
    structure = Structure(bundle, keys)
    structure.choose_unlimited(bundle, unlimited)
    draft = Draft(bundle, structure, version)
    fits = [*structure.fits, *fits_of(bundle, keys, draft.hidden)]
    if not any(fit.outcome == "refused" for fit in fits):
        fits += version_fits(draft.header(with_axes=False), version, keys, bundle.names)

    def write(target: Target) -> None:
        draft.write(target)

    return Plan([*fits, *file_fits(bundle, draft.hidden_of_file)], write, names=bundle.names)


def check_version(version: str) -> None:
    """Raise `UsageError` for a version that does not exist."""
    words = WRITE_OPTIONS[0].choices
    if version not in words:
        raise UsageError(f"option version={version} is not understood", expected=" or ".join(words))


def fits_of(bundle: Bundle, keys: Sequence[str], hidden: dict[str, list[str]]) -> Iterator[Fit]:
    """Yield a `Fit` for each changed name and lost fact; `hidden` are attributes by array."""
    seen: set[str] = set()
    for name, reason in renamed(bundle.arrays, dict(zip(bundle.names, keys, strict=True))):
        yield equivalent(name, "metadata", reason)
    for array, key in zip(bundle.arrays, keys, strict=True):
        if array.name in seen:
            yield refused(array.name, "names", "the name is used twice")
        elif key != array.name:
            reason = f"no variable can have this name; it is '{key}', and the name is kept in it"
            yield equivalent(array.name, "names", reason)
        seen.add(array.name)
        oblique = without_coordinates(array.meta)
        if oblique is not None:
            yield equivalent(array.name, "metadata", oblique)
        if names := hidden.get(array.name):
            yield equivalent(array.name, "metadata", _only_ours(names))
        yield from stack_fits(array)


def file_fits(bundle: Bundle, hidden: list[str]) -> Iterator[Fit]:
    """Yield the facts of the file that only raconvert reads; `hidden` are attributes."""
    if hidden:
        yield equivalent("", "metadata", _only_ours(hidden))
    groups = bundle.explicit_groups()
    if groups:
        reason = f"{TITLE} has no groups: only raconvert reads {first_of([*groups])}"
        yield equivalent("", "metadata", reason)
    if bundle.aliases:
        reason = f"{TITLE} has no further names: only raconvert reads {first_of([*bundle.aliases])}"
        yield equivalent("", "metadata", reason)


def _only_ours(names: list[str]) -> str:
    """Return the reason for attributes that only raconvert reads."""
    shown = first_of([f"'{name[:80]}'" for name in names])
    return f"an attribute is numbers of one type, or a text: only raconvert reads {shown}"


def version_fits(
    header: Header, version: str, keys: Sequence[str], names: Sequence[str]
) -> Iterator[Fit]:
    """Yield a `Fit` for all that the version asked for, or the largest one, has no room for."""
    asked = 5 if version == "auto" else int(version)
    by_key = dict(zip(keys, names, strict=True))
    made = header._replace(version=asked)
    problems = [*beyond(laid_out_if(made))]
    larger = smallest(header).version if problems and asked != 5 else asked
    for key, reason in problems:
        name = by_key.get(key, "")
        if larger > asked:
            more = f"CDF-{asked} has {reason}; CDF-{larger} has"
            flag = f"--out-opt version={larger}"
            yield refused(name, "type" if "int" in reason else "shape", more, flag)
        else:
            yield refused(name, "shape", f"CDF-{asked} has {reason}")
