"""Decoded images: lazy stacks, and the backends with what they may raise turned into our errors.

Backends are called inside `guarded`: no warning, no log line, no foreign exception leaks. Pillow's
limit on the size of an image is replaced by the honest need of memory against ``--max-memory``,
which is checked before any pixel is decoded.
"""

from __future__ import annotations

import logging
import os
import struct
import warnings
import zlib
from contextlib import ExitStack, closing, contextmanager
from math import prod
from threading import Lock

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

# What Pillow, tifffile and imageio raise for damaged files, as far as anybody knows.
FAILURES: tuple[type[Exception], ...] = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, AssertionError, RuntimeError, MemoryError, Warning,
    struct.error, zlib.error,
)  # fmt: skip
UNLIMITED = 1 << 62  # where what may be decoded was put together here
PILLOW_PIXEL_BYTES = 4  # Pillow keeps colours in four bytes whatever their channels
# What DEFLATE can do at most. A file that grows more than that, and beyond memory, is a bomb.
RATIO = 1032

_lock = Lock()
_limits: list[int] = []  # bytes that each of the guards at work, in all threads, allows
_before = ExitStack()  # puts back what was set before the first of them


@contextmanager
def guarded(
    path: str | None, what: str, max_memory: int, *, writing: bool = False
) -> Iterator[None]:
    """Run a backend: strict about truncation, silent, its failures as `Corrupt` or `TooLarge`.

    Backends have one set of such settings for all threads: they are changed when the first of
    several guards begins, and put back when the last one ends. When `writing`, what the operating
    system refuses is left for the core to explain.
    """
    from PIL import Image

    failures: tuple[type[Exception], ...] = (*FAILURES, Image.DecompressionBombError)
    with _lock:
        if not _limits:
            _set(_before)
        _limits.append(max_memory)
        _set_limit()
    try:
        yield
    except RaconvertError:
        raise
    except failures as error:
        if writing and isinstance(error, OSError) and error.errno is not None:
            raise
        raise _translated(error, path, what) from error
    finally:
        with _lock:
            _limits.remove(max_memory)
            if _limits:
                _set_limit()
            else:
                _before.close()


def _set(before: ExitStack) -> None:
    """Set what the guards need, but for the limit; closing `before` puts back what was."""
    from PIL import Image, ImageFile

    before.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    log = logging.getLogger("tifffile")
    for owner, name in (
        (Image, "MAX_IMAGE_PIXELS"),
        (ImageFile, "LOAD_TRUNCATED_IMAGES"),
        (log, "propagate"),
    ):
        before.callback(setattr, owner, name, getattr(owner, name))
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    log.propagate = False


def _set_limit() -> None:
    """Set Pillow's limit to the largest that a guard at work allows."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = max(1, max(_limits) // PILLOW_PIXEL_BYTES)


def _translated(error: Exception, path: str | None, what: str) -> RaconvertError:
    """Our error for one of a backend."""
    from PIL import Image

    cause: BaseException = error
    while cause.__cause__ is not None:  # imageio wraps what the backend said
        cause = cause.__cause__
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError)
    if isinstance(cause, bombs):
        return TooLarge(
            f"{what} declares more pixels than --max-memory has room for",
            path=path,
            remedy="allow it with a larger --max-memory, if you trust the file",
        )
    if isinstance(cause, OSError) and cause.errno is not None:
        return ReadFailed(f"cannot be read: {cause.strerror}", path=path)
    text = str(cause).strip() or type(cause).__name__
    return Corrupt(f"{what} is damaged, cut off, or beyond what is read here ({text})", path=path)


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Keep what C libraries say about damaged data from the terminal: Python gets an error, too.

    libtiff writes it to file descriptor 2, past everything that Python could redirect.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def check_need(source: Source, pixels: int, channels: int, kept: int = 0) -> None:
    """Refuse (`TooLarge`) an image that Pillow could not decode within ``--max-memory``.

    Counted are Pillow's own pixels, two copies of what comes out of them, and what the decoder has
    `kept` of each pixel besides.
    """
    need = pixels * (PILLOW_PIXEL_BYTES + 2 * channels + kept)
    check_memory(need, source.max_memory, f"'{source.path}': its image of {pixels} pixels")


def check_total(source: Source, nbytes: int) -> None:
    """Refuse (`TooLarge`) images that all together are a multiple of the file and of memory."""
    if nbytes > RATIO * source.size:
        check_memory(nbytes, source.max_memory, f"'{source.path}': all its images together")


class Stack:
    """Array source: images of one shape and type, decoded one at a time.

    `shape` is the shape of all together: the axes of the stack, then those of an image. `images`
    yields those from a number on, to the last one of the file. At most one image is held besides
    what was asked for, and the file stays open behind it, until `close`.
    """

    def __init__(
        self,
        source: Source,
        shape: tuple[int, ...],
        dtype: Any,
        count: int,
        images: Callable[[int], Generator[Values, None, None]],
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.source = source
        self.count = count
        self._images = images
        self._depth = next(n for n in range(len(shape) + 1) if prod(shape[:n]) == count)
        self._lock = Lock()
        self._last: tuple[int, Values] | None = None
        self._following: Generator[Values, None, None] | None = None  # images behind the last one

    def close(self) -> None:
        """Close the file and forget the last image; what is asked for later opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        following, self._following, self._last = self._following, None, None
        if following is not None:
            following.close()

    def stream(self, max_bytes: int) -> Generator[Values, None, None]:
        """Yield pieces in stored order: each image is decoded once, as a whole."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for image in self._checked(0):
            flat = image.reshape(-1)
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def __getitem__(self, key: Any) -> Any:
        """A region; no image outside it is decoded, unless the format needs it."""
        key = _whole_key(key, len(self.shape))
        lead, rest = key[: self._depth], key[self._depth :]
        numbers = np.arange(self.count).reshape(self.shape[: self._depth])[lead]
        if numbers.size == 0:
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)[key].copy()
        order = np.argsort(numbers, axis=None)  # slices may go backwards
        with self._lock:
            part = self._part(numbers.flat[order[0]], rest)
            if numbers.ndim == 0:
                return part
            what = f"'{self.source.path}': these {numbers.size} images"
            check_memory(numbers.size * part.nbytes, self.source.max_memory, what)
            out = np.empty((numbers.size, *part.shape), self.dtype)
            out[order[0]] = part
            for place in order[1:]:
                out[place] = self._part(numbers.flat[place], rest)
        return out.reshape(*numbers.shape, *part.shape)

    def _part(self, number: int, rest: tuple[Any, ...]) -> Any:
        """A region of one image; those that are asked for in order are decoded once."""
        if self._last is None or self._last[0] != number:
            following = self._following
            if following is None or self._last is None or self._last[0] + 1 != number:
                self._close()
                following = self._checked(int(number))
            # Without both while it decodes: an image that fails leaves nothing behind.
            self._following = self._last = None
            image = next(following)
            if number == self.count - 1:
                next(following, None)  # there are no more, and the file is closed
            else:
                self._following = following
            self._last = int(number), image
        return self._last[1].reshape(self.shape[self._depth :])[rest]

    def _checked(self, first: int) -> Generator[Values, None, None]:
        """Yield the images read-only: as many, and as large, as was announced."""
        nbytes = prod(self.shape) // self.count * self.dtype.itemsize
        with closing(self._images(first)) as images:
            for number in range(first, self.count):
                image = next(images, None)
                if image is None or image.nbytes != nbytes or image.dtype != self.dtype:
                    raise Corrupt(
                        f"image {number} is missing or not what its header says",
                        path=self.source.path,
                        expected=f"{self.count} images of {nbytes} bytes, {self.dtype}",
                        got=None if image is None else f"{image.nbytes} bytes, {image.dtype}",
                    )
                image.setflags(write=False)
                yield image
                del image  # while the next one is decoded
            if next(images, None) is not None:
                raise Corrupt("has more images than it declares", path=self.source.path)


def _whole_key(key: Any, ndim: int) -> tuple[Any, ...]:
    """A basic index as a tuple with one part for each axis."""
    key = key if isinstance(key, tuple) else (key,)
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    missing = [slice(None)] * (ndim - len(key) + (at < len(key)))
    return (*key[:at], *missing, *key[at + 1 :])


def pillow_images(
    source: Source, what: str, shape: tuple[int, ...], mode: str | None = None, count: int = 1
) -> Callable[[], Stack]:
    """What opens the images of a file as Pillow decodes (and, of several, composes) them.

    `mode` is Pillow's word for what the pixels are converted to, which must lose nothing.
    """

    def images(first: int) -> Generator[Values, None, None]:
        import imageio.v3 as iio

        def guard() -> Any:  # step by step: between them the caller may have images of its own
            return guarded(source.path, what, source.max_memory)

        with source.open() as file:
            with guard():
                opened: Any = iio.imopen(file, "r", plugin="pillow")
                found = (
                    opened.iter(mode=mode) if count > 1 else iter([opened.read(index=0, mode=mode)])
                )
            with closing(opened):
                for number in range(count + 1):  # one more than there may be
                    with guard():
                        image = next(found, None)
                    if image is None:
                        return
                    if number >= first:
                        if image.dtype == np.bool_:  # of which Pillow makes bytes of 255, not 1
                            image = image.view(np.uint8) != 0
                        yield np.ascontiguousarray(image)

    dtype = "?" if mode == "1" else "u1"
    return lambda: Stack(source, shape, dtype, count, images)


def decoded(data: bytes, path: str, what: str) -> Values:
    """The only image of a file in memory, decoded by Pillow, whatever its mode gives."""
    import imageio.v3 as iio

    with guarded(path, what, UNLIMITED):
        return iio.imread(data, plugin="pillow", index=0)
