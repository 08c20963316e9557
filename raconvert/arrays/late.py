"""`LateArray`: an array of texts whose width is known once all of its elements have been looked at.

Who asks for the element type pays for the look. `Array.pending` says in words that nobody has.
"""

from __future__ import annotations

from raconvert.arrays.array import UNKNOWN, Array
from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.arrays.dtypes import Element


class LateArray(Array):
    """An array whose element type `look` finds when it is first asked for.

    `words` name the type until then. If `look` fails, the array cannot be read, for that reason.
    """

    __slots__ = ("_element", "_look", "_words")

    def __init__(
        self, words: str, look: Callable[[], Element], dims: tuple[int, ...], **fields: Any
    ) -> None:
        self._words = words
        self._look: Callable[[], Element] | None = look
        super().__init__(UNKNOWN, dims, **fields)

    @property
    def pending(self) -> str:  # type: ignore[override] # plain arrays have nothing pending
        """The type in words, as long as nobody has asked for it."""
        return self._words if self._look is not None else ""

    @property
    def element(self) -> Element:
        """The element type; `UNKNOWN` if it cannot be found, which `problem` then explains."""
        self.settle()
        return self._element

    @element.setter
    def element(self, element: Element) -> None:
        self._element = element

    def settle(self) -> None:
        """Find the element type, once; an error becomes the `problem`."""
        look, self._look = self._look, None
        if look is None:
            return
        try:
            self._element = look()
        except RaconvertError as error:
            self.problem: RaconvertError | None = error

    def __reduce__(self) -> Any:
        """Pickle it as a plain array, whose type is known."""
        return _itself, (self.replace(),)


def _itself(array: Array) -> Array:
    return array
