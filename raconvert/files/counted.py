"""Counts of what reading one array has cost, compared with what there really is."""

from __future__ import annotations

from threading import Lock

from raconvert.errors import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits


class Found:
    """Pieces of one array that were looked for: how many there are, and how many there are not.

    Counted while the array is read, for all threads that read it. `nbytes` is the size of a piece
    when it is decoded; `asked` says that each absent piece costs a request to a server. `parts`
    counts the smallest units that are there: chunks, also those of a shard.
    """

    __slots__ = (
        "_lock", "absent", "asked", "limits", "nbytes", "parts", "path", "stored", "there", "what",
    )  # fmt: skip

    def __init__(
        self, limits: Limits, nbytes: int, what: str, path: str, *, asked: bool = False
    ) -> None:
        self.limits: Limits = limits
        self.nbytes: int = nbytes
        self.what: str = what
        self.path: str = path
        self.asked: bool = asked
        self.there: int = 0
        self.stored: int = 0
        self.absent: int = 0
        self.parts: int = 0
        self._lock = Lock()

    def add(self, stored: int | None) -> None:
        """Count a piece of `stored` bytes, or one that is not there (None).

        Raises `TooLarge` if a server has far fewer pieces than it is asked for.
        """
        with self._lock:
            if stored is None:
                self.absent += 1
            else:
                self.there += 1
                self.stored += stored
        most = max(self.limits.absent, self.limits.sparse * (self.there + 1))
        if self.asked and self.absent > most:
            raise self.too_many(most)

    def add_parts(self, count: int) -> None:
        """Count units that are there. Raises nothing."""
        with self._lock:
            self.parts += count

    def too_many(self, most: int) -> TooLarge:
        """The error for an array of which nearly no piece was found. Raises nothing."""
        return TooLarge(
            f"{self.what} is cut into many chunks, of which few are there", path=self.path,
            expected=f"at most {most} requests for chunks that are absent", got=self._counts(),
            remedy="choose a part of it, or copy it to a disk, where it can be listed",
        )  # fmt: skip

    def check(self) -> None:
        """Refuse (`TooLarge`) elements that are little more than a fill value, or a few bytes."""
        limits = self.limits
        filled = self.absent * self.nbytes
        room = limits.sparse * (self.there + 1) * min(self.nbytes, limits.piece)
        if filled > max(limits.memory, room):
            raise self._too_much(filled, "are little more than a fill value")
        decoded = self.there * self.nbytes
        if decoded > max(limits.memory, limits.ratio * self.stored):
            raise self._too_much(decoded, f"have only {self.stored} bytes stored")

    def _too_much(self, nbytes: int, why: str) -> TooLarge:
        memory = -(-nbytes // (1 << 20))
        return TooLarge(
            f"{self.what} declares {nbytes} bytes that {why}", path=self.path, got=self._counts(),
            expected=f"at most {self.limits.memory} (`--max-memory`), unless more is stored",
            remedy=f"choose a part of it, or allow it with `--max-memory {memory}M`",
        )  # fmt: skip

    def _counts(self) -> str:
        return f"{self.there} of {self.there + self.absent} chunks"


class Work:
    """Bytes that may still be decoded for one stored piece; `spend` counts them.

    `parts` are the units of the piece that began in what was read of it.
    """

    __slots__ = ("_left", "_most", "parts")

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        self.parts: int = 0

    def spend(self, nbytes: float, what: str, **where: Any) -> None:
        """Count bytes that are decoded; `TooLarge` where all of them are spent."""
        self._left -= int(nbytes)
        if self._left < 0:
            raise TooLarge(
                f"{what} would decode the same bytes again and again",
                expected=f"at most {self._most} bytes", got=f"{self._most - self._left} or more",
                remedy="write it again: parts of a shard do not overlap", **where,
            )  # fmt: skip
