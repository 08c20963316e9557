"""The law of meaning: what an array is about arrives, or the report names it, or nothing is written.

    python -m tests.meaning --cases 20000

makes arrays with names, labels, coordinates, units, positions in space, texts and attributes in
every type, and sends each through a chain of up to four formats, by ways that are drawn at random
(named, cast, moved, cut, stacked, through xarray). At the end, readers that are not ours look at
the file: `h5py`, xarray with its own engines, `pynrrd`, nibabel, SimpleITK, harpy3, PyYAML. For
each fact one of these must hold:

- *seen*: an independent reader sees it, where it belongs;
- *kept*: that reader sees nothing of it, and raconvert reads it back as it was;
- *named*: the report of one of the conversions says that it is gone.

Anything else is a violation, and is printed with the seed that makes it again.
"""
