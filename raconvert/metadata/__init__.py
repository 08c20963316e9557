"""Metadata beside a file: the sidecar, its YAML, and the way back."""

SUFFIX = ".yaml"  # of a sidecar, behind the whole name of its file
ITEMS_SUFFIX = ".items.jsonl"  # of the metadata of the single items of a stack
