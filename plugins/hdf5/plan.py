"""Plan of an HDF5 file that will hold a bundle."""

from __future__ import annotations

from raconvert.plugin import Bundle, Plan, Source

from .options import options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target


def plan(
    bundle: Bundle,
    *,
    compress: str = "none",
    chunks: str = "auto",
    shuffle: bool = True,
    strings: str = "auto",
) -> Plan:
    """Arrays in order, with groups, attributes, scales and links.

    `compress` is none, gzip, gzip:0 to gzip:9, or lzf; `chunks` auto, none, or a length for each
    axis; `shuffle` sorts the bytes of elements before they are compressed; with `strings` fixed
    none become strings of variable length again. `UsageError` for other words.
    """
    options = options_of(compress, chunks, shuffle, strings)
    from .structure import fits_of, structure_of

    structure = structure_of(bundle, options)

    def write(target: Target) -> None:
        from .writer import Writer

        Writer(bundle, target, options, structure).run()

    return Plan(fits_of(bundle, options, structure), write, names=bundle.names)


def add(
    bundle: Bundle,
    source: Source,
    held: Bundle,
    *,
    overwrite: bool,
    compress: str = "none",
    chunks: str = "auto",
    shuffle: bool = True,
    strings: str = "auto",
) -> Plan:
    """A copy of the file with the arrays in it; options as those of `plan`; see `Add`."""
    options = options_of(compress, chunks, shuffle, strings)
    from .adding import plan_added

    return plan_added(bundle, source, held, options, overwrite=overwrite)
