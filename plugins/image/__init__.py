"""Images other than PNG: one module for each format, each a plugin of its own.

Pillow decodes BMP, GIF, JPEG and WebP (`reader`) and encodes them, through imageio with the backend
pinned (`writer`); tifffile reads and writes the structure of TIFF; netpbm needs numpy alone. Sizes
are checked against the file and ``--max-memory`` before any pixel is decoded. What the libraries
would change silently (deep colour, scaled values, composed animations) is refused by name.

All of them share one namespace for metadata, ``image`` (see `metadata`). Orientation, gamma and
colour profiles are kept and never applied.
"""
