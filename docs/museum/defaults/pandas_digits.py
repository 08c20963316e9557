"""`read_csv` takes texts of digits for numbers.

library: pandas
manual: pandas.read_csv | to preserve and not interpret ``dtype``
"""

import numpy as np
import pandas as pd

given = np.array(["001", "1e5"])
pd.DataFrame({"id": [1, 2], "x": given}).to_csv("x.csv", index=False)
back = pd.read_csv("x.csv")["x"].to_numpy()

# The safe way: say that it is text
safe = pd.read_csv("x.csv", dtype={"x": str})["x"].to_numpy("U3")

# raconvert
import raconvert

ours = raconvert.read("x.csv", "x")["x"]
