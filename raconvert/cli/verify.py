"""``raconvert verify``: read files to their end, and compare one with its sources."""

from __future__ import annotations

import os
from collections import Counter

from raconvert.arrays.dtypes import few_lengths
from raconvert.cli.console import one_line
from raconvert.cli.options import GATHERING
from raconvert.cli.sources import below, each, expand, failing, is_tree, reading
from raconvert.errors import UsageError, counted, listed
from raconvert.files.paths import check_target
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
    if _are_trees(args) or args.certificate is not None:
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


def _are_trees(args: Any) -> bool:
    """True for one FILE and one source of which the first is a tree of files, not one source.

    With --combined, it is enough if the second is a tree.
    """
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
    """Yield the lines about a file: one of counts with --against, else one for each array."""
    if "references" in facts:
        yield from _references(facts)
        return
    compared = facts.get("against")
    if compared is not None:
        parts = [f"ok {compared['ok']}"]
        for verdict in ("changed", "missing", "extra"):
            example = compared["examples"].get(verdict)
            if verdict != "extra" or compared[verdict]:
                named = f" ({one_line(example)})" if example else ""
                parts.append(f"{verdict} {compared[verdict]}{named}")
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
    if args.combined is not None:  # refused before hours of comparing
        check_target(args.combined, overwrite=False)
    findings = list(_findings(args))
    counts = Counter(finding.mark for finding in findings)
    same = counts[SAME] == len(findings)
    if args.combined is not None:
        _write(args.combined, findings)
    if console.json:
        console.result_json(
            {
                "path": args.files[0],
                "same": same,
                "counts": {words: counts[mark] for mark, words in MARKS.items()},
                "files": [finding._asdict() for finding in findings],
            }
        )
        return 0 if same else _DIFFERENT
    for finding in findings:
        if finding.mark != SAME or args.combined is None:
            reason = f"   {one_line(finding.reason)}" if finding.reason else ""
            console.result(f"{finding.mark} {one_line(finding.path)}{reason}")
    changed = sum(
        finding.mark == SAME and finding.reason.startswith("equivalent") for finding in findings
    )
    parts = [f"{counts[mark]} {words}" for mark, words in MARKS.items() if counts[mark]]
    if changed:
        parts[0] += f" ({changed} in another form)"
    console.note(f"{args.files[0]}: {', '.join(parts) or 'nothing to compare'}")
    return 0 if same else _DIFFERENT


def _findings(args: Any) -> Iterator[Finding]:
    """Yield what became of each file of the tree, by its certificate or by the other tree."""
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
    """Write the list of --combined: the mark and the path of each file."""
    from raconvert.files.copy import write_all
    from raconvert.files.paths import write_failed
    from raconvert.files.target import Target

    check_target(path, overwrite=False)
    text = "".join(f"{finding.mark} {one_line(finding.path)}\n" for finding in findings)
    try:
        with Target(os.path.abspath(path), overwrite=False) as target:
            write_all(target.open(), [text.encode()])
            target.commit()
    except OSError as error:
        raise write_failed(path, error) from error
