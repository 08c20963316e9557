"""Faults of the system in the middle of writing: a call fails, is cut short, or is the last one.

``python -m tests.faults`` injects them at every system call that changes files, in every writer,
over old files and where nothing was, and looks at what is there afterwards. ``--sample N`` takes N
of them, evenly spread; ``--case NAME`` takes one writer. Needs Linux and gcc.
"""
