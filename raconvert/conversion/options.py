"""`Settings`: the named arguments of `convert` as one value, and the list of their defaults."""

from __future__ import annotations

from raconvert.errors import UsageError, did_you_mean
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

META_MODES = ("auto", "sidecar", "trailer", "drop", "ignore")
TRUSTS = ("external",)
LOSSES = ("dtype", "precision", "nulls", "names", "elements", "arrays", "all")


class Settings:
    """How to convert. What each one means: the option of the same name in ``convert --help``."""

    from_: str | None = None
    to: str | None = None
    arrays: Sequence[str] = ()
    out_dir: str | None = None
    stack: bool | str | tuple[str, int] | None = None
    sort: str | None = None
    strict_sequence: bool = False
    planes: bool = False
    overwrite: bool = False
    skip_existing: bool = False
    update: bool = False
    allow: Sequence[str] = ()
    strict: bool = False
    trust: Sequence[str] = ()
    dtype: str | None = None
    axes: str | None = None
    meta: str = "auto"
    index_order: str | None = None
    labels: str | None = None
    scale: str | None = None
    bits: int = 8
    recursive: bool = False
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    files_from: str | Sequence[str] | None = None
    null_separated: bool = False
    in_opts: dict[str, Any] | None = None
    out_opts: dict[str, Any] | None = None
    max_memory: int = DEFAULT_MAX_MEMORY
    verify: bool = False
    dry_run: bool = False
    fail_fast: bool = False
    sync: bool = True
    progress: Callable[[int, int], object] | None = None

    def __init__(self, **named: Any) -> None:
        for name, value in named.items():
            if name not in Settings.__annotations__:
                raise TypeError(f"convert() has no argument '{name}'")
            setattr(self, name, value)
        self.arrays = _words(self.arrays)
        self.allow = _words(self.allow)
        self.trust = _words(self.trust)
        _check_words("--meta", [self.meta], META_MODES)
        _check_words("--allow", self.allow, LOSSES)
        _check_words("--trust", self.trust, TRUSTS)
        if self.index_order is not None:
            _check_words("--index-order", [self.index_order], ("C", "F"))

    def replace(self, **changes: Any) -> Settings:
        """Return the same settings with some of them changed."""
        return Settings(**{**self.__dict__, **changes})

    def allows(self, loss: str) -> bool:
        """True if ``--allow`` names this loss."""
        return loss in self.allow or "all" in self.allow


def _words(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _check_words(flag: str, words: Iterable[str], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            raise UsageError(
                f"{flag} does not know '{word}'{did_you_mean(word, list(known))}",
                expected=" | ".join(known),
            )
