"""The plugins of raconvert: one module per format, a folder when a format has several parts.

To add a format:

1. Copy the shape of `npy.py`: a docstring that is the specification, then `FORMAT`, `sniff`,
   `read`, `fits`, `write`.
2. Import the contract from `raconvert.plugin`, the errors from `raconvert.errors`; import the core
   absolutely and sibling modules relatively.
3. Keep the module light: numpy and any backend are imported inside the functions that need them.
4. Add its row to `raconvert/catalogue.py`.
5. If it is a folder, add the folder to `packages` in `pyproject.toml`.
6. Put a small whole file into `FORMAT.samples`.
7. Run the tests: the conformance suite and the pair suite pick the new row up by themselves.
8. Add `tests/plugins/test_NAME.py` for what is special to the format.
9. Put files made with an independent tool into `fixtures/NAME/`, with a line in its manifest.
10. Run `python -m docs.generate` to refresh the format table and pages.
"""
