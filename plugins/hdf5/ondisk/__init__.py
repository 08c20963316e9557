"""Checks of the bytes of an HDF5 file before libhdf5 reads them.

libhdf5 trusts object headers, B-trees and chunk indexes, and reads or writes out of bounds where
they are damaged. These modules read them first, within the file, and raise `Corrupt`. A sound file
could be read without them; SECURITY.md says what is promised. (HDF5 File Format Specification
Version 3.0, sections III and IV.)
"""
