"""Missing values through tables: pandas and R find them missing, and no value in their place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import raconvert
from raconvert.errors import WouldLose

TARGETS = {"parquet": pd.read_parquet, "arrow": pd.read_feather, "xlsx": pd.read_excel,
           "csv": pd.read_csv}  # fmt: skip


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "c": pd.Categorical(["lo", "hi", None, "lo"], categories=["lo", "hi"]),
            "x": pd.array([1, None, 3, 4], dtype="Int32"),
            "d": pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-03"]),
            "f": pd.array([1.5, None, float("nan"), 2], dtype="Float64"),
            "b": pd.array([True, None, False, True], dtype="boolean"),
            "all": pd.array([1, 2, 3, 4], dtype="int16"),
        }
    )


@pytest.mark.parametrize("suffix", TARGETS)
def test_records_with_missing_values_stay_missing(suffix: str, tmp_path: Path) -> None:
    """Neither 0 nor no text stands where a data frame has nothing."""
    frame().to_parquet(tmp_path / "a.parquet")
    raconvert.convert(tmp_path / "a.parquet", tmp_path / f"b.{suffix}", verify=True)
    back = TARGETS[suffix](tmp_path / f"b.{suffix}")
    assert list(back) == list(frame())
    for name in back:
        assert back[name].isna().tolist() == frame()[name].isna().tolist(), name
    assert back["x"].dropna().tolist() == [1, 3, 4]
    raconvert.convert(tmp_path / f"b.{suffix}", tmp_path / "c.parquet")
    again = pd.read_parquet(tmp_path / "c.parquet")
    assert again.isna().equals(frame().isna())


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "xlsx"])
def test_a_mask_that_says_nothing_comes_back(suffix: str, tmp_path: Path) -> None:
    record = np.array([(1, False, 2.5), (2, False, 0.0)], [("x", "i4"), ("x.null", "?"),
                                                           ("y", "f8")])  # fmt: skip
    raconvert.write(tmp_path / f"a.{suffix}", record, verify=True)
    assert list(TARGETS[suffix](tmp_path / f"a.{suffix}")) == ["x", "y"]
    with raconvert.open_bundle(tmp_path / f"a.{suffix}") as bundle:
        back = np.asarray(bundle.only())
    assert back.dtype == record.dtype
    assert (back == record).all()


@pytest.mark.parametrize("suffix", TARGETS)
def test_a_value_that_is_said_to_be_missing_is_not_dropped(suffix: str, tmp_path: Path) -> None:
    record = np.array([(1, True), (2, False)], [("x", "i4"), ("x.null", "?")])
    with pytest.raises(WouldLose, match="field 'x' has a value where 'x.null' says"):
        raconvert.write(tmp_path / f"a.{suffix}", record)
    assert not (tmp_path / f"a.{suffix}").exists()


def test_nulls_of_parquet_are_na_of_r(r: Callable[..., str], tmp_path: Path) -> None:
    columns = {"c": ["lo", None, "hi"], "x": pd.array([1, None, 3], dtype="Int32"),
               "b": pd.array([None, True, False], dtype="boolean"),
               "raw": pd.array([1, None, 3], dtype="UInt8")}  # fmt: skip
    pd.DataFrame(columns).to_parquet(tmp_path / "a.parquet")
    rds = tmp_path / "a.rds"
    raconvert.convert(tmp_path / "a.parquet", rds, in_opts={"layout": "columns"}, verify=True)
    read = f"x <- readRDS('{rds}'); cat(deparse(x$c), deparse(x$x), deparse(x$b), names(x))"
    assert r(read) == (
        'c("lo", NA, "hi") c(1L, NA, 3L) c(NA, TRUE, FALSE) c x b raw raw.null'
    )  # R has no missing byte


@pytest.mark.parametrize("suffix", TARGETS)
def test_na_of_r_is_missing_and_comes_back(
    suffix: str, r: Callable[..., str], tmp_path: Path
) -> None:
    """A data frame of R is one table, also if only some of its columns have metadata."""
    rds, table, back = (tmp_path / name for name in ("a.rds", f"b.{suffix}", "c.rds"))
    code = "data.frame(i=c(1L,NA,3L), s=c('p','q',NA), f=factor(c('u',NA,'u'),levels=c('v','u')))"
    r(f"saveRDS({code}, '{rds}')")
    raconvert.convert(rds, table, verify=True)
    read = TARGETS[suffix](table)
    assert read["i"].isna().tolist() == [False, True, False]
    assert read["s"].isna().tolist() == [False, False, True]
    assert read["f"].isna().tolist() == [False, True, False]
    if suffix != "csv":  # which keeps no classes
        raconvert.convert(table, back, verify=True)
        assert r(f"cat(identical({code}, readRDS('{back}')))") == "TRUE"
