"""`imread` reads 16-bit grey as 8-bit colour.

library: opencv-python-headless
link: https://docs.rs/crate/opencv/latest/target-redirect/x86_64-unknown-linux-gnu/opencv/imgcodecs/constant.IMREAD_ANYDEPTH.html | "If set, return 16-bit/32-bit image when the input has the corresponding depth, otherwise convert it to 8-bit."
"""

import cv2
import numpy as np

given = np.array([[258, 65535]], np.uint16)
written = cv2.imwrite("x.png", given)
back = cv2.imread("x.png")

# The safe way: ask for what is in the file
safe = cv2.imread("x.png", cv2.IMREAD_UNCHANGED)

# raconvert
import raconvert

ours = raconvert.read("x.png")
