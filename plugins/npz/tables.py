"""Tables that reader and writer of NPZ share: the suffix of members, methods, limits, a sample."""

from __future__ import annotations

from raconvert.errors import RaconvertError
from raconvert.files.inflate import ZIP_DEFLATED, ZIP_STORED
from raconvert.files.names import members_of
from raconvert.files.zips import MAX_NAME_BYTES, Member

from ..npy.header import SAMPLE as NPY_SAMPLE

SUFFIX = ".npy"
COMMENT = b"name: "  # begins the comment of a member whose name is not that of its array
METHODS = {"none": ZIP_STORED, "deflate": ZIP_DEFLATED}  # option -> ZIP method
LONGEST_NAME = MAX_NAME_BYTES - len(COMMENT)

# numpy.savez of x = numpy.array([1, 2, 3], "u1")
SAMPLE = (
    b"PK\x03\x04-\x00\x00\x00\x00\x00\x00\x00!\x00*\xe3\x8e\xb1\xff\xff"
    b"\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00x.npy\x01\x00\x10\x00\x83"
    b"\x00\x00\x00\x00\x00\x00\x00\x83\x00\x00\x00\x00\x00\x00\x00"
    + NPY_SAMPLE
    + b"PK\x01\x02-\x03-\x00\x00\x00\x00\x00\x00\x00!\x00*\xe3\x8e\xb1"
    b"\x83\x00\x00\x00\x83\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x80\x01\x00\x00\x00\x00x.npyPK\x05\x06\x00\x00\x00\x00\x01"
    b"\x00\x01\x003\x00\x00\x00\xba\x00\x00\x00\x00\x00"
)


def array_name(member: Member) -> str:
    """Return the name of the array in a member: the one in its comment, else the member's."""
    name = member.filename.removesuffix(SUFFIX)
    if not member.comment.startswith(COMMENT):
        return name
    try:
        kept = member.comment[len(COMMENT) :].decode()
    except UnicodeDecodeError:
        return name
    stem = members_of([kept], SUFFIX)[0].removesuffix(SUFFIX)
    counted = name.startswith(f"{stem}%") and name[len(stem) + 1 :].isdecimal()
    return kept if name == stem or counted else name


def in_member(error: RaconvertError, member: Member) -> RaconvertError:
    """Add to an error the member that it is about, and return it."""
    where = f"member {member.filename!r}"
    error.where = f"{where}, {error.where}" if error.where else where
    return error


# How others read a member: FILE and NAME are filled in for each language.
PROGRAMS = {
    "Python": """\
import numpy as np
x = np.load(FILE)[NAME]""",
    "Julia": """\
using NPZ
x = npzread(FILE, [NAME])[NAME]  # its indices are in the order of Python's""",
}
