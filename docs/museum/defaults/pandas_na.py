"""`read_csv` takes the texts NA and null for missing.

library: pandas
manual: pandas.read_csv | Whether or not to include the default ``NaN`` values when parsing the data.
link: https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html | the manual of `read_csv`
link: https://github.com/pandas-dev/pandas/issues/59314 | pandas #59314, the list of these texts
"""

import numpy as np
import pandas as pd

given = np.array(["NA", "null", "a"])
pd.DataFrame({"id": [1, 2, 3], "x": given}).to_csv("x.csv", index=False)
back = pd.read_csv("x.csv")["x"].to_numpy(object)

# The safe way: no text is missing
safe = pd.read_csv("x.csv", keep_default_na=False)["x"].to_numpy("U4")

# raconvert
import raconvert

ours = raconvert.read("x.csv", "x")["x"]
