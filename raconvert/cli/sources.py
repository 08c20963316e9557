"""Steps that the inspecting verbs share: how sources are named and read, and the exit code."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import RaconvertError, ReadFailed, UsageError
from raconvert.files.paths import is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.cli.console import Console
    from raconvert.conversion.read import Opened


def from_stdin(run: Callable[[Any, Console], int], args: Any, console: Console) -> int:
    """Run a verb where ``-`` among its files is the standard input."""
    from raconvert.files.streams import kept, standard_input

    with kept(standard_input()) as path:
        args.files = [path if word == "-" else word for word in args.files]
        console.name(path, "-")
        return run(args, console)


def reading(args: Any) -> dict[str, Any]:
    """Return the reading options of the command line, as `open_bundle` takes them."""
    return {
        "from_": args.from_,
        "arrays": args.arrays,
        "in_opts": dict(args.in_opts or ()),
        "meta": args.meta,
        "index_order": args.index_order,
        "trust": args.trust or (),
        "max_memory": args.max_memory,
    }


def no_destination(words: Sequence[str], verb: str = "") -> UsageError:
    """The error for a conversion without -o: it shows the line that was meant."""
    from raconvert.files.quoting import operand
    from raconvert.registry import by_suffix

    quoted_words = [operand(word) for word in words]
    last = words[-1] if len(words) > 1 else ""
    if last and not os.path.lexists(last) and by_suffix(last):
        line = f"raconvert {verb}{' '.join(quoted_words[:-1])} -o {quoted_words[-1]}"
        return UsageError(f"-o is missing before the destination '{last}'", remedy=line)
    sources = " ".join(quoted_words) or "SRC"
    if len(quoted_words) > 3:
        sources = f"{quoted_words[0]} ..."
    return UsageError(
        "no destination is named",
        remedy=f"to convert: raconvert {verb}{sources} -o DST (or --to FORMAT --out-dir DIR)\n"
        f"to look inside: raconvert info {sources}",
    )


def is_tree(path: str) -> bool:
    """True for a folder, unless it is one source, as a bundle is."""
    if not os.path.isdir(path):
        return False
    from raconvert.registry import is_one_source

    return not is_one_source(path)


def below(args: Any) -> dict[str, Any]:
    """Return the options that choose files of folders, as `expand` takes them."""
    return {
        "recursive": args.recursive,
        "include": args.include or (),
        "exclude": args.exclude or (),
    }


def chosen(args: Any) -> dict[str, Any]:
    """Return the options that choose files of a whole tree."""
    return {"include": args.include or (), "exclude": args.exclude or ()}


def expand(words: Sequence[str], *, views: bool = False, **gathering: Any) -> list[str]:
    """Expand words to files: files themselves, the contents of folders, matches of globs.

    With `views`, also the views of `raconvert refs` in folders, whatever their suffix. `gathering`
    are options of `raconvert.conversion.inputs.gather`.
    """
    files: list[str] = []
    for word in words:
        if os.path.isfile(word):
            files.append(word)
            continue
        from raconvert.conversion.inputs import gather, is_pattern

        if views and is_tree(word) and (views_here := _views(word, **gathering)):
            files += views_here
            continue
        several = "://" in word or os.path.isdir(word) or is_pattern(word)
        files += gather([word], **gathering).paths if several else [word]
    return files


def _views(
    folder: str, *, recursive: bool, include: Sequence[str], exclude: Sequence[str]
) -> list[str]:
    """Return the views in a folder and its other files; [] if it has no views."""
    from raconvert.conversion.inputs import gather, natural_sorted, wanted
    from raconvert.references.check import views_below

    views = {
        path
        for path in views_below(folder, recursive=recursive)
        if wanted(os.path.basename(path), include, exclude)
    }
    if not views:
        return []
    with suppress(ReadFailed):  # the folder has nothing but views
        views.update(gather([folder], recursive=recursive, include=include, exclude=exclude).paths)
    return natural_sorted(views)


def failing(console: Console, failures: list[Any]) -> Callable[[str, RaconvertError], int]:
    """Return the function that `each` calls for a failure: it reports it, with --json as data."""

    def fail(path: str, error: RaconvertError) -> int:
        if console.json:
            from raconvert.cli.console import error_facts

            failures.append({"path": path, "error": error_facts(error)})
        return console.error(error)

    return fail


def each(
    paths: Sequence[str],
    look: Callable[[str], Any],
    tell: Callable[[str, Any], int],
    console: Console,
    fail: Callable[[str, RaconvertError], int] | None = None,
) -> int:
    """Call `look` for every file and `tell` for its result; return the exit code.

    One that fails does not stop the rest; `fail` reports it and returns its code. The code of a
    single kind of failure stays, several kinds are 1. The result of `look` is made of values of
    JSON (`raconvert.conversion.isolated`).
    """
    from raconvert.conversion.read import is_native

    if len(paths) == 1 and not is_native(paths[0]):
        return tell(paths[0], look(paths[0]))
    from raconvert.conversion.isolated import Jobs, outcomes

    codes = set()
    looked = outcomes(paths, Jobs(lambda number: look(paths[number])), fewest=1)
    for path, facts in zip(paths, looked, strict=True):
        if isinstance(facts, RaconvertError) and len(paths) > 1:
            codes.add(fail(path, facts) if fail else console.error(facts))
        elif isinstance(facts, Exception):
            raise facts
        else:
            codes.add(tell(path, facts))
    codes.discard(0)
    return codes.pop() if len(codes) == 1 else int(bool(codes))


# Steps of `peek` and of pages: open a source, and name it in errors ------------------------------


@contextmanager
def opened_to_look(path: str, args: Any) -> Iterator[Opened]:
    """Open one source; keep a remote one's cached state for the length of the block."""
    with open_spec(path, Settings(**reading(args))) as opened:
        state = opened.seen.get(opened.bundle.path)
        cached = None
        if state is not None and is_remote(opened.bundle.path):
            from raconvert.files.remote.objects_by_ranges import object_at

            cached = object_at(opened.bundle.path, state)
        yield opened
        del cached  # the cache lives as long as this reference


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Set the path of errors of the block to this file, if they have none."""
    try:
        yield
    except RaconvertError as error:
        error.path = error.path or path
        raise
