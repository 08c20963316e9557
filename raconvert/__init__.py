"""raconvert: move N-dimensional arrays between file formats, faithfully.

Everything goes through one canonical core, RA (RawArray): a header of 64-bit integers followed by
raw data. The public names are imported when they are first used, so that ``import raconvert``
costs next to nothing::

    import raconvert

    raconvert.convert("scan.npy", "scan.ra")     # any pair of formats
    x = raconvert.read("scan.ra")                # an ndarray
    with raconvert.open("scan.ra") as lazy:      # mapped, nothing is read yet
        plane = lazy[3]
    raconvert.write("copy.ra", x)
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers, what `_PUBLIC` says at run time
    from raconvert import ra as ra
    from raconvert.api import open as open
    from raconvert.api import read as read
    from raconvert.api import write as write
    from raconvert.arrays.array import Array as Array
    from raconvert.arrays.bundle import Bundle as Bundle
    from raconvert.arrays.metadata import Metadata as Metadata
    from raconvert.conversion.pipeline import convert as convert
    from raconvert.errors import RaconvertError as RaconvertError
    from raconvert.inspect.digest import digest as digest
    from raconvert.inspect.info import formats as formats
    from raconvert.inspect.info import info as info
    from raconvert.inspect.verify import verify as verify
    from raconvert.migration.driver import migrate as migrate
    from raconvert.ra.description import query as query
    from raconvert.registry import refresh as refresh

__version__ = "0.1.0"

_PUBLIC = {
    "Array": "raconvert.arrays.array",
    "Bundle": "raconvert.arrays.bundle",
    "Metadata": "raconvert.arrays.metadata",
    "RaconvertError": "raconvert.errors",
    "convert": "raconvert.conversion.pipeline",
    "digest": "raconvert.inspect.digest",
    "formats": "raconvert.inspect.info",
    "info": "raconvert.inspect.info",
    "migrate": "raconvert.migration.driver",
    "open": "raconvert.api",
    "query": "raconvert.ra.description",
    "read": "raconvert.api",
    "refresh": "raconvert.registry",
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
    return sorted({*globals(), *_PUBLIC})


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


_link_checkout()
