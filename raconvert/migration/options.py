"""The options of `migrate`: those of a conversion that make sense for a tree, and its own."""

from __future__ import annotations

from raconvert.conversion.options import OPTIONS, Option, path_option

# Of a conversion; what they mean there they mean here, for every file.
_TAKEN = (
    "from_", "in_opts", "out_opts", "arrays", "include", "exclude", "overwrite", "skip_existing",
    "update", "allow", "trust", "strict", "dtype", "axes", "index_order", "meta", "scale",
    "unscale", "bits", "max_memory", "verify", "dry_run",
)  # fmt: skip
OWN = (
    Option("jobs", "int | None", None,
           "worker processes (default: as many as there are processors, if that is faster)",
           "-j --jobs", metavar="N", kind="count"),
    Option("batch_seconds", "float", 1.0, "work that a worker is given at a time, in seconds",
           "--batch-seconds", metavar="SECONDS", kind="number"),
    Option("file_timeout", "float | None", None,
           "seconds without progress after which a file is given up (default: never)",
           "--file-timeout", metavar="SECONDS", kind="number"),
    Option("containers", "str | None", None,
           "folder: every container becomes a folder of arrays; file: none does (default: those of "
           "several arrays, where the target holds one)", "--containers",
           choices=("folder", "file")),
    Option("stack_folders", "bool", False, "one stack for each folder of alike files",
           "--stack-folders", "flag"),
    Option("stack_classes", "bool", False,
           "one stack for each folder of class folders, with labels.* beside images.*; in a "
           "container: images, labels and classes",
           "--stack-classes", "flag"),
    path_option("journal", "where the journal is kept (default: in the destination)", "--journal"),
    Option("scheduler", "str | None", None,
           "work on Dask: the address of a trusted scheduler, or local:N for N processes here",
           "--scheduler", metavar="ADDRESS"),
    path_option("scheduler_file", "work on Dask, whose scheduler has written its address here",
                "--scheduler-file"),
    Option("shard", "str | None", None,
           "convert part I of N, as one of many runs at once that share a destination", "--shard",
           metavar="I/N"),
    Option("paranoid", "bool", False,
           "prove by their digest that files are there which an earlier run has finished",
           "--paranoid", "flag"),
    path_option("report", "write the certificate: FILE.html and FILE.json", "--report"),
)  # fmt: skip
MIGRATION = (*(option for option in OPTIONS if option.name in _TAKEN), *OWN)
# What changes neither which files there are nor what is in them.
_FREE = {
    "overwrite", "skip_existing", "update", "max_memory", "verify", "dry_run",
    *(option.name for option in OWN
      if option.name not in ("stack_folders", "stack_classes", "containers")),
}  # fmt: skip
OF_CONVERSION = tuple(
    name for name in _TAKEN if name not in ("include", "exclude")
)  # of what goes on to `convert`
FINGERPRINT = tuple(option.name for option in MIGRATION if option.name not in _FREE)
FLAGS = {option.name: option.flags.split()[-1] for option in MIGRATION}
