"""PyTorch checkpoints (``.pt``, ``.pth``): the tensors of ``torch.save``, read.

Specification: torch/serialization.py, torch/_utils.py and caffe2/serialize of PyTorch; PKWARE
APPNOTE 6.3 for ZIP; Lib/pickletools.py of Python for the opcodes. Compared with: torch itself,
which wrote the fixtures and tells their values. Neither torch nor Python's pickle is used here: no
code of a file is run, and nothing that a file names is imported or called.

Layout: a ZIP archive of stored members in one folder of any name::

    data.pkl         a pickle: containers, plain values, and tensors as views of storages
    data/KEY         the bytes of a storage
    byteorder        little or big; older files have none and are little-endian
    version          and others that say nothing of values

Reads: an interpreter of the opcodes of the protocols 2 to 5 makes what torch makes of tensors,
parameters, storages, ``torch.Size``, types, ``OrderedDict``, lists, tuples, mappings, sets and
plain values. Tensors that cover their storage are extents of the file, with the CRC-32 of its
member; one in Fortran order stays in it. Views of a part, with steps, with axes exchanged or
repeated (stride 0) are read where they lie, after one pass over the CRC-32 of their storage.
bfloat16 and floats of one byte are those of ml_dtypes.

Names: keys and places in lists, joined by a dot (``model.layer.weight``, ``0.weight``); a tensor
alone has the name of the file. Numbers, texts and lists of them are attributes of the file under
such names (``epoch``, ``optimizer.param_groups.0.lr``).

Noted: tensors that share a storage; values that are left out (None, complex numbers, bytes, empty
containers, integers beyond 64 bits), attributes of tensors and of mappings. Whether a tensor
requires a gradient, and its device, are not kept.

An array that cannot be read, by name: sparse, quantised, nested and conjugated tensors, those
without elements (device meta), types that no array has (complex32, types of less than a byte).

Refused: any other global, and every opcode that makes an object of a class, with its name and
offset (whole models, ``argparse.Namespace``, NumPy's scalars among them); compressed members;
TorchScript (``constants.pkl``, ``code/``); the layouts of torch before 1.6 (one pickle after the
other) and before 0.1.10 (tar); tensors that lie outside their storage; files without CRC-32
(``torch.serialization.set_crc32_options(False)``).
"""

from __future__ import annotations

from raconvert.files.zips import FIRST_NAMES, LOCAL, LOCAL_MAGIC
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Format, Source

from .reader import bundle_of
from .tables import LEGACY_MAGIC, LEGACY_TAR, SAMPLE

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="torch",
    title="PyTorch checkpoint",
    suffixes=(".pt", ".pth"),
    magic=((0, LOCAL_MAGIC), (0, LEGACY_MAGIC), (257, b"ustar")),
    many=True,
    writes=False,
    index_orders="CF",
    samples={"two_by_three.pt": SAMPLE},
    spec="https://docs.pytorch.org/docs/stable/notes/serialization.html",
    losses="it is read, not written; safetensors holds the same tensors",
)

# Ends of the name of the first member that torch.save and torch.jit.save write.
PICKLES = (b"/data.pkl", b"/constants.pkl")


def sniff(source: Source) -> int:
    """Return SURE if the first member is the pickle of torch, and for the older layouts.

    MAYBE for any other ZIP archive.
    """
    head = source.head
    if head.startswith(LEGACY_MAGIC):
        return SURE
    if head[257:262] == b"ustar":
        return SURE if head[:100].rstrip(b"\0").rstrip(b"/") in LEGACY_TAR else NO
    if not head.startswith(LOCAL_MAGIC):
        return NO
    name = head[LOCAL.size :][: int.from_bytes(head[26:28], "little")]
    if name.endswith(PICKLES):
        return SURE
    return NO if name.endswith(FIRST_NAMES) else MAYBE


def read(source: Source) -> Bundle:
    """Read the tensors of a checkpoint, lazily; plain values become attributes of the file.

    Raises `Unsafe` for a pickle that would import or call anything, `Corrupt`, `Unsupported` and
    `TooLarge`, all before data is read.
    """
    return bundle_of(source)
