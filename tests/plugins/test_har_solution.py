"""Solution files of GEMPACK: variables by name, with results, shocks and zeros in their places."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import rounds
from damage import changed, problems
from pairs import quiet

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

harpy = pytest.importorskip("harpy")

# Three sets (TIME without elements); four variables: over COM x REG with components 2, 5 and 6
# exogenous, 5 and 6 shocked; over REG, exogenous and wholly shocked; a scalar, a change; over TIME,
# the results of two components of three kept.
TABLES: dict[str, Any] = {
    "VARS": ["p_trade", "tax", "c_bal", "p_gdp"],
    "VCLB": [" Trade", " Tax rate", " Balance", " Product"],
    "VCTP": ["p", "p", "c", "p"],
    "VNCP": [6, 3, 1, 3],
    "VCNA": [2, 1, 0, 1],
    "VCAR": [2, 1, 1, 3],
    "STNM": ["REG", "COM", "TIME"],
    "SSZ": [3, 2, 3],
    "ELST": ["k", "k", "u"],
    "STEL": ["EU", "USA", "Row", "food", "mnfc"],
    "ELAD": [1, 4, 0],
    "OREX": [3, 3, 0, 0],
    "OREL": [2, 5, 6],
    "CMND": [3, 0, 1, 2],
    "CMNL": [1, 3, 4, 1, 3],
    "PCUM": [1, 0, 4, 5],
    "SHCK": [2, 3, 0, 0],
    "SHCL": [5, 6],
    "PSHK": [1, 3, 0, 0],
    "STLS": [2, 6],
    "STDS": ["only trade", "the rest"],
    "001C": [2, 0, 0, 0],
    "001L": [5, 6],
    "002C": [0, 3, 0, 0],
    "002L": np.zeros(0),
    "VDSC": ["A test", "of two shocks"],
    "LVOK": ["y", "n", "n", "y"],
    "VCLE": [" lv p_trade  TRADE", "", "", " lv p_gdp    GDP"],
}
REALS = {
    "CUMS": [1, 3, 4, 7, 11, 13],
    "001S": [0.5, 1, 1, 3, 5, 6],
    "002S": [0.5, 2, 3, 4, 6, 7],
    "SHOC": [50, 60, 10, 20, 30],
    "LEVB": np.arange(9) + 1,
    "LEVA": np.arange(9) * 2 + 2,
}
TRADE = [[1, 3, 50], [0, 4, 60]]  # by COM and REG; component 2 is [1, 0]


def made(path: Path, framing: str = "little", **changes: Any) -> Path:
    """Write a solution file."""
    arrays = []
    for name, given in {**TABLES, **REALS, **changes}.items():
        if given is None:
            continue
        text = isinstance(given, list) and bool(given) and isinstance(given[0], str)
        if text:
            values = np.array(given, "S")
        else:
            values = np.asarray(given, "<f4" if name in REALS else "<i4").reshape(-1, 1)
        kind = "1C" if text else "2R" if name in REALS else "2I"
        meta = Metadata(description=name, formats={"har": {"type": kind}})
        arrays.append(Array(values, name=name, index_order="F", meta=meta))
    raconvert.write(path, raconvert.Bundle(arrays), to="har", out_opts={"framing": framing})
    return path


def headers_of(path: Path) -> dict[str, np.ndarray]:
    """The headers as harpy3 reads them."""
    with quiet():
        found = harpy.HarFileIO.readHeaderArraysFromFile(str(path))
    return {
        one["name"].strip(): np.array(one["array"].tolist()).reshape(one["array"].shape)
        for one in found
    }


@pytest.mark.parametrize("framing", ["little", "big", "lahey"])
def test_components_are_in_their_places(tmp_path: Path, framing: str) -> None:
    path = made(tmp_path / "x.sl4", framing)
    if framing == "little":  # the tables are what harpy3 takes them for
        seen = headers_of(path)
        assert seen["CUMS"].ravel().tolist() == REALS["CUMS"]
        assert seen["OREL"].ravel().tolist() == TABLES["OREL"]
        assert [str(name).strip() for name in seen["VARS"]] == TABLES["VARS"]
    with raconvert.open(path) as bundle:
        assert bundle.attributes == {"description": "A test\nof two shocks"}
        trade = bundle["p_trade"]
        assert [axis.name for axis in trade.axes] == ["COM", "REG", "RESULTS"]
        assert [*trade.axes[0].labels] == ["food", "mnfc"]
        assert [*trade.axes[1].labels] == ["EU", "USA", "Row"]
        assert [*trade.axes[2].labels] == ["Cumulative", "only trade", "the rest"]
        assert trade[..., 0].tolist() == TRADE
        assert trade[..., 1].tolist() == [[0.5, 1, 50], [0, 1, 60]]
        assert trade[..., 2].tolist() == [[0.5, 2, 0], [0, 3, 0]]
        assert (trade.meta.description, trade.meta.units) == ("Trade", "%")
        assert np.asarray(bundle["tax"]).T.tolist() == [[10, 20, 30], [0, 0, 0], [10, 20, 30]]
        assert np.asarray(bundle["c_bal"]).tolist() == [7, 3, 4]
        assert bundle["c_bal"].meta.units is None
        product = bundle["p_gdp"]
        assert [(axis.name, axis.labels and [*axis.labels]) for axis in product.axes][:1] == [
            ("TIME", None)
        ]
        assert np.isnan(product[1]).all()
        assert product[0].tolist() == [11, 5, 6]
        assert product[2].tolist() == [13, 6, 7]
        assert bundle.notes == ["not all results of p_gdp are there: the others are NaN"]
        levels = bundle["levels/TRADE"]
        assert levels[..., 0].ravel("F").tolist() == [1, 2, 3, 4, 5, 6]
        assert levels[..., 1].ravel("F").tolist() == [2, 4, 6, 8, 10, 12]
        assert [*levels.axes[2].labels] == ["before", "after"]
        assert bundle["levels/GDP"][:, 0].tolist() == [7, 8, 9]
        assert "headers/SHOC" in bundle.names
        assert not {"headers/CUMS", "headers/001S", "headers/LEVA"} & set(bundle.names)
        assert raconvert.read(f"{path}#tax").shape == (3, 3)


def test_without_subtotals_and_levels(tmp_path: Path) -> None:
    gone = dict.fromkeys(["STLS", "STDS", "001C", "001L", "001S", "002C", "002L", "002S", "LVOK"])
    path = made(tmp_path / "x.har", CMNL=np.zeros(0), CMND=[3, 0, 1, 3], CUMS=range(1, 8), **gone)
    with raconvert.open(path) as bundle:
        assert bundle["c_bal"].shape == ()
        assert bundle["p_trade"][...].tolist() == [[1, 2, 50], [0, 3, 60]]
        assert bundle["p_gdp"][...].tolist() == [5, 6, 7]
        assert not [name for name in bundle.names if name.startswith("levels/")]


@pytest.mark.parametrize(
    "changes",
    [
        {"SHCL": np.zeros(0), "SHCK": [3, 3, 0, 0], "SHOC": [40, 50, 60, 10, 20, 30],
         "PSHK": [1, 4, 0, 0], "001L": np.zeros(0), "001C": [3, 0, 0, 0]},
        {"SHCL": [5, 6, 1, 2, 3], "002L": [1, 2, 3]},
    ],
    ids=["all-exogenous", "all-listed"],
)  # fmt: skip
def test_lists_of_shocks_that_leave_out_less_or_more(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """HARPY takes the one form, HARr the other; the length of the list tells."""
    with raconvert.open(made(tmp_path / "x.sl4", **changes)) as bundle:
        first = 40 if len(changes["SHCL"]) == 0 else 0
        assert bundle["p_trade"][..., 0].tolist() == [[1, 3, 50], [first, 4, 60]]
        assert bundle["p_trade"][..., 2].tolist() == [[0.5, 2, 0], [0, 3, 0]]
        assert bundle["tax"][:, 2].tolist() == [10, 20, 30]


BROKEN: dict[str, dict[str, Any]] = {
    "set-number": {"VCAR": [9, 1, 1, 3]},
    "set-size": {"SSZ": [3, 1, 3]},
    "elements": {"ELAD": [1, 5, 0]},
    "results": {"PCUM": [5, 0, 4, 5]},
    "shocks": {"PSHK": [5, 3, 0, 0]},
    "component": {"OREL": [2, 5, 7]},
    "component-twice": {"OREL": [2, 5, 5]},
    "more-than-all": {"OREX": [7, 3, 0, 0]},
    "negative": {"OREX": [3, -3, 0, 0]},
    "short-list": {"CMNL": [1, 3, 4]},
    "short-table": {"VNCP": [6, 3, 1]},
    "names": {"VARS": ["tax", "tax", "c_bal", "p_gdp"]},
    "subtotal": {"002S": None},
    "subtotal-length": {"002S": [1, 2]},
    "not-shocked": {"001L": [1, 5]},
    "levels": {"LEVA": [1, 2]},
    "huge": {"VNCP": [6, 3, 1, 2**31 - 1], "SSZ": [3, 2, 2**31 - 1], "CMND": [3, 0, 2, 2]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_tables_that_contradict_each_other(tmp_path: Path, name: str) -> None:
    """Are refused, with the way to the headers as they are."""
    path = made(tmp_path / "x.sl4", **BROKEN[name])
    with pytest.raises(Corrupt, match='"solution": "headers"') as caught:
        raconvert.open(path)
    assert str(path) in str(caught.value)
    with raconvert.open(path, in_opts={"solution": "headers"}) as bundle:
        assert bundle["CUMS"][:, 0].tolist() == REALS["CUMS"]


def test_damaged_solutions(tmp_path: Path) -> None:
    """Every table is refused or decoded, by this package's own errors only."""
    outcomes = Counter[str]()
    whole = made(tmp_path / "x.sl4").read_bytes()
    assert [*problems("har", changed([whole], rounds(300, 100)), outcomes)] == []
    assert {"read", "Corrupt"} <= set(outcomes)


def test_a_real_solution(corpus: Callable[..., Path]) -> None:
    """What harpy3 reads of the tables, put together by hand; and what must be true of any."""
    path = corpus("har", "SJSUB.sl4")
    seen = headers_of(path)
    with raconvert.open(path) as bundle:
        names = [str(name).strip() for name in seen["VARS"]]
        assert list(bundle)[: len(names)] == names
        for number, name in enumerate(names):
            values = np.asarray(bundle[name])
            start, count = seen["PCUM"][number, 0] - 1, seen["VNCP"][number, 0]
            if name == "p_XFAC":  # exogenous: 10 % more labor, 20 % more capital, one a subtotal
                assert values.tolist() == [[10, 10, 0], [20, 0, 20]]
            else:
                for place, header in enumerate(("CUMS", "001S", "002S")):
                    want = seen[header][start : start + count, 0]
                    assert np.array_equal(values[..., place].ravel("F"), want)
            assert np.allclose(values[..., 0], values[..., 1:].sum(-1), rtol=1e-3, atol=1e-3)
            levels = np.asarray(bundle[f"levels/{name[2:]}"])
            assert np.allclose(levels[..., 1], levels[..., 0] * (1 + values[..., 0] / 100), 1e-5)
        assert [axis.name for axis in bundle["p_XF"].axes] == ["FAC", "SECT", "RESULTS"]
        assert [*bundle["p_XF"].axes[0].labels] == ["labor", "capital"]


def test_in_xarray(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    with xr.open_dataset(made(tmp_path / "x.sl4"), engine="raconvert") as dataset:
        found = dataset["p_trade"].sel(COM="mnfc", REG="Row", RESULTS="only trade")
        assert found.item() == 60
        assert dataset["p_trade"].attrs["units"] == "%"
        assert dataset["tax"].sel(REG="USA", RESULTS="Cumulative").item() == 20


def test_nothing_is_lost_in_a_container(tmp_path: Path) -> None:
    """All but the tables of results, which are the values of the variables."""
    h5py = pytest.importorskip("h5py")
    path = made(tmp_path / "x.sl4")
    raconvert.convert(path, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert set(file["headers"]) >= {*TABLES, "SHOC"} - {"RESULTS"}
        assert np.array_equal(file["p_trade"][..., 0], TRADE)


def test_levels_without_a_title_have_the_name_of_their_variable(tmp_path: Path) -> None:
    path = made(tmp_path / "x.sl4", VCLE=[" lv p_trade  TRADE", "", "", ""])
    with raconvert.open(path) as bundle:
        assert bundle["levels/p_gdp"][:, 0].tolist() == [7, 8, 9]
