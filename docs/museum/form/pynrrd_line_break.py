"""A line break in a value makes a second field.

library: pynrrd
link: https://github.com/mhe/pynrrd/pull/57 | pynrrd #57, by which its two delimiters are treated the same
"""

import nrrd
import numpy as np

given = {"note": "first\nsecond: line"}
nrrd.write("x.nrrd", np.arange(3), dict(given))
header = nrrd.read_header("x.nrrd")
back = {key: header[key] for key in ("note", "second") if key in header}

# The safe way: escape line breaks yourself
import json

nrrd.write("safe.nrrd", np.arange(3), {"note": json.dumps(given["note"])})
safe = {"note": json.loads(nrrd.read_header("safe.nrrd")["note"])}

# raconvert
import raconvert

report = raconvert.write("ours.nrrd", np.arange(3), meta=raconvert.Metadata(attributes=given))
ours = dict(raconvert.open("ours.nrrd").meta.attributes)
