"""Random datasets of xarray, sent through files, compared as xarray's own engines open them.

    python -m tests.cf_datasets 2000 7       2000 cases from seed 7

Each step is a process of its own: netCDF4 brings another HDF5 library than h5py has, and two of
them do not live in one process. `make` writes the sources with the engines of xarray, `convert`
sends them through raconvert, `compare` opens source and destination with the engines of xarray and
asks `assert_identical`. One line is printed for each case that differs.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ["time", "y", "x", "station", "level", "lat", "λ", "a b", "n-1"]
ATTRIBUTES: list[tuple[str, Any]] = [
    ("long_name", "a long name"), ("description", "what it is"), ("standard_name", "air_pressure"),
    ("units", "hPa"), ("title", "grüße"), ("one_int", np.int16(7)), ("one_float", np.float32(0.1)),
    ("two", np.array([1, 2], "i2")), ("floats", np.array([0.5, 1.5, 2.5], "f4")),
    ("one_list", np.array([9], "i8")), ("axis", "Y"), ("empty", ""), ("comment", "one\ntwo"),
    ("valid_range", np.array([-100, 100], "i4")), ("flag_values", np.array([0, 1, 2], "i1")),
    ("name", "other"), ("dims", "x y"), ("shape", np.int32(3)), ("texts", ["a", "bc"]),
]  # fmt: skip
NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
WAYS = {  # suffixes of destinations, in order, and options
    "zarr3": [(".zarr", {})],
    "zarr2": [(".zarr", {"format": "2"})],
    "nc": [(".nc", {})],
    "h5": [(".h5", {})],
    "zarr3-nc": [(".zarr", {}), (".nc", {})],
    "zarr2-nc": [(".zarr", {"format": "2"}), (".nc", {})],
    "nc-zarr3": [(".nc", {}), (".zarr", {})],
    "classic": [(".cdf", {})],
    "classic-nc": [(".cdf", {}), (".nc", {})],
    "classic-zarr3-classic-nc": [(".cdf", {}), (".zarr", {}), (".nc3", {}), (".nc", {})],
}
SOURCES = ("netcdf4", "h5netcdf", "zarr2", "zarr3")


def dataset(seed: int) -> Any:
    """Return the dataset of a seed, and its groups: a dict of path to Dataset."""
    rng = random.Random(seed)
    made = {"/": _dataset(rng, {})}
    if rng.random() < 0.25:
        inherited = {d: n for d, n in made["/"].sizes.items() if d in made["/"].indexes}
        made["/inner"] = _dataset(rng, inherited, "g_")
        if rng.random() < 0.4:
            made["/inner/deep"] = _dataset(rng, {}, "h_")
    return made


def _dataset(rng: random.Random, inherited: dict[str, int], prefix: str = "") -> Any:
    import xarray as xr

    dims = {prefix + name: rng.choice([1, 2, 3, 3, 4, 5])
            for name in rng.sample(NAMES, rng.randint(0 if prefix else 1, 3))}  # fmt: skip
    coords: dict[str, Any] = {}
    for dim, length in dims.items():
        values, attrs, encoding = _coordinate(rng, length)
        if values is not None:
            coords[dim] = xr.Variable((dim,), values, attrs, encoding)
    every = {**dims, **inherited}
    for number in range(rng.randint(0, 3)):
        name = f"{prefix}aux{number}"
        chosen = tuple(rng.sample([*every], rng.randint(0, min(2, len(every)))))
        coords[name] = _variable(rng, chosen, every)
    variables: dict[str, Any] = {}
    for number in range(rng.randint(1, 4)):
        chosen = tuple(rng.sample([*every], rng.randint(0, min(3, len(every)))))
        variables[f"{prefix}v{number}"] = _variable(rng, chosen, every)
    if coords and rng.random() < 0.3:
        dim = rng.choice([*dims]) if dims else None
        if dim in coords and coords[dim].dtype.kind == "f":
            name = f"{dim.replace(' ', '_')}_bnds"
            coords[dim].attrs["bounds"] = name
            values = np.stack([coords[dim].values, coords[dim].values + 1], axis=1)
            variables[name] = xr.Variable((dim, f"{prefix}nv"), values)
    if rng.random() < 0.3:
        variables[f"{prefix}crs"] = xr.Variable((), np.int32(0), {"grid_mapping_name": "geos"})
        variables[f"{prefix}v0"].attrs["grid_mapping"] = f"{prefix}crs"
    if len(variables) > 1 and rng.random() < 0.3:
        variables[f"{prefix}v0"].attrs["ancillary_variables"] = [*variables][1]
    return xr.Dataset(variables, coords, _attributes(rng))


def _attributes(rng: random.Random) -> dict[str, Any]:
    return dict(rng.sample(ATTRIBUTES, rng.choice([0, 0, 1, 2, 3, 5])))


def _coordinate(rng: random.Random, length: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    kind = rng.choice(["none", "regular", "odd", "int", "i4", "f4", "text", "date", "descending"])
    attrs = _attributes(rng)
    if kind == "none":
        return None, {}, {}
    if kind == "date":
        step = rng.choice([1, 6, 24]) * np.timedelta64(1, "h")
        values = np.datetime64("2001-02-03", "ns") + np.arange(length) * step
        attrs.pop("units", None)
        units = rng.choice(["days since 2000-01-01", "hours since 1990-01-01", None])
        calendar = rng.choice(["standard", "proleptic_gregorian", None])
        encoding = {"units": units, "calendar": calendar}
        return values, attrs, {key: value for key, value in encoding.items() if value}
    if kind == "text":
        texts = ["Rome", "Oslo", "São Paulo", "Łódź", "東京"][:length]
        return np.array(texts, object if rng.random() < 0.5 else "U"), attrs, {}
    values = np.arange(length) * 0.5 + rng.choice([0, 10.25, -3])
    if kind == "odd":
        values = np.cumsum([rng.choice([0.1, 1.3, 2.7]) for _ in range(length)])
    if kind == "descending":
        values = values[::-1] * 3
    if kind in ("int", "i4"):
        values = np.arange(length).astype("i8" if kind == "int" else "i4") * 2 + 5
    return values.astype("f4") if kind == "f4" else values, attrs, {}


def _variable(rng: random.Random, dims: tuple[str, ...], lengths: dict[str, int]) -> Any:
    import xarray as xr

    shape = tuple(lengths[dim] for dim in dims)
    count = int(np.prod(shape))
    attrs, encoding = _attributes(rng), {}
    kind = rng.choice(["number", "number", "number", "packed", "text", "date", "bool", "fill"])
    bits = np.random.default_rng(rng.randrange(1 << 30))
    if kind == "text":
        texts = bits.choice(["a", "bc", "", "grüße", "東京 tower"], count)
        return xr.Variable(dims, texts.astype(object if rng.random() < 0.5 else "U").reshape(shape),
                           attrs)  # fmt: skip
    if kind == "date":
        attrs.pop("units", None)
        values = np.datetime64("2020-01-01", "ns") + bits.integers(0, 999, count).astype("m8[h]")
        return xr.Variable(dims, values.reshape(shape), attrs)
    if kind == "bool":
        return xr.Variable(dims, bits.integers(0, 2, count).astype(bool).reshape(shape), attrs)
    values = bits.integers(0, 100, count).reshape(shape)
    if kind == "packed":
        dtype = rng.choice(["i1", "i2", "u1", "i4"])
        encoding = {"dtype": dtype, "_FillValue": np.dtype(dtype).type(rng.choice([127, 100, 0]))}
        width = rng.choice([np.float32, np.float64])
        encoding["scale_factor"] = width(rng.choice([0.5, 0.01]))
        if rng.random() < 0.5:
            encoding["add_offset"] = width(rng.choice([0, 5, 273.15]))
        offset = float(encoding.get("add_offset", 0))
        floats = values * float(encoding["scale_factor"]) + offset
        attrs.pop("valid_range", None)
        return xr.Variable(dims, _with_holes(rng, floats), attrs, encoding)
    if kind == "fill":
        dtype = rng.choice(["f4", "f8", "i2", "i4", "u1"])
        encoding = {"dtype": dtype}
        fills = [np.nan, -999.0, 1e20] if dtype[0] == "f" else [99, 0]
        encoding["_FillValue"] = np.dtype(dtype).type(rng.choice(fills))
        if rng.random() < 0.3:
            encoding["missing_value"] = encoding["_FillValue"]
        return xr.Variable(dims, _with_holes(rng, values.astype("f8")), attrs, encoding)
    dtype = rng.choice(NUMBERS)
    if dtype[0] == "f" and rng.random() < 0.3:
        encoding = {"_FillValue": None}
    return xr.Variable(dims, values.astype(dtype), attrs, encoding)


def _with_holes(rng: random.Random, values: Any) -> Any:
    if values.size and rng.random() < 0.7:
        values.reshape(-1)[rng.randrange(values.size)] = np.nan
    return values


# Attributes of types that JSON has, too, so that nothing is lost on the way.
PORTABLE: list[tuple[str, Any]] = [
    ("long_name", "a long name"), ("description", "what it is"), ("standard_name", "air_pressure"),
    ("title", "grüße"), ("one_int", 7), ("one_float", 0.1), ("two", [1, 2]), ("floats", [0.5, 1.5]),
    ("comment", "one\ntwo"), ("texts", ["a", "bc"]), ("empty", ""), ("axis", "Y"),
]  # fmt: skip


def portable(seed: int) -> Any:
    """Return a dataset that netCDF-4 and both versions of Zarr hold wholly."""
    import xarray as xr

    rng = random.Random(seed)
    lengths = {dim: rng.randint(1, 5) for dim in rng.sample(NAMES, 3)}
    made = {dim: _portable_coordinate(rng, dim, length) for dim, length in lengths.items()}
    made = {dim: one for dim, one in made.items() if one is not None}
    for number in range(3):
        dims = tuple(rng.sample([*lengths], rng.randint(0, 3)))
        made[f"v{number}"] = _portable_variable(rng, {dim: lengths[dim] for dim in dims})
    return xr.Dataset(made, attrs=dict(rng.sample(PORTABLE, 3)))


def _portable_coordinate(rng: random.Random, dim: str, length: int) -> Any:
    import xarray as xr

    kind = rng.choice(["none", "regular", "odd", "whole", "text", "time", "single"])
    if kind == "none":
        return None
    values = {
        "odd": np.cumsum([rng.choice([0.1, 1.3, 2.7]) for _ in range(length)]),
        "whole": np.arange(length) * 2 + 5,
        "time": np.arange(length) * 6,
        "text": np.array(["Rome", "Oslo", "São Paulo", "Łódź", "東京"][:length], object),
        "single": np.arange(length, dtype="f4") * 3,
    }.get(kind, np.arange(length) * 0.5 - 3)
    units = {
        "time": {"units": "hours since 2001-02-03", "calendar": "standard"},
        "text": {},
    }.get(kind, {"units": rng.choice(["m", "degrees_north"])})
    return xr.Variable((dim,), values, {**dict(rng.sample(PORTABLE, 3)), **units})


def _portable_variable(rng: random.Random, lengths: dict[str, int]) -> Any:
    import xarray as xr

    shape = tuple(lengths.values())
    attrs = dict(rng.sample(PORTABLE, 3))
    kind = rng.choice(["number", "packed", "fill", "text"])
    count = int(np.prod(shape))
    if kind == "text":
        texts = rng.choices(["a", "", "grüße", "東京 tower"], k=count)
        return xr.Variable([*lengths], np.array(texts, object).reshape(shape), attrs)
    values = np.arange(count).astype(rng.choice(NUMBERS[:5] if kind == "packed" else NUMBERS))
    if kind != "number":
        attrs["_FillValue"] = values.dtype.type(rng.choice([3, 100]))
    if kind == "packed":
        attrs |= {"scale_factor": 0.5, "add_offset": rng.choice([0.0, 273.15])}
    return xr.Variable([*lengths], values.reshape(shape), attrs)


PRIVATE = ("raconvert", "DIMENSION_LABELS")


def private_attributes(path: Path) -> list[str]:
    """Return where a file has attributes that only raconvert or HDF5 knows."""
    import h5py

    if path.suffix == ".zarr":
        documents = (*path.rglob("zarr.json"), *path.rglob(".zattrs"))
        return [str(one) for one in documents if '"raconvert"' in one.read_text()]
    found: list[str] = []
    with h5py.File(path) as file:

        def look(name: str, one: Any) -> None:
            found.extend(f"{name}: {key}" for key in one.attrs if key in PRIVATE)

        look("/", file)
        file.visititems(look)
    return found


# The steps ----------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Write a line of the outcome."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def engine_of(path: str | Path, source: str) -> str:
    """Return the engine of xarray for a file of a case."""
    path = Path(path)
    if path.suffix == ".zarr":
        return "zarr"
    by_netcdf4 = path.suffix == ".cdf" or (source == "netcdf4" and path.suffix == ".nc")
    return "netcdf4" if by_netcdf4 else "h5netcdf"


def source_of(folder: Path, seed: int) -> tuple[str, Path]:
    """Return the engine of a case's source, and its path."""
    source = SOURCES[seed % len(SOURCES)]
    return source, folder / f"{seed}{'.zarr' if source.startswith('zarr') else '.nc'}"


def make(folder: Path, seeds: range) -> None:
    """Write the sources."""
    import xarray as xr

    for seed in seeds:
        source, path = source_of(folder, seed)
        tree = xr.DataTree.from_dict(dataset(seed))
        if source.startswith("zarr"):
            tree.to_zarr(path, zarr_format=int(source[-1]), consolidated=False)
        else:
            tree.to_netcdf(path, engine=source)


def ways_of(seed: int) -> list[str]:
    """Return the ways that a case goes."""
    if SOURCES[seed % len(SOURCES)].startswith("zarr"):
        return ["zarr3", "zarr2", "nc", "nc-zarr3", "classic-nc"]
    ways = ["zarr3", "zarr2", "nc", "h5", "zarr3-nc", "zarr2-nc", "classic-zarr3-classic-nc"]
    # Classic files have no groups, and h5netcdf, in whose process netCDF4 is not loaded, no such.
    flat = SOURCES[seed % len(SOURCES)] == "netcdf4" and len(dataset(seed)) == 1
    return [*ways, "classic"] if flat else ways


def destination(folder: Path, seed: int, way: str) -> Path:
    """Return the last destination of a case on a way."""
    return folder / f"{seed}.{way}{WAYS[way][-1][0]}"


def convert(folder: Path, seeds: range) -> None:
    """Send the sources through raconvert, and through `raconvert.write`."""
    import raconvert

    for seed in seeds:
        _, path = source_of(folder, seed)
        for way in ways_of(seed):
            here, said = path, ""
            try:
                for step, (suffix, options) in enumerate(WAYS[way]):
                    last = step == len(WAYS[way]) - 1
                    there = folder / f"{seed}.{way}{'' if last else '.mid'}{suffix}"
                    report = raconvert.convert(here, there, out_opts=options)
                    said += f"{report.equivalent}\n"
                    here = there
                there.with_suffix(".said").write_text(said)
            except Exception as error:  # noqa: BLE001 - a case that fails is a line
                say(f"{seed} {way}: {type(error).__name__}: {error}"[:400])


def compare(folder: Path, seeds: range, engines: tuple[str, ...]) -> None:
    """Open sources and destinations with the engines of xarray."""
    for seed in seeds:
        source, path = source_of(folder, seed)
        if engines != ("netcdf4",):  # the engine of raconvert, beside that of xarray
            own = "zarr" if source.startswith("zarr") else "h5netcdf"
            problem = differences(path, path, own, "raconvert")
            if problem:
                say(f"{seed} {source} engine: {problem}")
            for suffix in (".zarr", ".nc"):
                problem = written(path, folder / f"{seed}.write{suffix}", own)
                if problem:
                    say(f"{seed} {source} write{suffix}: {problem}")
        if (source == "netcdf4") != (engines == ("netcdf4",)):
            continue
        for way in ways_of(seed):
            there = destination(folder, seed, way)
            if not there.exists():
                continue
            problem = differences(path, there, engine_of(path, source), engine_of(there, source))
            if problem:
                say(f"{seed} {source} {way}: {problem}")


def differences(here: Path, there: Path, own: str, other: str) -> str:
    """Return in which way two files differ as xarray opens them; "" if they are identical.

    JSON has no NaN, classic files no lists of texts: an attribute of such a value may be gone if
    the report has named it.
    """
    import xarray as xr

    said = "" if here == there else there.with_suffix(".said").read_text()
    # Texts are strings in netCDF-4 and chars in classic files: alike once they are decoded.
    raw: list[dict[str, Any]] = [] if there.suffix == ".cdf" else [{"decode_cf": False}]
    for options in (*raw, {}):
        try:
            with opened(here, own, **options) as a, opened(there, other, **options) as b:
                a, b = _plain(a, said), _plain(b, said)  # noqa: PLW2901
            # JSON has no type for a scale: xarray decodes with float64 what netCDF has as float32.
            if options or (own == "zarr") == (other == "zarr") or here == there:
                xr.testing.assert_identical(a, b)
                continue
            for one in a.subtree:
                xr.testing.assert_allclose(one.to_dataset(), b[one.path].to_dataset())
        except AssertionError as error:
            return f"{options} {error}"[:1500]
        except Exception as error:  # noqa: BLE001 - a case that fails is a line
            return f"{options} {type(error).__name__}: {error}"[:600]
    return ""


def written(here: Path, there: Path, own: str) -> str:
    """Return how a Dataset that `raconvert.write` has written differs from the one given to it."""
    import xarray as xr

    import raconvert

    try:
        with opened(here, own) as tree:
            given = tree.to_dataset().load()
        said = str(raconvert.write(there, given).equivalent)
        with opened(there, engine_of(there, "")) as tree:
            found = tree.to_dataset().load()
        a, b = (_plain(xr.DataTree(one), said) for one in (given, found))
        xr.testing.assert_identical(a, b)
    except AssertionError as error:
        return str(error)[:1500]
    except Exception as error:  # noqa: BLE001 - a case that fails is a line
        return f"{type(error).__name__}: {error}"[:600]
    return ""


def opened(path: Path, engine: str, **options: Any) -> Any:
    """Open all groups of a file."""
    import xarray as xr

    more = {"consolidated": False} if engine == "zarr" else {}
    return xr.open_datatree(path, engine=engine, **options, **more)


def _plain(tree: Any, said: str) -> Any:
    """The values of a tree in memory, without the attribute that is ours."""
    import xarray as xr

    found = {}
    for node in tree.subtree:
        made = node.to_dataset(inherit=False).load()
        for attrs in (made.attrs, *(one.attrs for one in made.variables.values())):
            attrs.pop("raconvert", None)
            for key, value in list(attrs.items()):  # netCDF has no vectors of one element, JSON has
                if isinstance(value, list) and len(value) == 1:
                    attrs[key] = value[0]
                lost = isinstance(value, list) or (
                    isinstance(value, float | np.floating) and np.isnan(value)
                )
                if lost and f"'{key}'" in said:
                    attrs.pop(key)
        found[node.path] = made
    return xr.DataTree.from_dict(found)


STEPS = {
    "make": make,
    "convert": convert,
    "compare": lambda folder, seeds: compare(folder, seeds, ("h5netcdf", "zarr")),
    "compare-netcdf4": lambda folder, seeds: compare(folder, seeds, ("netcdf4",)),
}


def run(first: int, count: int) -> list[str]:
    """Return a line for each case that differs."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, "-W", "ignore", "-m", "tests.cf_datasets", step, folder,
                       str(first), str(count)]  # fmt: skip
            done = subprocess.run(
                command, capture_output=True, check=False, text=True,
                cwd=Path(__file__).resolve().parents[1],
            )  # fmt: skip
            found += [line for line in done.stdout.splitlines() if line.strip()]
            if done.returncode:
                found.append(f"{step} ended with {done.returncode}: {done.stderr[-2000:]}")
    return found


def main(words: list[str]) -> int:
    """Run a step, or all of them and print what differs."""
    warnings.simplefilter("ignore")
    if words[:1] and words[0] in STEPS:
        STEPS[words[0]](Path(words[1]), range(int(words[2]), int(words[2]) + int(words[3])))
        return 0
    count, first = int(words[0]), int(words[1]) if len(words) > 1 else 0
    found = run(first, count)
    say("\n".join(found))
    say(f"{count} datasets from {first}: {len(found)} lines of differences")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
