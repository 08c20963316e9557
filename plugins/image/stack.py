"""Array source of one image, or of a stack of images that are decoded one at a time."""

from __future__ import annotations

from contextlib import closing
from math import prod
from threading import Lock

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

# What DEFLATE can do at most. A file that grows more than that, and beyond memory, is a bomb.
RATIO = 1032


class Stack:
    """Images of one shape and type: `images` decodes them, this class slices and streams.

    `shape` is the shape of all together: the axes of the stack, then those of an image. At most
    one image is held besides what was asked for, and the file stays open behind it, until `close`.
    """

    def __init__(
        self, source: Source, shape: tuple[int, ...], dtype: np.dtype[Any], count: int
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.source = source
        self.count = count
        depth = next(n for n in range(len(shape) + 1) if prod(shape[:n]) == count)
        self._lead, self._image_shape = shape[:depth], shape[depth:]
        self._lock = Lock()
        self._last: tuple[int, Values] | None = None
        self._following: Generator[Values, None, None] | None = None  # images behind the last one

    def images(self, first: int) -> Generator[Values, None, None]:
        """Yield the images from number `first` to the last one of the file."""
        raise NotImplementedError

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
        for image in self._checked(self.images(0)):
            flat = image.reshape(-1)
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def __getitem__(self, key: Any) -> Any:
        """Return a region; no image outside it is decoded, unless the format needs it."""
        key = _without_ellipsis(key, len(self.shape))
        depth = len(self._lead)
        numbers = np.arange(self.count).reshape(self._lead)[key[:depth]]
        rest = key[depth:]
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
        """Return a region of one image; those that are asked for in order are decoded once."""
        if self._last is None or self._last[0] != number:
            following = self._following
            if following is None or self._last is None or self._last[0] + 1 != number:
                self._close()
                following = self._checked(self.images(int(number)), int(number))
            # Without both while it decodes: an image that fails leaves nothing behind.
            self._following = self._last = None
            image = next(following)
            if number == self.count - 1:
                next(following, None)  # there are no more, and the file is closed
            else:
                self._following = following
            self._last = int(number), image
        return self._last[1].reshape(self._image_shape)[rest]

    def _checked(
        self, images: Generator[Values, None, None], first: int = 0
    ) -> Generator[Values, None, None]:
        """Yield the images read-only, as long as there are as many as the shape says."""
        with closing(images):
            for number in range(first, self.count):
                image = next(images, None)
                if image is None:
                    raise Corrupt(
                        "has fewer images than it declares", path=self.source.path,
                        expected=self.count, got=number,
                    )  # fmt: skip
                image.setflags(write=False)
                yield image
                del image  # while the next one is decoded
            if next(images, None) is not None:
                raise Corrupt(
                    "has more images than it declares", path=self.source.path, expected=self.count
                )


def _without_ellipsis(key: Any, ndim: int) -> tuple[Any, ...]:
    """Return a basic index as a tuple with one part for each axis."""
    key = key if isinstance(key, tuple) else (key,)
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    missing = [slice(None)] * (ndim - len(key) + (at < len(key)))
    return (*key[:at], *missing, *key[at + 1 :])


def check_total(source: Source, nbytes: int) -> None:
    """Refuse (`TooLarge`) images that all together are a multiple of the file and of memory."""
    if nbytes > RATIO * source.size:
        check_memory(nbytes, source.max_memory, f"'{source.path}': all its images together")
