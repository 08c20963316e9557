"""``raconvert digest``: lines as `sha256sum` prints them, of the .ra that arrays would become."""

from __future__ import annotations

import functools
import os
import sys
from hashlib import sha256

from raconvert import registry
from raconvert.cli.console import error_facts, one_line
from raconvert.cli.sources import below, each, expand, failing, reading
from raconvert.conversion.combine import open_sources
from raconvert.conversion.read import open_bundle
from raconvert.errors import RaconvertError, UsageError, counted, listed, quoted
from raconvert.inspect.digest import digest_array, manifest_line
from raconvert.workers.worker import decoded, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Print one line per array; a file that fails does not stop the others."""
    if args.as_ is not None:
        _show([(args.as_, _digest_as(args))], console)
        return 0
    entries: list[dict[str, Any]] = []

    def tell(path: str, facts: Any) -> int:
        lines, problems = facts
        errors = [decoded(problem) for problem in problems]
        if console.json:
            entries.extend({"name": name, "digest": digits} for name, digits in lines)
            entries.extend({"path": path, "error": error_facts(error)} for error in errors)
        else:
            _show(lines, console)
        return max([console.error(error) for error in errors], default=0)

    if args.short:
        return _run_short(args, console)
    paths = expand(args.files, **below(args))
    look = functools.partial(_digests, args=args)
    code = each(paths, look, tell, console, failing(console, entries))
    if console.json:
        console.result_json(entries)
    return code


def _run_short(args: Any, console: Console) -> int:
    """Print one line for each operand: the SHA-256 of its lines, with the names below it."""
    codes, digests = set(), []
    for word in args.files:
        lines: list[str] = []
        inside = os.path.join(word, "") if os.path.isdir(word) else ""

        def tell(_: str, facts: Any, lines: list[str] = lines, inside: str = inside) -> int:
            done, problems = facts
            lines += [manifest_line(name.removeprefix(inside), digits) for name, digits in done]
            return max([console.error(decoded(problem)) for problem in problems], default=0)

        paths = expand([word], **below(args))
        code = each(paths, functools.partial(_digests, args=args), tell, console)
        codes.add(code)
        if code:
            console.note(f"{word}: has no digest, because not all of it can be read")
            continue
        text = "".join(f"{line}\n" for line in sorted(lines))
        digests.append((word, sha256(text.encode("utf-8", "surrogateescape")).hexdigest()))
    _show(digests, console)
    return max(codes)


def _digests(path: str, args: Any) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """Return (name, digest) of every array of a file, and the errors of arrays without one.

    Arrays of containers are FILE#NAME. Raises the first error if no array has a digest.
    """
    digests: list[tuple[str, str]] = []
    problems: list[RaconvertError] = []
    with open_bundle(path, **reading(args)) as bundle:
        many = registry.by_name(bundle.format).many
        for array in bundle.arrays:
            # sha256sum needs the exact name of a file, but finds no array by any name.
            name = f"{bundle.path}#{quoted(array.name)}" if many else path
            try:
                digests.append((name, digest_array(array, args.max_memory)))
            except RaconvertError as error:
                error.add_note(f"so that '{name}' has no digest")
                problems.append(error)
    if problems and not digests:
        raise problems[0]
    return digests, [encoded(problem) for problem in problems]


def _digest_as(args: Any) -> str:
    """Return the digest of the one array that `convert` would write from these sources."""
    with open_sources(args.files, **reading(args)) as bundle:
        if len(bundle.arrays) != 1:
            raise UsageError(
                f"has {counted(len(bundle.arrays), 'array')}; --as names one .ra file",
                path=bundle.path,
                remedy=f"choose with FILE#NAME: {listed(bundle.names)}",
            )
        return digest_array(bundle.arrays[0], args.max_memory)


def _show(digests: list[tuple[str, str]], console: Console) -> None:
    """Print lines of name and digest as sha256sum does, or as JSON."""
    if console.json:
        console.result_json([{"name": name, "digest": digits} for name, digits in digests])
        return
    for name, digits in digests:
        # sha256sum -c needs the exact name; a terminal must not obey codes in it.
        console.raw(manifest_line(one_line(name) if sys.stdout.isatty() else name, digits))
