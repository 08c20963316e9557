"""Writing a MAT file in the version that was asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

    from .contents import Contents


def write(contents: Contents, target: Target, level: int | None) -> None:
    """Write all variables; `level` is that of compression, None for none."""
    if contents.version == "7.3":
        from . import write73 as writer
    else:
        from . import write5 as writer  # type: ignore[no-redef]
    writer.write(contents, target, level)
