"""Tags that become metadata, and those that do not (TIFF 6.0, section 8, and registered ones)."""

from __future__ import annotations

UNITS = {1: "none", 2: "inch", 3: "cm"}
TEXTS = {269: "document", 271: "make", 272: "model", 285: "page_name", 305: "software",
         306: "datetime", 315: "artist", 316: "host", 33432: "copyright"}  # fmt: skip
BYTES = {700: "xmp", 34675: "icc"}
# Tags that say how the pixels are stored, that are metadata above, or that point elsewhere.
KNOWN = frozenset({
    254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 270, 273, 274, 277, 278, 279, 280, 281,
    282, 283, 284, 288, 289, 292, 293, 296, 317, 320, 322, 323, 324, 325, 330, 332, 338, 339,
    340, 341, 347, 512, 513, 514, 515, 519, 520, 521, 530, 532, 34665, 34853, 40965,
    32996, 32997, 32998, 33628, 33629, 33630, 33631, 34412, 50838, 50839, *TEXTS, *BYTES,
})  # fmt: skip
