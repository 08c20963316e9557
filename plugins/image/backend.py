"""imageio v3 with a pinned backend, and everything that it may raise turned into our errors.

Nothing here leaks: no warning, no log line, no foreign exception. Pillow's limit on the size of an
image is replaced by the honest need of memory against ``--max-memory``, which is checked before
any pixel is decoded.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import contextmanager

from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Source

# What Pillow, tifffile and imageio raise for damaged files, as far as anybody knows.
FAILURES: tuple[type[Exception], ...] = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, AssertionError, RuntimeError, MemoryError, Warning,
    struct.error, zlib.error,
)  # fmt: skip
PILLOW_PIXEL_BYTES = 4  # Pillow keeps colours in four bytes whatever their channels


@contextmanager
def guarded(path: str, what: str, max_memory: int, *, writing: bool = False) -> Iterator[None]:
    """Run a backend: strict about truncation, silent, its failures as `Corrupt` or `TooLarge`.

    When `writing`, what the operating system refuses is left for the core to explain.
    """
    from PIL import Image, ImageFile

    limits = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    failures: tuple[type[Exception], ...] = (*FAILURES, Image.DecompressionBombError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        Image.MAX_IMAGE_PIXELS = max(1, max_memory // PILLOW_PIXEL_BYTES)
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            yield
        except RaconvertError:
            raise
        except failures as error:
            if writing and isinstance(error, OSError) and error.errno is not None:
                raise
            raise _translated(error, path, what) from error
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = limits


def _translated(error: Exception, path: str, what: str) -> RaconvertError:
    """Return our error for one of a backend."""
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


def check_need(source: Source, pixels: int, channels: int, itemsize: int = 1) -> None:
    """Refuse (`TooLarge`) an image that Pillow could not decode within ``--max-memory``.

    Counted are Pillow's own pixels and two copies of what comes out of them.
    """
    from raconvert.blocks import check_memory

    need = pixels * (PILLOW_PIXEL_BYTES + 2 * channels * itemsize)
    check_memory(need, source.max_memory, f"'{source.path}': its image of {pixels} pixels")


class Images:
    """Array source: the images of one file, decoded by Pillow, one at a time.

    `shape` has a first axis for the images if `stacked`. `mode` is Pillow's word for what the
    pixels are converted to, which must lose nothing.
    """

    def __init__(
        self,
        source: Source,
        what: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        mode: str | None = None,
        *,
        stacked: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._source = source
        self._what = what
        self._mode = mode
        self._stacked = stacked
        self._last: tuple[int, np.ndarray[Any, Any]] | None = None

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield pieces in stored order: each image is decoded once, as a whole."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for image in self._all():
            flat = image.reshape(-1)
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def _all(self) -> Iterator[np.ndarray[Any, Any]]:
        if not self._stacked:
            yield self._image(0)
            return
        count = 0
        with self._source.open() as file:
            # Guarded step by step: between them the caller may have images of its own.
            with self._guarded():
                opened = _pillow(file)
                images = opened.iter(mode=self._mode)
            try:
                while count <= self.shape[0]:
                    with self._guarded(count):
                        image = next(images, None)
                    if image is None:
                        break
                    if count < self.shape[0]:
                        yield self._checked(image, count)
                    count += 1
            finally:
                opened.close()
        if count != self.shape[0]:
            raise Corrupt(
                f"{self._what} does not have the images that it declares",
                path=self._source.path,
                expected=self.shape[0],
                got=f"{count} or more" if count > self.shape[0] else count,
            )

    def _image(self, number: int) -> np.ndarray[Any, Any]:
        if self._last is None or self._last[0] != number:
            with self._source.open() as file, self._guarded(number), _pillow(file) as opened:
                image = opened.read(index=number, mode=self._mode)
            self._last = number, self._checked(image, number)
        return self._last[1]

    def _guarded(self, number: int = 0) -> Any:
        return guarded(self._source.path, self._where(number), self._source.max_memory)

    def _where(self, number: int) -> str:
        return f"image {number} of {self._what}" if self._stacked else self._what

    def _checked(self, image: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
        """Return the image if it is what was announced; anything else would be damage."""
        import numpy as np

        expected = self.shape[1:] if self._stacked else self.shape
        if image.shape != expected or image.dtype != self.dtype:
            raise Corrupt(
                f"{self._where(number)} is not what its header says",
                path=self._source.path,
                expected=f"{self.dtype} {expected}",
                got=f"{image.dtype} {image.shape}",
            )
        if image.dtype == np.bool_:  # of which Pillow makes bytes of 255, not 1
            image = image.view(np.uint8) != 0
        return np.ascontiguousarray(image)

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        if not self._stacked:
            return self._image(0)[key]
        key = key if isinstance(key, tuple) else (key,)
        if key and key[0] is Ellipsis:
            key = (slice(None),) * (len(self.shape) - len(key) + 1) + key[1:]
        first, rest = (key[0], key[1:]) if key else (slice(None), ())
        if not isinstance(first, slice):
            return self._image(range(self.shape[0])[first])[rest]
        from raconvert.blocks import check_memory

        numbers = range(self.shape[0])[first]
        if not numbers:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
        part = np.ascontiguousarray(self._image(numbers[0])[rest])
        what = f"'{self._source.path}': these {len(numbers)} images"
        check_memory(len(numbers) * part.nbytes, self._source.max_memory, what)
        out = np.empty((len(numbers), *part.shape), self.dtype)
        out[0] = part
        for place, number in enumerate(numbers[1:], 1):
            out[place] = self._image(number)[rest]
        return out


def _pillow(file: Any) -> Any:
    """Open a file through imageio, with Pillow and nothing else."""
    import imageio.v3 as iio

    return iio.imopen(file, "r", plugin="pillow")


def probed(source: Source, what: str) -> tuple[tuple[int, ...], str]:
    """Return the shape of the image with its palette looked up, and Pillow's mode of it."""
    with (
        source.open() as file,
        guarded(source.path, what, source.max_memory),
        _pillow(file) as opened,
    ):
        mode: str = opened.metadata(index=0)["mode"]
        return opened.properties(index=0).shape, mode


def encoded(values: np.ndarray[Any, Any], suffix: str, **options: Any) -> bytes:
    """Return one image as the bytes of a file, encoded by Pillow."""
    import imageio.v3 as iio

    with guarded("", "the image", 1 << 62):
        data: bytes = iio.imwrite(
            "<bytes>", values, plugin="pillow", extension=suffix, is_batch=False, **options
        )
    return data
