"""What h5py raises, as errors of raconvert."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Whatever the library says of a damaged file reaches Python as one of these.
FAILURES: tuple[type[Exception], ...] = (
    OSError, RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
    UnicodeError, NotImplementedError, SystemError,
)  # fmt: skip
# These, and ours: where a value that a bundle remembers may not be what this plugin left there.
PROBLEMS: tuple[type[Exception], ...] = (*FAILURES, RaconvertError)
_ERRNO = re.compile(r"errno = (\d+)")


def reason_of(error: Exception) -> str:
    """What an error of the library says, in one line without its routine beginning."""
    spoken = error.strerror if isinstance(error, OSError) and error.strerror else None
    text = " ".join(str(spoken or (error.args[0] if error.args else error)).split())
    opening, _, inner = text.partition(" (")
    return inner.removesuffix(")") if inner and "ynchronously" in opening else text


def system_reason(error: Exception) -> str:
    """The system's reason for an error of the library, else what the library says."""
    number = error.errno if isinstance(error, OSError) else None
    if not number:
        found = _ERRNO.search(str(error))
        number = int(found[1]) if found else 0
    return os.strerror(number) if number else reason_of(error)


@contextmanager
def guarded(path: str, where: str | None = None, what: str = "cannot be read") -> Iterator[None]:
    """Turn what h5py raises about a file into `Corrupt`, with the object in which it happened."""
    try:
        yield
    except RaconvertError as error:
        error.path = error.path or path
        error.where = error.where or where
        raise
    except MemoryError as error:
        raise TooLarge(f"{what}: it needs more memory than there is", path=path, where=where) \
            from error  # fmt: skip
    except FAILURES as error:
        raise Corrupt(f"{what}: {reason_of(error)}", path=path, where=where) from error


def open_failed(path: str, error: Exception) -> RaconvertError:
    """The error for a file that the library does not open."""
    reason = reason_of(error)
    if "unable to lock file" in reason or isinstance(error, BlockingIOError):
        return ReadFailed(
            "is open for writing in another program",
            path=path,
            remedy="wait until it is closed; HDF5_USE_FILE_LOCKING=FALSE reads it as it is",
        )
    if "consistency flags" in reason or "already open for write" in reason:
        return Corrupt(
            "was not closed by the program that wrote it",
            path=path,
            remedy="clear the mark with h5clear -s, if that program has ended",
        )
    if "signature" in reason:
        return Corrupt("has no HDF5 signature", path=path, expected="at byte 0, 512, 1024, ...")
    if "driver" in reason or "family" in reason:
        return Unsupported(f"is one part of a file in several parts: {reason}", path=path)
    return Corrupt(f"cannot be opened as HDF5: {reason}", path=path)
