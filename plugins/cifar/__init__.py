"""CIFAR-10 and CIFAR-100 in their binary version: labels and images, read and write.

Specification: "Binary version" on the page of the data sets (www.cs.toronto.edu/~kriz/cifar.html).
Compared with: NumPy, after the words of that page, in the tests.

Layout: records without a header::

    CIFAR-10   1 byte label (0-9), 3072 bytes image
    CIFAR-100  1 byte coarse label (0-19), 1 byte fine label (0-99), 3072 bytes image

An image is 32 × 32 pixels, row by row: all of red, then green, then blue.

Mapping: the arrays ``labels`` (N), or ``coarse_labels`` and ``fine_labels``, and ``images``
(N, 3, 32, 32), uint8, row-major. ``--axes 0,2,3,1`` puts the colours of ``FILE#images`` last. The
files of the data sets are known by their names (``data_batch_1.bin``, ``test.bin``) and labels;
others by ``--from cifar``, with ``--in-opt classes=10`` or ``100`` where both would fit.

Writes: a bundle of exactly these arrays, all of one length N (the name ends with ``.cifar.bin``, or
``--to cifar``). Other arrays, types and shapes are refused; metadata is lost (named as equivalent).

Refused: the pickled version of the data sets, since reading it would run whatever it contains; the
binary version is on the same page.
"""

from __future__ import annotations

from functools import partial

from raconvert.errors import Corrupt, Unsafe
from raconvert.plugin import MAYBE, NO, SURE, Array, Bundle, Format, Option, Source

from .plan import plan
from .tables import BYTE, IMAGE, LAYOUTS, SAMPLE, is_pickled, known_name, layout_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tables import Layout

__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="cifar",
    title="CIFAR-10/100 (binary)",
    suffixes=(".cifar.bin",),
    many=True,
    read_options=(Option("classes", "auto", ("auto", "10", "100"), "which of the two data sets"),),
    samples={"one.cifar.bin": SAMPLE},
    spec="https://www.cs.toronto.edu/~kriz/cifar.html",
    losses="only labels (N) and images (N, 3, 32, 32) of uint8; no metadata",
)


def sniff(source: Source) -> int:
    """Sure of whole records with labels that can be, under a name that such a file has.

    Maybe under another. Also sure of the pickled files of CIFAR, which are refused by name.
    """
    if is_pickled(source):
        return SURE
    if layout_of(source) is None:
        return NO
    return SURE if known_name(source.name) else MAYBE


def read(source: Source, *, classes: str = "auto") -> Bundle:
    """Labels and images, each read where it is asked for. Raises `Corrupt` and `Unsafe`."""
    if is_pickled(source):
        raise Unsafe(
            "is the pickled version of CIFAR; reading it would run whatever it contains",
            path=source.path, where="byte 0",
            remedy="no option allows this; the same page has the binary version: "
            "cifar-10-binary.tar.gz, cifar-100-binary.tar.gz",
        )  # fmt: skip
    layout = layout_of(source) if classes == "auto" else LAYOUTS[classes]
    if layout is None or not source.size or source.size % layout.nbytes:
        sizes = " or ".join(str(one.nbytes) for one in LAYOUTS.values())
        raise Corrupt(
            "is not a whole number of CIFAR records", path=source.path,
            expected=f"records of {sizes} bytes, labels below 10, or 20 and 100",
            got=f"{source.size} bytes",
        )  # fmt: skip
    count = source.size // layout.nbytes
    parts = [(name, place, ()) for place, name in enumerate(layout.labels)]
    return Bundle([
        Array(BYTE, (*shape[::-1], count), name=name, index_order="C",
              data=partial(_column, source, layout, place, shape))
        for name, place, shape in [*parts, ("images", len(layout.labels), IMAGE)]
    ])  # fmt: skip


def _column(source: Source, layout: Layout, place: int, shape: tuple[int, ...]) -> object:
    from .reader import Column  # with numpy

    return Column(source, layout, place, shape)
