"""Migration: every array file of a tree into another format, resumable, by many workers.

`tree` finds the files, `plan` says what each becomes, `batches` cuts the plan into about one second
of work each, an engine (`serial`, `pool`, `cluster`) has workers carry them out (`work`), and
`driver` records in the `journal` what became of each. Only the driver writes the journal.
"""
