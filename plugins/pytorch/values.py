"""The content of a pickle: tensors and plain values by name, and notes on what is left out."""

from __future__ import annotations

from raconvert.errors import TooLarge, Unsupported, listed

from .opcodes import Items, Ordered, Storage, Tensor
from .tables import Known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

__all__ = ["Contents", "shared"]

_SHOWN = 5  # names in a note


class Contents:
    """Tensors and plain values by name, and what is left out."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tensors: dict[str, Tensor] = {}
        self.attributes: dict[str, Any] = {}
        self._left: dict[str, list[str]] = {}  # kind -> names
        self._values = source.limits.document_values
        self._characters = source.limits.path_characters

    def walk(self, value: Any, path: tuple[str, ...], depth: int) -> None:
        """Take a value apart; raises `TooLarge` beyond the limits."""
        limits = self.source.limits
        self._count(1)
        if depth > limits.nesting_levels:
            raise self._too_much(f"at most {limits.nesting_levels} containers inside each other")
        if isinstance(value, Tensor):
            self._tensor(self._name(path), value)
        elif isinstance(value, Known) and value.kind == "dtype":
            self._attribute(path, f"torch.{value.name}")
        elif isinstance(value, Known | Storage):
            self._leave(_kind(value), path)
        elif isinstance(value, dict | list | tuple) and value:
            self._container(value, path, depth)
        elif _is_value(value):
            self._attribute(path, value)
        else:
            self._leave(_kind(value), path)

    def _container(self, value: Any, path: tuple[str, ...], depth: int) -> None:
        """Take a container apart; a list of plain values is one attribute."""
        if isinstance(value, Ordered) and value.state:
            self._leave(f"attributes of mappings ({listed(value.state)})", path)
        if not isinstance(value, dict):
            self._count(len(value))
            if all(map(_is_value, value)):
                self._attribute(path, list(value))
                return
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            self.walk(item, (*path, str(key)), depth + 1)

    def _tensor(self, name: str, tensor: Tensor) -> None:
        """Add a tensor. Raises `Unsupported` for a name that another one has."""
        if name in self.tensors:
            raise Unsupported(
                f"two tensors have the name '{name[:80]}' once keys are joined by dots",
                path=self.source.path,
            )  # fmt: skip
        if tensor.state:
            self._leave("attributes of tensors", (name,))
        if len(self.tensors) >= self.source.limits.nodes:
            raise self._too_much(f"at most {self.source.limits.nodes} tensors")
        self.tensors[name] = tensor

    def _attribute(self, path: tuple[str, ...], value: Any) -> None:
        """Add an attribute; one of a name that occurs twice is left out."""
        name = self._name(path)
        if name in self.attributes:
            self._leave("values of a name that occurs twice", path)
        else:
            self.attributes[name] = value

    def _name(self, path: tuple[str, ...]) -> str:
        """Return the keys joined by dots; the stem of the file without keys."""
        size = sum(map(len, path)) + len(path)
        self._characters -= size
        if self._characters < 0 or size > self.source.limits.name_bytes:
            raise self._too_much("names of arrays and values that are much shorter")
        return ".".join(path) or self.source.stem

    def _leave(self, kind: str, path: tuple[str, ...]) -> None:
        """Name a value that is left out; `kind` is the beginning of its note."""
        self._left.setdefault(kind, []).append(self._name(path))

    def _count(self, values: int) -> None:
        """Count values; raises `TooLarge` for too many."""
        self._values -= values
        if self._values < 0:
            raise self._too_much(f"at most {self.source.limits.document_values} values")

    def _too_much(self, expected: str) -> TooLarge:
        """Return the error for a pickle beyond the limits."""
        return TooLarge(
            "pickle holds too much to be read safely", path=self.source.path, expected=expected
        )

    def notes(self) -> list[str]:
        """Return a line for each kind of values that are left out."""
        lines = []
        for kind, names in self._left.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"left out: {kind}: {', '.join(map(repr, names[:_SHOWN]))}{more}")
        return lines


def _is_value(value: Any) -> bool:
    """True for a value that an attribute can be."""
    if type(value) is int:
        return value.bit_length() < 64
    return type(value) in (bool, float, str)


def _kind(value: Any) -> str:
    """Return the words of a note for a value that is left out."""
    if isinstance(value, Storage):
        return "storages without a tensor"
    if isinstance(value, dict | list | tuple):
        return "sets without values" if isinstance(value, Items) else "empty containers"
    words = {complex: "complex numbers", int: "integers beyond 64 bits", bytes: "bytes",
             type(None): "None"}  # fmt: skip
    return words.get(type(value), "types and other names of torch")


def shared(tensors: dict[str, Tensor]) -> list[str]:
    """Return notes that name the tensors which share a storage."""
    users: dict[str, list[str]] = {}
    for name, tensor in tensors.items():
        if not tensor.problem:
            users.setdefault(tensor.storage.key, []).append(name)
    groups = [names for names in users.values() if len(names) > 1]
    notes = [
        f"tensors share a storage, and become arrays of their own: {listed(names)}"
        for names in groups[:_SHOWN]
    ]
    more = len(groups) - _SHOWN
    return [*notes, f"{more} more storages are shared by tensors"] if more > 0 else notes
