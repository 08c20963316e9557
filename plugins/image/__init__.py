"""Images other than PNG: one module for each format, each a plugin of its own.

Pillow decodes and encodes BMP, GIF, JPEG and WebP; tifffile reads and writes the structure of TIFF;
netpbm needs numpy alone. Sizes are checked against the file and ``--max-memory`` before any pixel
is decoded. What the libraries would change silently (deep colour, scaled values, composed
animations) is refused by name. All share one namespace for metadata, ``image`` (see `metadata`).
"""
