"""The options of `migrate`: those of a conversion that make sense for a tree, and its own."""

from __future__ import annotations

import os

from raconvert.conversion.options import Option, Transferring, options_of, table


class Migrating(Transferring, total=False):
    """The options of `migrate`."""

    jobs: int | None
    batch_seconds: float
    file_timeout: float | None
    containers: str | None
    stack_folders: bool
    stack_classes: bool
    journal: str | os.PathLike[str] | None
    scheduler: str | None
    scheduler_file: str | os.PathLike[str] | None
    shard: str | None
    paranoid: bool
    report: str | os.PathLike[str] | None


OWN = table(
    Migrating,
    Option("jobs", None,
           "worker processes (default: as many as there are processors, if that is faster)",
           "-j --jobs", metavar="N", kind="count"),
    Option("batch_seconds", 1.0, "work that a worker is given at a time, in seconds",
           "--batch-seconds", metavar="SECONDS", kind="number"),
    Option("file_timeout", None,
           "seconds without progress after which a file is given up (default: never)",
           "--file-timeout", metavar="SECONDS", kind="number"),
    Option("containers", None,
           "folder: every container becomes a folder of arrays; file: none does (default: those of "
           "several arrays, where the target holds one)", "--containers",
           choices=("folder", "file")),
    Option("stack_folders", False, "one stack for each folder of alike files",
           "--stack-folders", "flag"),
    Option("stack_classes", False,
           "one stack for each folder of class folders, with labels.* beside images.*; in a "
           "container: images, labels and classes",
           "--stack-classes", "flag"),
    Option("journal", None, "where the journal is kept (default: in the destination)", "--journal",
           metavar="FILE"),
    Option("scheduler", None,
           "work on Dask: the address of a trusted scheduler, or local:N for N processes here",
           "--scheduler", metavar="ADDRESS"),
    Option("scheduler_file", None, "work on Dask, whose scheduler has written its address here",
           "--scheduler-file", metavar="FILE"),
    Option("shard", None,
           "convert part I of N, as one of many runs at once that share a destination", "--shard",
           metavar="I/N"),
    Option("paranoid", False,
           "check by their digests the files that an earlier run has finished",
           "--paranoid", "flag"),
    Option("report", None, "write the certificate: FILE.html and FILE.json", "--report",
           metavar="FILE"),
)  # fmt: skip
_TAKEN = options_of(Transferring)  # options of a conversion, with the same meaning for every file
MIGRATION = (*_TAKEN, *OWN)
# Options that change neither which files are written nor their contents.
_FREE = {
    "overwrite", "skip_existing", "update", "max_memory", "verify", "dry_run",
    *(option.name for option in OWN
      if option.name not in ("stack_folders", "stack_classes", "containers")),
}  # fmt: skip
OF_CONVERSION = tuple(
    option.name for option in _TAKEN if option.name not in ("include", "exclude")
)  # options that each conversion of a file gets
FINGERPRINT = tuple(option.name for option in MIGRATION if option.name not in _FREE)
FLAGS = {option.name: option.flags.split()[-1] for option in MIGRATION}
