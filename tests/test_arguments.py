"""Arguments of wrong types: our error, which names the argument, from every public function."""

from __future__ import annotations

import contextlib
import inspect
import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import declared
from raconvert.errors import RaconvertError, Unsupported, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

ODD: list[Any] = [
    None, 3, -1, 2.5, float("nan"), True, 1 << 70, 1j, b"x.ra", b"\xff", "", "nonsense", "x\0y",
    [], [1], ["x.ra", 3], [[1], 2], (), {}, {"a": 1}, {1: 2}, {"x"}, range(3), object(), object,
    io.BytesIO(b"x"), np.arange(2), np.float64(3), np.array(["a"]), Path("x.ra"), Path("no"),
]  # fmt: skip
# What is called, with what, and how it must be where that is not to be left to chance.
CALLS: dict[str, tuple[Callable[..., Any], list[Any], dict[str, Any]]] = {
    "convert": (raconvert.convert, ["x.ra", "o.npy"], {"overwrite": True}),
    "diff": (raconvert.diff, ["x.ra", "x.ra"], {}),
    "probe": (raconvert.probe, ["x.ra"], {}),
    "digest": (raconvert.digest, ["x.ra"], {}),
    "info": (raconvert.info, ["x.ra"], {}),
    "migrate": (raconvert.migrate, ["d", "e"], {"to": "npy", "jobs": 1}),
    "open": (raconvert.open, ["x.ra"], {}),
    "open_array": (raconvert.open_array, ["x.ra"], {}),
    "open_bundle": (raconvert.open_bundle, ["x.ra"], {}),
    "query": (raconvert.query, ["x.ra"], {}),
    "refs": (raconvert.refs, ["x.ra", "v.json"], {"overwrite": True}),
    "read": (raconvert.read, ["x.ra"], {}),
    "verify": (raconvert.verify, ["x.ra"], {}),
    "write": (raconvert.write, ["o.npy", np.arange(3)], {"overwrite": True}),
    "ra.query": (raconvert.ra.query, ["x.ra"], {}),
    "ra.read": (raconvert.ra.read, ["x.ra"], {}),
    "ra.write": (raconvert.ra.write, ["o.ra", np.arange(3)], {}),
}
ONCE = {"jobs", "progress"}  # processes; a function of the caller's, whose errors are the caller's


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    raconvert.write("x.ra", np.arange(6).reshape(2, 3))
    Path("d").mkdir()
    shutil.copy("x.ra", "d/x.ra")
    return tmp_path


def attempt(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> None:
    with contextlib.suppress(RaconvertError):
        result = function(*args, **named)
        getattr(result, "close", lambda: None)()


def test_every_public_function_is_here() -> None:
    public = {name for name in raconvert.__all__ if inspect.isfunction(getattr(raconvert, name))}
    assert public - set(CALLS) == {"formats", "refresh"}  # which take nothing
    own = {name for name in raconvert.ra.__all__ if inspect.isfunction(getattr(raconvert.ra, name))}
    assert {f"ra.{name}" for name in own} <= set(CALLS)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments_are_our_error(name: str) -> None:
    function, args, usual = CALLS[name]
    parameters = inspect.signature(function).parameters.values()
    optional = [one.name for one in parameters if one.default is not one.empty]
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters)
    taken = {one.name for one in list(parameters)[: len(args)]}
    for odd in ODD:
        for place in range(len(args)):
            if name != "migrate" or place or odd is not ODD[10]:  # "": the folder we are in
                attempt(function, [*args[:place], odd, *args[place + 1 :]], usual)
        for option in set(optional) - ONCE - taken:
            attempt(function, args, {**usual, option: odd})


@pytest.mark.usefixtures("here")
def test_the_message_names_the_argument() -> None:
    for call, words in [
        (lambda: raconvert.open(3), "argument path .*expected a path.*got int 3"),  # type: ignore[arg-type]
        (lambda: raconvert.open(None), "argument path"),  # type: ignore[arg-type]
        (lambda: raconvert.info([]), "argument path"),  # type: ignore[arg-type]
        (lambda: raconvert.convert(None, "y.npy"), "argument src"),  # type: ignore[arg-type]
        (lambda: raconvert.convert("x.ra", "y.npy", allow=3), "argument allow .*expected a list"),  # type: ignore[arg-type]
        (lambda: raconvert.convert("x.ra", "y.npy", dtype="nonsense"), "unknown element type"),
        (lambda: raconvert.write("y.ra", np.arange(3), out_opts=[1]), "argument out_opts"),  # type: ignore[arg-type]
        (lambda: raconvert.write("y.ra", [[1], [2, 3]]), "is not an array"),
        (lambda: raconvert.ra.write("y.ra", [[1], [2, 3]]), "is not an array"),
        (lambda: raconvert.ra.read(5), "argument path"),  # type: ignore[arg-type]
        (lambda: raconvert.ra.read(b"x.ra"), "argument path"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(UsageError, match=words):
            call()
    assert not Path("y.ra").exists()
    with pytest.raises(TypeError, match="nothing"):
        raconvert.convert("x.ra", "y.npy", nothing=1)  # type: ignore[call-arg]


def test_every_declared_type_has_its_check() -> None:
    """A type that is new in a signature would not be checked."""
    unchecked = set()
    for function, *_ in CALLS.values():
        for name, annotation in function.__annotations__.items():
            if name != "return":
                unchecked.add(annotation.removesuffix(" | None"))
    unchecked -= set(declared._DECLARED)
    assert unchecked == {"Any", "Any | Mapping[str, Any]", "np.ndarray[Any, Any]"}


@every(
    "values, error",
    [
        (np.array([object()]), Unsupported),
        (np.ma.masked_array([1, 2], [0, 1]), UsageError),
        (np.array([1, 2], "longdouble"), Unsupported),
        ({1: np.arange(3)}, UsageError),
        ([[1], [2, 3]], UsageError),
        (object(), Unsupported),
        ((n for n in range(3)), Unsupported),
    ],
    ids=["objects", "masked", "long double", "names", "ragged", "object", "generator"],
)
@every("suffix", ["ra", "npy", "npz", "h5", "mat", "nrrd", "zip"])
def test_what_is_not_an_array_is_our_error(
    tmp_path: Path, values: Any, error: type[RaconvertError], suffix: str
) -> None:
    with pytest.raises(error):
        raconvert.write(tmp_path / f"x.{suffix}", values)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["ra", "npy", "npz", "h5", "zip"])
@pytest.mark.parametrize(
    "values",
    [np.array(["a\0b", "", "ü"]), np.array([b"a\0b", b"c"]), np.array(["NaT", "2020-01-01"], "M8[ns]"),
     np.array(["NaT", 5], "m8[s]")],
    ids=["text", "bytes", "dates", "spans"],
)  # fmt: skip
def test_odd_values_are_kept(tmp_path: Path, values: np.ndarray[Any, Any], suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    raconvert.write(path, values)
    with raconvert.open(path) as found:
        array = found if isinstance(found, raconvert.Array) else found["x"]
        assert np.asarray(array).tobytes() == values.tobytes()
