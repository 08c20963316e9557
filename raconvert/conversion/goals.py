"""Which file each source becomes, where each becomes one of its own."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.conversion.inputs import roots_of
from raconvert.conversion.outputs import stem_of, template_fields
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.conversion.inputs import Gathered
    from raconvert.conversion.options import Settings


def each_target(
    words: list[str], gathered: Gathered, dst: str | None, settings: Settings
) -> Iterator[tuple[str, str]]:
    """Yield (source, destination), the source tree mirrored below the output folder."""
    if dst is not None and not dst.endswith(("/", os.sep)) and not os.path.isdir(dst):
        if not template_fields(dst):
            raise UsageError(
                "`--each` needs a folder or a template as destination",
                path=dst,
                remedy="use `--out-dir DIR --to FORMAT`, or `-o '{stem}.npy'`",
            )
        for path in gathered.paths:
            name = os.path.basename(path.rstrip("/" + os.sep))
            try:
                yield path, dst.format(stem=stem_of(path), name=name)
            except ValueError as error:
                raise UsageError(
                    f"destination template is not understood: {error}", path=dst
                ) from error
        return
    folder = settings.out_dir if settings.out_dir is not None else dst
    if settings.to is None:
        raise UsageError(
            "a folder as destination needs the format of its files",
            path=folder,
            remedy="name it with `--to`: ra or npy for one file each, bundle for one folder of all",
        )
    suffix = next(iter(registry.by_name(settings.to).suffixes), "")
    roots = roots_of(words)
    for path in gathered.paths:
        root = next((r for r in roots if path.startswith(os.path.join(r, ""))), None)
        above = os.path.dirname(os.path.relpath(path, root)) if root else ""
        yield path, os.path.join(folder or ".", above, stem_of(path) + suffix)


def claim(names: list[str], source: str, places: dict[str, str], *, once: bool = False) -> None:
    """Note which files a source becomes; `UsageError` where another one becomes that file.

    `once`: also where it is the same source, which is named twice.
    """
    for name in names:
        place = place_of(name)
        other = places.get(place)
        if other is not None and (once or other != source):
            what = f"two sources would both become '{name}'"
            raise UsageError(what, path=source, got=f"'{other}' and this one")
        places[place] = source


def place_of(path: str) -> str:
    """The name of a file under which it is one with all its other names."""
    return os.path.normcase(os.path.realpath(path))
