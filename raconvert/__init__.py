"""raconvert: move N-dimensional arrays between file formats, faithfully.

Everything goes through one canonical core, RA (RawArray): a header of 64-bit integers followed by
raw data. Whatever would be lost is refused, with the option that allows it; nothing is changed
without a word.

Read and write::

    import raconvert

    x = raconvert.read("scan.ra")                  # an ndarray; of a container a dict of them
    with raconvert.open("scan.h5") as lazy:        # nothing but headers is read
        plane = lazy["group/x"][3]
    raconvert.write("copy.nrrd", x)

Convert::

    report = raconvert.convert("scan.npy", "scan.ra")
    raconvert.convert("mnist/*.png", "mnist.ra")   # a stack, in natural order
    raconvert.convert("in/", out_dir="out", to="npy", recursive=True)
    raconvert.migrate("lab", "lab-ra", to="ra")    # a tree, resumable
    raconvert.refs("scan.ra", "scan.json")         # a view for zarr of the bytes where they lie

Look and compare::

    raconvert.info("scan.mat")["arrays"]           # types, shapes, metadata
    raconvert.probe("scan.bin").format             # what a file is taken for, and why
    raconvert.diff("a.npy", "b.ra", atol=1e-6)["same"]
    raconvert.verify("mnist.ra", against="mnist/*.png")["same"]
    raconvert.digest("scan.npy")                   # SHA-256 of the .ra that it would become
    raconvert.formats()                            # what is read and written

Sources are paths, ``FILE#name``, URLs, bytes, and files that are open for bytes; globs, folders and
lists are stacked. Errors are one tree below `RaconvertError`, each with `what`, `path`, `where`,
`expected`, `got`, `remedy` and an `exit_code`. `raconvert.ra` is the fast library for RA files
alone. The public names are imported when they are first used, so that ``import raconvert`` costs
next to nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers, what `_PUBLIC` says at run time
    from typing import Any

    from raconvert import ra as ra
    from raconvert.api import open as open
    from raconvert.api import open_array as open_array
    from raconvert.api import open_bundle as open_bundle
    from raconvert.api import read as read
    from raconvert.api import write as write
    from raconvert.arrays.array import Array as Array
    from raconvert.arrays.bundle import Bundle as Bundle
    from raconvert.arrays.metadata import Axis as Axis
    from raconvert.arrays.metadata import Metadata as Metadata
    from raconvert.arrays.metadata import Space as Space
    from raconvert.conversion.pipeline import convert as convert
    from raconvert.conversion.progress import Progress as Progress
    from raconvert.conversion.report import Report as Report
    from raconvert.errors import Changed as Changed
    from raconvert.errors import Corrupt as Corrupt
    from raconvert.errors import MissingDependency as MissingDependency
    from raconvert.errors import NotFound as NotFound
    from raconvert.errors import NotSupportedYet as NotSupportedYet
    from raconvert.errors import RaconvertError as RaconvertError
    from raconvert.errors import ReadFailed as ReadFailed
    from raconvert.errors import TargetExists as TargetExists
    from raconvert.errors import TooLarge as TooLarge
    from raconvert.errors import UnknownFormat as UnknownFormat
    from raconvert.errors import Unsafe as Unsafe
    from raconvert.errors import Unsupported as Unsupported
    from raconvert.errors import UsageError as UsageError
    from raconvert.errors import WouldLose as WouldLose
    from raconvert.errors import WriteFailed as WriteFailed
    from raconvert.inspect.diff import diff as diff
    from raconvert.inspect.digest import digest as digest
    from raconvert.inspect.info import Probe as Probe
    from raconvert.inspect.info import formats as formats
    from raconvert.inspect.info import info as info
    from raconvert.inspect.info import probe as probe
    from raconvert.inspect.verify import verify as verify
    from raconvert.migration.driver import migrate as migrate
    from raconvert.ra.description import query as query
    from raconvert.references.make import refs as refs
    from raconvert.registry import refresh as refresh

__version__ = "0.9.0"

_PUBLIC = {
    "Array": "raconvert.arrays.array",
    "Axis": "raconvert.arrays.metadata",
    "Bundle": "raconvert.arrays.bundle",
    "Changed": "raconvert.errors",
    "Corrupt": "raconvert.errors",
    "Metadata": "raconvert.arrays.metadata",
    "MissingDependency": "raconvert.errors",
    "NotSupportedYet": "raconvert.errors",
    "Probe": "raconvert.inspect.info",
    "Progress": "raconvert.conversion.progress",
    "RaconvertError": "raconvert.errors",
    "NotFound": "raconvert.errors",
    "ReadFailed": "raconvert.errors",
    "Report": "raconvert.conversion.report",
    "Space": "raconvert.arrays.metadata",
    "TargetExists": "raconvert.errors",
    "TooLarge": "raconvert.errors",
    "UnknownFormat": "raconvert.errors",
    "Unsafe": "raconvert.errors",
    "Unsupported": "raconvert.errors",
    "UsageError": "raconvert.errors",
    "WouldLose": "raconvert.errors",
    "WriteFailed": "raconvert.errors",
    "convert": "raconvert.conversion.pipeline",
    "diff": "raconvert.inspect.diff",
    "digest": "raconvert.inspect.digest",
    "formats": "raconvert.inspect.info",
    "info": "raconvert.inspect.info",
    "migrate": "raconvert.migration.driver",
    "open": "raconvert.api",
    "open_array": "raconvert.api",
    "open_bundle": "raconvert.api",
    "probe": "raconvert.inspect.info",
    "query": "raconvert.ra.description",
    "read": "raconvert.api",
    "refresh": "raconvert.registry",
    "refs": "raconvert.references.make",
    "verify": "raconvert.inspect.verify",
    "write": "raconvert.api",
}
__all__ = sorted(_PUBLIC)  # noqa: PLE0605 - the table is the one place for public names


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _PUBLIC and name != "ra":
        raise AttributeError(f"module 'raconvert' has no attribute '{name}'")
    from importlib import import_module

    if name == "ra":  # the library for RA files alone
        return import_module("raconvert.ra")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, without those that are imported for internal use."""
    return sorted([*_PUBLIC, "ra", "__doc__", "__version__"])


def _register() -> None:
    """Hand functions of the highest modules to the lowest ones, so that all imports lead down."""
    from raconvert.declared import Shown
    from raconvert.errors import register_keywords

    def keywords_of(text: str) -> str:
        from raconvert.cli.options import keywords

        return keywords(text)

    def cell_of(value: Any) -> str:
        from raconvert.views.pages.notebook import cell_of

        return cell_of(value)

    register_keywords(keywords_of)
    Shown.cell = staticmethod(cell_of)


def _link_checkout() -> None:
    """Make `raconvert.plugins` the folder `../plugins` when running from a source checkout.

    An installed raconvert has its plugins inside the package (setuptools maps them there).
    """
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(os.path.dirname(here), "plugins")
    start = os.path.join(beside, "__init__.py")
    if os.path.isdir(os.path.join(here, "plugins")) or not os.path.isfile(start):
        return
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("raconvert.plugins", start, submodule_search_locations=[beside])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["raconvert.plugins"] = module
    spec.loader.exec_module(module)


_register()
_link_checkout()
