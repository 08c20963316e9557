"""One empty cell rounds the integers of its column.

library: pandas
link: https://github.com/pandas-dev/pandas/issues/48170 | pandas #48170, "read_csv corrupts integers on reading"
"""

import numpy as np
import pandas as pd

given = np.array([2**60 + 1])
table = pd.DataFrame({"id": [1, 2], "x": pd.array([2**60 + 1, None], "Int64")})
table.to_csv("x.csv", index=False)
back = pd.read_csv("x.csv")["x"].to_numpy()[:1].astype(np.int64)

# The safe way: a type that knows missing values
safe = pd.read_csv("x.csv", dtype={"x": "Int64"})["x"].to_numpy(np.int64, na_value=0)[:1]

# raconvert
import raconvert

found = raconvert.read("x.csv", "x")
ours = found["x"][~found["x.null"]]
