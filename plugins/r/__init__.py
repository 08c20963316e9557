"""Files of R: one module for each form, each a plugin of its own.

`rds` is one object (``saveRDS``), `rdata` several by name (``save``, ``save.image``). Both hold the
same serialization, which `items` parses, `tree` turns into arrays and `writer` writes.
"""
