"""Images other than PNG: one module for each format, each a plugin of its own.

What reads and writes the pixels is pinned for each format, so that no result depends on which
packages happen to be installed beside raconvert:

=======  ================================================  ========================================
format   read by                                           written by
=======  ================================================  ========================================
tiff     tifffile (structure), zlib and numpy; other       imageio v3, ``plugin="tifffile"``
         compressions by libtiff inside Pillow, through
         imageio v3, ``plugin="pillow"``
bmp      imageio v3, ``plugin="pillow"``                   the same; with alpha: a V4 header of ours
gif      LZW by imageio v3, ``plugin="pillow"``;           own blocks around Pillow's LZW
         frames composed here
jpeg     imageio v3, ``plugin="pillow"`` (libjpeg-turbo)   the same, with ``--allow precision``
webp     imageio v3, ``plugin="pillow"`` (libwebp)         the same, lossless
netpbm   numpy; nothing is decoded                         numpy
=======  ================================================  ========================================

Left to themselves, imageio and Pillow reduce 16-bit colour to 8 bits (TIFF and PPM), scale PGM
values, confuse the palettes and the transparency of GIF frames, merge equal GIF frames into one,
and fall through to whatever other backend is installed; tifffile without imagecodecs has no LZW,
inflates without a limit, and gives an empty array for a cut file. The modules here never let that
happen.

All of them share one namespace for metadata, ``image`` (see `metadata`), and three rules: several
pages or frames become a new first axis, one page or frame gives none; orientation tags, gamma and
colour profiles are kept and never applied; PNG is not read here.
"""
