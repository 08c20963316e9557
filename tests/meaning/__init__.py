"""The law of meaning: what an array is about arrives, or the report names it, or nothing is written.

    python -m tests.meaning --cases 20000

makes arrays with names, labels, coordinates, units, positions in space, slopes and fill values,
texts and attributes in every type, one alone or up to three that may share axes, and sends them
through a chain of up to four formats, by ways that are drawn at random (named, added one after the
other, cast, moved, cut, stacked, unscaled, through xarray; several are moved and cut together). At
the end, readers that are not ours look at the file: `h5py`, xarray with its own engines, `pynrrd`,
nibabel, SimpleITK, tifffile, harpy3, pypng, Pillow, PyYAML, and for CFL, IDX, netpbm, CIFAR and
SciDB the header read by hand and `numpy.fromfile`. For each fact of each axis and array one of these must hold:

- *seen*: an independent reader sees it, where it belongs;
- *kept*: that reader sees nothing of it, and raconvert reads it back as it was;
- *named*: the report of one of the conversions says that this field of this array is gone.

Where nothing was known nothing may be read, unless a report says that it is made up. Anything else
is a violation, and is printed with the seed that makes it again.
"""
