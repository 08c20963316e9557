"""``raconvert verify``: read files to their end, and compare one with its sources."""

from __future__ import annotations

import os
from collections import Counter

from raconvert.arrays.dtypes import few_lengths
from raconvert.cli.console import one_line
from raconvert.cli.options import GATHERING
from raconvert.cli.sources import below, each, expand, failing, is_tree, reading
from raconvert.errors import UsageError, counted, listed
from raconvert.inspect.verify import verify
from raconvert.migration.compare import MARKS, SAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.cli.console import Console
    from raconvert.migration.compare import Finding


_DIFFERENT = 1


def run(args: Any, console: Console) -> int:
    """Verify every file; with --against one, which may differ from its sources (exit code 1)."""
    trees = _trees(args)
    if trees or args.certificate is not None:
        return compare(args, console)
    if args.combined is not None:
        raise UsageError(
            "--combined lists the files of two trees",
            remedy="usage: raconvert verify TREE --against TREE --combined LIST",
        )
    against = args.against or ([] if args.files_from is not None else None)
    if against and len(against) > 1 and args.sort is None:
        from raconvert.conversion.inputs import in_shell_order

        against = in_shell_order(against)
    paths = args.files if against is not None else expand(args.files, views=True, **below(args))
    if against is not None and len(paths) != 1:
        raise UsageError("--against compares one FILE", got=counted(len(paths), "file"))
    gathering = {option.dest: getattr(args, option.dest) for option in GATHERING}
    gathering.update(include=args.include or (), exclude=args.exclude or ())
    results = []

    def look(path: str) -> dict[str, Any]:
        return verify(path, against, go_on=True, **gathering, **reading(args))

    def tell(path: str, facts: dict[str, Any]) -> int:
        console.notes(facts["notes"], f"{path}: ")
        if console.json:
            results.append(facts)
        else:
            for line in _lines(facts):
                console.result(line)
        return 0 if facts["same"] else _DIFFERENT

    code = each(paths, look, tell, console, failing(console, results))
    if console.json:
        console.result_json(results[0] if len(paths) == 1 else results)
    return code


def _trees(args: Any) -> bool:
    """True if FILE or what it is compared with is a folder that is only a tree of files."""
    words = [*args.files, *(args.against or ())]
    if len(args.files) != 1 or len(words) != 2:
        return False
    return is_tree(words[0]) or (args.combined is not None and is_tree(words[1]))


def _references(facts: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each changed file of a view, and a summary."""
    for row in facts["problems"]:
        arrays = f"   arrays {listed(row['arrays'], 3)}" if row["arrays"] else ""
        yield f"{row['problem'].upper()} {one_line(row['path'])}   {one_line(row['found'])}{arrays}"
    counts = facts["references"]
    words = (f"{word} {counts[word]}" for word in ("ok", "changed", "cut", "missing"))
    yield f"{'ok' if facts['same'] else 'FAILED'} {one_line(facts['path'])}   {'   '.join(words)}"


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    if "references" in facts:
        yield from _references(facts)
        return
    compared = facts.get("against")
    if compared is not None:
        parts = [f"ok {compared['ok']}"]
        for what in ("changed", "missing", "extra"):
            example = compared["examples"].get(what)
            if what != "extra" or compared[what]:
                named = f" ({one_line(example)})" if example else ""
                parts.append(f"{what} {compared[what]}{named}")
        if len(facts["arrays"]) == 1:
            parts.append(f"digest {facts['arrays'][0]['digest']}")
        yield "   ".join(parts)
        return
    for array in facts["arrays"]:
        name = f"#{array['name']}" if facts["container"] and "#" not in facts["path"] else ""
        if array["problem"] is not None:
            problem = one_line(array["problem"])
            yield f"FAILED {one_line(facts['path'] + name)}   cannot be read: {problem}"
            continue
        shape = few_lengths(array["shape"], ", ")
        comma = "," if len(array["shape"]) == 1 else ""
        yield (
            f"ok {one_line(facts['path'] + name)}   {one_line(array['type'])} ({shape}{comma})   "
            f"digest {array['digest']}"
        )


# ``raconvert verify TREE --against TREE``, and ``--certificate``: one line for each difference ---


def compare(args: Any, console: Console) -> int:
    """Compare a tree with another one or its certificate; exit code 1 if they differ."""
    if len(args.files) != 1:
        raise UsageError("one tree is compared", got=counted(len(args.files), "name"))
    findings = list(_findings(args))
    counts = Counter(one.mark for one in findings)
    if args.combined is not None:
        _write(args.combined, findings)
    if console.json:
        console.result_json(
            {
                "path": args.files[0],
                "same": counts[SAME] == len(findings),
                "counts": {words: counts[mark] for mark, words in MARKS.items()},
                "files": [one._asdict() for one in findings],
            }
        )
        return 0 if counts[SAME] == len(findings) else _DIFFERENT
    for one in findings:
        if one.mark != SAME or args.combined is None:
            reason = f"   {one_line(one.reason)}" if one.reason else ""
            console.result(f"{one.mark} {one_line(one.path)}{reason}")
    changed = sum(one.mark == SAME and one.reason.startswith("equivalent") for one in findings)
    parts = [f"{counts[mark]} {words}" for mark, words in MARKS.items() if counts[mark]]
    parts[:1] = [f"{parts[0]} ({changed} in another form)"] if changed else parts[:1]
    console.note(f"{args.files[0]}: {', '.join(parts) or 'nothing to compare'}")
    return 0 if counts[SAME] == len(findings) else _DIFFERENT


def _findings(args: Any) -> Iterator[Finding]:
    if args.certificate is not None:
        from raconvert.migration.check import check_tree

        if args.against:
            raise UsageError("--certificate and --against exclude each other")
        return check_tree(args.files[0], args.certificate)
    from raconvert.migration.compare import compare_trees

    return compare_trees(
        args.files[0],
        args.against[0],
        include=args.include or (),
        exclude=args.exclude or (),
        **reading(args),
    )


def _write(path: str, findings: Iterable[Finding]) -> None:
    from raconvert.files.copy import write_all
    from raconvert.files.paths import check_target, write_failed
    from raconvert.files.target import Target

    check_target(path, overwrite=False)
    text = "".join(f"{one.mark} {one_line(one.path)}\n" for one in findings)
    try:
        with Target(os.path.abspath(path), overwrite=False) as target:
            write_all(target.open(), [text.encode()])
            target.commit()
    except OSError as error:
        raise write_failed(path, error) from error
