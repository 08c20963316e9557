"""OME: images of microscopy with axes T, C, Z, Y, X, in TIFF (`ometiff`) and Zarr (`omezarr`).

Both formats share the translation of axes, units, channels and places (`axes`), the levels of a
pyramid (`levels`), and what only we read in a file of ours (`record`).
"""
