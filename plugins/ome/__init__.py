"""OME: images of microscopy with axes T, C, Z, Y, X, in TIFF (`ometiff`) and Zarr (`omezarr`).

Both formats share the translation of axes, units, channels and positions (`axes`), the levels of a
pyramid (`levels`), and the record of an array that only raconvert reads (`record`).
"""
