"""Checks of the bytes of an HDF5 file before libhdf5 reads them.

libhdf5 trusts object headers, B-trees and chunk indexes, and reads or writes out of bounds where
they are damaged. What is here reads them first, within the file, and raises `Corrupt`. A sound
file is read without any of it; SECURITY.md says what is promised. (HDF5 File Format Specification
Version 3.0, sections III and IV.)
"""
