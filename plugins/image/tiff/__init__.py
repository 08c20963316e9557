r"""TIFF: one page, or a stack of pages, of numbers of any size, read and write.

Specification: Adobe, TIFF Revision 6.0, 3 June 1992; Adobe Photoshop TIFF technical notes 1 and 2
(deflate); BigTIFF, https://www.awaresystems.be/imaging/tiff/bigtiff.html; the shape in
ImageDescription as tifffile writes it. Compared with: tifffile, libtiff's tools, Pillow.

Reads, the structure with tifffile: TIFF and BigTIFF in both byte orders; strips and tiles; both
planar configurations; no compression or deflate; predictor 2.
Uncompressed pages that lie behind each other are not decoded at all, but copied or mapped.

Mapping, index order C: a page is (height, width) or (height, width, samples), whatever its planar
configuration; more than one page give (pages, height, width[, samples]), one page has no leading
axis. Values are those of the file: nothing is inverted, converted or looked up (an 8-bit palette
image gives its indices: in microscopy they are the data).

* 1 bit gives bool; 8, 16, 32, 64 bits int and uint; 16, 32, 64 bits float; 64, 128 bits complex.
* Pages marked as reduced images or as masks (NewSubfileType), and those below others (SubIFDs), are
  left out, with a note. All others must agree in size, samples and type; ``pages=N`` reads one.
* A shape that tifffile (or this plugin) noted in the description is given to the whole, where it
  fits the pages. Stacks of ImageJ and OME get the axes that their description tells, with names,
  spacing and units (see `axes`). A single directory of which the description says that more images
  follow (ImageJ above 4 GiB, ``tifffile.imwrite(truncate=True)``) gives them all.

Metadata: the description in `Metadata.description`; in the namespace ``image`` (see `metadata`)
``resolution icc xmp orientation``, and what only TIFF has: ``photometric`` where it is not the
usual one (black is zero, or RGB), ``extra_samples`` (numbers of tag 338), ``colormap`` (tag 320,
little-endian), ``software``. Of a stack they are those of the first page. Other tags are left out,
with a note.

Refused: directories in a loop, or that overlap; strips or tiles outside the file, that overlap, are
too few or have no data; whatever tifffile would only guess at; sizes that the compressed bytes
cannot fill; other compressions (LZW, JPEG and CCITT: ``tiffcp -c none``), bit depths and
predictors; subsampled colour; pages above ``--max-memory`` that have to be decoded, and stacks
above it that are more than a thousand times the file.

Writes, through imageio with tifffile pinned: every number type exactly; bool with 1 bit. The last
axis is the samples if it has 1 to 4 elements and there are three axes or more (not of bool): 3 and
4 are RGB(A). All axes before the image are pages. A shape that pages alone would not give back is
noted in the description the way tifffile does. A description of ImageJ or OME is written as it was
where it still tells the axes; those that no description tells are named as lost.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source, refused, type_name

from ..metadata import metadata_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array, Fit, Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAGICS = (b"II*\0", b"MM\0*", b"II+\0\x08\0\0\0", b"MM\0+\0\x08\0\0")

# One grey pixel; written by Pillow.
_SAMPLE = bytes.fromhex(
    "49492a0008000000090000010400010000000100000001010400010000000100000002010300"
    "0100000008000000030103000100000001000000060103000100000001000000110104000100"
    "00007a0000001601040001000000010000001701040001000000010000001c01030001000000"
    "010000000000000007"
)

FORMAT = Format(
    name="tiff",
    title="TIFF image or stack",
    suffixes=(".tif", ".tiff", ".btf", ".tf8"),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow"), ("tifffile", "tifffile")),
    read_options=(Option("pages", "all", str, "all, or the number of a page"),),
    write_options=(Option("compression", "none", ("none", "deflate"), "of the strips"),),
    samples={"grey_1x1.tif": _SAMPLE},
    spec="https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf",
    losses="only numbers and bool; metadata of axes",
)


def sniff(source: Source) -> int:
    """Sure by byte order mark and version 42 or 43."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source, *, pages: str = "all") -> Bundle:
    """The page or the stack of pages as one lazy array, named after the file's stem.

    All directories are checked here; pixels that do not lie in the file as they are get decoded
    page by page when they are asked for.
    """
    from .reader import read_pages

    return read_pages(source, pages)


def plan(bundle: Bundle, *, compression: str = "none") -> Plan:
    """Pages of the one array of the bundle; the same bytes every time."""
    from .writer import kept_fields, write_pages

    def write(target: Target) -> None:
        write_pages(bundle.arrays[0], target, compression)

    found = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan([*found, *metadata_fits(bundle, "TIFF", kept_fields)], write, names=bundle.names)


def _fits(array: Array) -> list[Fit]:
    found, kind = [], array.element.kind
    if kind not in ("bool", "uint", "int", "float", "complex"):
        reason = f"TIFF holds bool, integers, floats and complex, not {type_name(array.element)}"
        flag = "--dtype float32" if kind == "bfloat" else None
        found.append(refused(array.name, "type", reason, flag))
    if 0 in array.dims:
        reason = f"TIFF has no image without pixels: {array.shape}"
        found.append(refused(array.name, "shape", reason))
    elif max(array.shape[-3:] if array.ndim > 1 else (array.count,)) > 0xFFFFFFFF:
        found.append(refused(array.name, "shape", "a side is above TIFF's 4294967295"))
    return found


def split(array: Array) -> int:
    """How many leading axes become separate files with ``--planes``."""
    samples = array.ndim > 2 and array.shape[-1] <= 4 and array.element.kind != "bool"
    return max(0, array.ndim - (3 if samples else 2))
