"""The options of a conversion: one table, and everything that comes from it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter

import pytest
from cases import every

from raconvert import convert
from raconvert.cli.options import CONVERT
from raconvert.conversion import batch, pipeline
from raconvert.conversion.options import OPTIONS, Option, Settings

NAMES = [option.name for option in OPTIONS]


def test_each_is_declared_once() -> None:
    assert max(Counter(NAMES).values()) == 1
    flags = Counter(flag for option in CONVERT for flag in option.flags)
    assert max(flags.values()) == 1


def test_the_arguments_of_convert() -> None:
    found = inspect.signature(convert).parameters
    keywords = [p for p in found.values() if p.kind is p.KEYWORD_ONLY]
    assert [(p.name, p.default) for p in keywords] == [(o.name, o.default) for o in OPTIONS]
    assert [p.annotation for p in keywords] == [o.type for o in OPTIONS]


def test_the_settings() -> None:
    assert list(Settings.__annotations__) == NAMES
    for option in OPTIONS:
        assert getattr(Settings, option.name) == option.default
        if option.name != "progress":  # which is called with bytes
            kind = option.type.replace("str | os.PathLike[str]", "str")
            assert Settings.__annotations__[option.name] == kind


def test_the_documentation() -> None:
    text = " ".join((convert.__doc__ or "").split())
    for option in OPTIONS:
        assert f"* `{option.name}`: {option.help}" in text


def test_the_command_line() -> None:
    shown = {option.dest: option for option in CONVERT}
    own = {"output", "report", "progress"}
    assert set(shown) - own == {o.name for o in OPTIONS if o.flags} | {"stack"}
    for option in OPTIONS:
        if option.flags:
            assert shown[option.name].flags == tuple(option.flags.split())
            assert shown[option.name].help == option.help


# A value of each type that options are declared with, which is the default of none.
OF_TYPE = {
    "bool": True,
    "int": 7,
    "bool | int": 7,
    "int | None": 7,
    "str": "own",
    "str | None": "own",
    "str | os.PathLike[str] | None": "own",
    "str | os.PathLike[str] | Sequence[str] | None": ["own"],
    "Sequence[str]": ["own"],
    "bool | str | tuple[str, int] | None": ("concat", 1),
    "dict[str, Any] | None": {"own": 1},
    "Callable[[Progress], object] | None": print,
}


@every("option", OPTIONS, ids=lambda option: option.name)
def test_convert_hands_on_every_option(option: Option, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given arrives under its own name, whatever the others are."""
    seen = []
    monkeypatch.setattr(pipeline, "_is_one_to_one", lambda *_: False)
    monkeypatch.setattr(batch, "convert_many", lambda _, __, settings: seen.append(settings))
    words = {"allow": ["names"], "trust": ["external"], "meta": "drop", "index_order": "F"}
    value = words.get(option.name, OF_TYPE[option.type])
    value = not option.default if option.type == "bool" else value
    convert("a.npy", "b.ra", **{option.name: value})
    arrived = getattr(seen[0], option.name)
    assert arrived == value or (option.name == "progress" and arrived.tell is value)
    others = [other for other in OPTIONS if other is not option]
    assert all(list_of(getattr(seen[0], o.name)) == list_of(o.default) for o in others)


def list_of(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_the_table_is_light() -> None:
    code = "import sys, raconvert.conversion.options; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "argparse", "typing", "dataclasses"} & set(done.stdout.split())
