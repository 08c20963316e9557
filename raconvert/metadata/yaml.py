"""YAML for metadata: written plainly, read safely and in bounded time.

Only mappings, lists and scalars: no aliases, no tags but bytes, no merge keys, no key twice,
bounded depth and number of values. A NaN with other bits than those of ``.nan`` is a mapping:
``{$float: '-nan:0x8000000000000'}``. Numbers are decimal: ``1:30:00`` is text, not a number to base
60, which nobody means (and which takes minutes to compute when it is long).
"""

from __future__ import annotations

from functools import cache
from math import isnan, nan

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.metadata.reals import is_usual_nan, nan_of, nan_text, same_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.limits import Limits

SMALL = 1 << 20  # bytes of values that are always allowed, whatever --max-memory says
MAX_KEY = 1 << 60  # larger integers can share one hash, so that all pairs would be compared

FLOAT = "$float"  # the only key of a mapping that stands for a NaN
MAPPING = "$dict"  # the only key of a mapping that stands for one which looks like either of these
_TOO_DEEP = "exceeded maximum nesting depth"  # a message of libyaml, which parses ahead
# The most memory that a value needs, in bytes, by its mark in YAML: a line with its key and its
# value, a mapping of one key, an item of a list on one line, lists.
_NEEDS = {b"\n": 440, b":": 320, b",": 240, b"[": 120, b"{": 320, b"-": 120}
_BINARY = "tag:yaml.org,2002:binary"  # the only tag that the writer needs: bytes
_MERGE = "tag:yaml.org,2002:merge"
_VALUE = "tag:yaml.org,2002:value"  # a lone "=", which means nothing else here
_TEXT = "tag:yaml.org,2002:str"
_DECIMAL = r"[-+]?(?:0|[1-9][0-9]*)$"
# Not a character more than PyYAML takes for a number: it writes all other text without quotes.
_FLOAT = r"""[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?$
           |\.[0-9]+(?:[eE][-+][0-9]+)?$
           |[-+]?\.(?:inf|Inf|INF)$
           |\.(?:nan|NaN|NAN)$"""


def is_key(value: Any) -> bool:
    """True if a value can be a key without making its mapping slow."""
    return type(value) is not int or -MAX_KEY < value < MAX_KEY


def _stands_for(value: dict[Any, Any]) -> Any:
    """Return the value behind a mapping with the key ``$float`` or ``$dict``, else the mapping."""
    if len(value) != 1:
        return value
    ((key, inner),) = value.items()
    if key == FLOAT and isinstance(inner, str):
        number = nan_of(inner)
        return value if number is None else number
    if key == MAPPING and isinstance(inner, (list, tuple)) and len(inner) == 1:
        (pair,) = inner
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and pair[0] in (FLOAT, MAPPING):
            return {pair[0]: pair[1]}
    return value


def dump(fields: dict[str, Any], *, limit: int = DEFAULT.document_bytes) -> bytes:
    """Return the YAML text of a mapping; `Unsupported` for values that would not read back."""
    import yaml

    from raconvert.metadata import plain

    text, done, lines = plain.written(fields)
    rest = dict(list(fields.items())[done:])
    most = DEFAULT.document_values // 2  # lines: two values each, at most
    if not rest and done and len(text) <= limit and lines <= most:
        return text.encode()
    try:
        data = text.encode() + (_text_of(rest) if rest or not done else b"")
        again = parse(data, "", DEFAULT, most=limit)
    except (yaml.YAMLError, RecursionError, ValueError, Corrupt) as error:
        reason = error.what if isinstance(error, Corrupt) else " ".join(str(error).split())
        raise Unsupported(
            f"metadata cannot be kept as YAML: {reason}", remedy="leave it out with `--meta drop`"
        ) from error
    if not alike(fields, again):
        raise Unsupported(
            "metadata cannot be kept as YAML: a value would come back as another one",
            remedy="leave it out with `--meta drop`",
        )
    return data


def _text_of(fields: dict[str, Any]) -> bytes:
    """Return the text of a mapping, emitted value by value: no tree of nodes is made of it."""
    from io import BytesIO

    import yaml

    text = BytesIO()
    dumper = _dumper()(text, allow_unicode=True, encoding="utf-8")
    try:
        dumper.emit(yaml.StreamStartEvent(encoding="utf-8"))
        dumper.emit(yaml.DocumentStartEvent(explicit=False))
        _emit(dumper, fields)
        dumper.emit(yaml.DocumentEndEvent(explicit=False))
        dumper.emit(yaml.StreamEndEvent())
    finally:
        dumper.dispose()
    return text.getvalue()


@cache
def _dumper() -> Any:
    """Return the safe dumper without aliases: a repeated value is written again."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, _: Any) -> bool:
            return True

    return Dumper


def _emit(dumper: Any, value: Any) -> None:
    """Give a value to an emitter as the events that PyYAML's own dumper would give it."""
    import yaml

    if isinstance(value, float) and isnan(value) and not is_usual_nan(value):
        value = {FLOAT: nan_text(value)}
    elif isinstance(value, dict) and _stands_for(value) is not value:
        value = {MAPPING: [list(pair) for pair in value.items()]}
    if isinstance(value, dict):
        dumper.emit(yaml.MappingStartEvent(None, None, implicit=True, flow_style=False))
        for key, item in value.items():
            _emit(dumper, key)
            _emit(dumper, item)
        dumper.emit(yaml.MappingEndEvent())
    elif isinstance(value, (list, tuple)):
        dumper.emit(yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False))
        for item in value:
            _emit(dumper, item)
        dumper.emit(yaml.SequenceEndEvent())
    else:
        node = dumper.represent_data(value)
        if not isinstance(node, yaml.ScalarNode):
            raise ValueError(f"a value of type {type(value).__name__}")  # noqa: TRY004
        unquoted = dumper.resolve(yaml.ScalarNode, node.value, (True, False)) == node.tag
        implicit = unquoted, node.tag == _TEXT
        dumper.emit(yaml.ScalarEvent(None, node.tag, implicit, node.value, style=node.style))


def alike(a: Any, b: Any) -> bool:
    """True if two values are the same, types and bits of NaN included; tuples are lists."""
    if isinstance(a, dict):
        same = isinstance(b, dict) and list(a) == list(b)
        return same and all(alike(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)):
        same = isinstance(b, list) and len(a) == len(b)
        return same and all(alike(*pair) for pair in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return same_float(a, b)
    return type(a) is type(b) and bool(a == b)


def need_of(text: bytes) -> int:
    """Return the most bytes that the values of a YAML text need, the text itself included.

    Counted without parsing: ``[],`` of three bytes becomes a list of 64 in memory.
    """
    wide = 1 if text.isascii() and b"\\" not in text else 4  # bytes of a character
    return len(text) * (2 + 2 * wide) + sum(need * text.count(one) for one, need in _NEEDS.items())


def parse(text: bytes, path: str, limits: Limits, *, most: int | None = None) -> dict[str, Any]:
    """Return the mapping in a text of at most `most` bytes, or `Limits.document_bytes`.

    Raises `Corrupt`, which names the line, and `TooLarge` for values that need more memory than
    `Limits.memory`: they are counted before they are parsed.
    """
    import yaml

    if len(text) > (limits.document_bytes if most is None else most):
        raise Corrupt("metadata is too large", path=path, got=f"{len(text)} bytes")
    check_need(text, path, limits)
    fields = _first_plain(text, path, limits)
    try:
        if fields is None:
            fields = _Builder(text, path, limits).build()
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, OverflowError) as error:
        raise Corrupt(
            f"metadata is not readable YAML: {' '.join(str(error).split())}",
            path=path,
            remedy="read without it: `--meta ignore`",
        ) from error
    if not isinstance(fields, dict):
        raise Corrupt("metadata is not a YAML mapping", path=path, got=type(fields).__name__)
    return fields


def check_need(text: bytes, path: str, limits: Limits) -> None:
    """Refuse (`TooLarge`) a text whose values need more memory than `Limits.memory`."""
    need = need_of(text)
    if need > SMALL:
        check_memory(need, limits.memory, f"'{path}': metadata", f"{len(text)} bytes of YAML")


def _first_plain(text: bytes, path: str, limits: Limits, lines: int = 0) -> dict[str, Any] | None:
    """Return the mapping in a text that begins with plain fields; None if the whole must be parsed.

    It must also if anything is wrong: messages name lines. `lines` is their number before the text.
    """
    from raconvert.metadata import plain

    if not text.isascii():
        return None
    fields, end, values = plain.leading(text.decode(), limits.document_values)
    if not fields or end == len(text):
        return fields or None
    rest = _rest(text[end:], values, path, limits, lines + text.count(b"\n", 0, end))
    return {**fields, **rest} if rest is not None and fields.keys().isdisjoint(rest) else None


def _rest(text: bytes, values: int, path: str, limits: Limits, lines: int) -> dict[str, Any] | None:
    """Return the fields in the rest of a text; None if it is not the YAML of a mapping.

    Before it come `values` values and `lines` lines. Too many values are `Corrupt` at once, since
    the whole text has no fewer.
    """
    builder = None
    try:
        builder = _Builder(text, path, limits, values, lines)
        rest = builder.build()
    except Exception:  # the whole text says what is wrong, and where
        if builder is not None and builder.is_full:
            raise
        return None
    return rest if isinstance(rest, dict) else None


def parse_behind(begin: bytes, text: bytes, path: str, limits: Limits) -> dict[str, Any] | None:
    """Return the fields of a text that follow `begin`; None if the whole text must be parsed.

    `begin` is the text of known fields, as `dump` returns it.
    """
    from raconvert.metadata import plain

    if not text.startswith(begin):
        return None
    rest = text[len(begin) :]
    if not rest or not plain.FIELD_BEGIN.match(rest[:1].decode("latin-1")):
        return None if rest else {}
    check_need(text, path, limits)
    lines = begin.count(b"\n")
    return _first_plain(rest, path, limits, lines) or _rest(rest, 0, path, limits, lines)


class _Builder:
    """Builder of values from the events of a parser, in one pass."""

    def __init__(
        self, text: bytes, path: str, limits: Limits, values: int = 0, lines: int = 0
    ) -> None:
        import yaml

        self._yaml = yaml
        self._path = path
        self._limits = limits
        self._loader = _loader()(text)
        self._values = values  # number of values so far, those before the text included
        self._lines = lines  # number of lines before the text

    @property
    def is_full(self) -> bool:
        """True if there are more values than any file may have."""
        return self._values > self._limits.document_values

    def build(self) -> Any:
        """Return the value of the only document."""
        yaml = self._yaml
        events = self._events()
        skipped = yaml.StreamStartEvent, yaml.DocumentStartEvent
        event = next(event for event in events if not isinstance(event, skipped))
        if isinstance(event, yaml.StreamEndEvent):
            return None
        value = self._value(event, events, 0)
        for rest in events:
            if not isinstance(rest, yaml.DocumentEndEvent | yaml.StreamEndEvent):
                raise self._refused("holds more than one document", rest)
        return value

    def _events(self) -> Iterator[Any]:
        try:
            while self._loader.check_event():
                yield self._loader.get_event()
        except self._yaml.MarkedYAMLError as error:
            if error.problem == _TOO_DEEP:
                raise self._refused("is nested too deep", error.problem_mark) from error
            raise
        finally:
            self._loader.dispose()

    def _refused(self, what: str, at: Any) -> Corrupt:
        """Return the error about an event, or about the position of a mark."""
        mark = getattr(at, "start_mark", at)
        where = f"line {self._lines + mark.line + 1}"
        return Corrupt(f"metadata {what}", path=self._path, where=where)

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Any:
        """Return the value that begins with an event."""
        yaml = self._yaml
        self._values += 1
        if self.is_full:
            raise self._refused(f"has more than {self._limits.document_values} values", event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.AliasEvent):
            raise self._refused("uses YAML aliases", event)
        if event.tag is not None:
            raise self._refused(f"uses the YAML tag {event.tag}", event)
        if depth == self._limits.nesting_levels:
            raise self._refused("is nested too deep", event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, depth + 1)
        return self._mapping(events, depth + 1)

    def _list(self, events: Iterator[Any], depth: int) -> list[Any]:
        items = []
        for event in events:
            if isinstance(event, self._yaml.SequenceEndEvent):
                break
            items.append(self._value(event, events, depth))
        return items

    def _mapping(self, events: Iterator[Any], depth: int) -> Any:
        mapping: dict[Any, Any] = {}
        for event in events:
            if isinstance(event, self._yaml.MappingEndEvent):
                break
            if not isinstance(event, self._yaml.ScalarEvent):
                raise self._refused("has a key that is not a plain value", event)
            key = self._scalar(event)
            if not is_key(key):
                raise self._refused(f"has an integer beyond {MAX_KEY} as a key", event)
            if key in mapping:
                raise self._refused(f"has the key {key!r:.80} twice", event)
            mapping[key] = self._value(next(events), events, depth)
        return _stands_for(mapping)

    def _scalar(self, event: Any) -> Any:
        """Return text, a number, a bool, a date, None or bytes."""
        if event.tag is None:
            is_quoted = not event.implicit[0]
            if is_quoted:
                return event.value
            node_type = self._yaml.ScalarNode
            tag = self._loader.resolve(node_type, event.value, event.implicit)
        else:
            tag = event.tag
            if tag != _BINARY:
                raise self._refused(f"uses the YAML tag {tag}", event)
        if tag in (_TEXT, _VALUE):
            return event.value
        if tag == _MERGE:
            raise self._refused("uses YAML merge keys", event)
        if event.value.lower() == ".nan":  # PyYAML would make a NaN with a sign
            return nan
        node = self._yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        return self._loader.yaml_constructors[tag](self._loader, node)


@cache
def _loader() -> Any:
    """Return the safe loader with decimal numbers only."""
    import re

    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    numbers = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in numbers]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(numbers[0], re.compile(_DECIMAL), list("-+0123456789"))
    Loader.add_implicit_resolver(numbers[1], re.compile(_FLOAT, re.VERBOSE), list("-+0123456789."))
    return Loader
