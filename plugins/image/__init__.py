"""Images other than PNG: one module for each format, each a plugin of its own.

Pillow decodes and encodes GIF, JPEG and WebP, and writes BMP; tifffile reads and writes the
structure of TIFF, imagecodecs has most of its compressions; netpbm and the reading of BMP need
numpy alone. Sizes are checked against the file and ``--max-memory`` before any pixel is decoded.
What the libraries would change silently (deep colour, scaled values) is refused or kept as it is
stored. All share one namespace for metadata, ``image`` (see `metadata`).
"""
