"""Tags that become metadata, and those that do not (TIFF 6.0, section 8, and registered ones)."""

from __future__ import annotations

# type -> bytes of one value, bytes that are swapped together
TYPES = {1: (1, 1), 2: (1, 1), 3: (2, 2), 4: (4, 4), 5: (8, 4), 6: (1, 1), 7: (1, 1), 8: (2, 2),
         9: (4, 4), 10: (8, 4), 11: (4, 4), 12: (8, 8), 16: (8, 8), 17: (8, 8)}  # fmt: skip
UNITS = {1: "none", 2: "inch", 3: "cm"}
TEXTS = {269: "document", 271: "make", 272: "model", 285: "page_name", 305: "software",
         306: "datetime", 315: "artist", 316: "host", 33432: "copyright"}  # fmt: skip
BYTES = {700: "xmp", 34675: "icc"}
# Photometric interpretation (tag 262) in words; the usual ones need none.
PHOTOMETRICS = {0: "miniswhite", 3: "palette", 4: "mask", 5: "separated", 6: "ycbcr", 8: "cielab",
                9: "icclab", 10: "itulab", 32803: "cfa", 34892: "linear raw"}  # fmt: skip
COMPRESSIONS = {
    6: "old-style JPEG", 34712: "JPEG 2000", 34887: "LERC", 34933: "PNG", 50001: "WebP",
    50002: "JPEG XL", 33003: "JPEG 2000", 33005: "JPEG 2000", 34676: "SGI LogL", 34677: "SGI LogL",
    32809: "ThunderScan",
}  # fmt: skip
# Tags that say how the pixels are stored, that are metadata above, or that point elsewhere.
KNOWN = frozenset({
    254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 270, 273, 274, 277, 278, 279, 280, 281,
    282, 283, 284, 288, 289, 292, 293, 296, 317, 320, 322, 323, 324, 325, 330, 332, 338, 339,
    340, 341, 347, 512, 513, 514, 515, 519, 520, 521, 530, 532, 34665, 34853, 40965,
    32996, 32997, 32998, 33628, 33629, 33630, 33631, 34412, 50838, 50839, *TEXTS, *BYTES,
})  # fmt: skip
