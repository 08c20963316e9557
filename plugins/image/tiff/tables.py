"""Words and numbers of TIFF tags (TIFF 6.0, section 8, and registered ones)."""

from __future__ import annotations

UNITS = {1: "none", 2: "inch", 3: "cm"}
# Tags that say how the pixels are stored, or that are metadata here.
KNOWN = frozenset({
    254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 270, 273, 274, 277, 278, 279, 280, 281,
    282, 283, 284, 288, 289, 296, 305, 306, 317, 320, 322, 323, 324, 325, 330, 338, 339, 340, 341,
    530, 532, 700, 32996, 34675, 50838, 50839,
})  # fmt: skip
