"""``raconvert verify``: read files to their end, and compare one with its sources."""

from __future__ import annotations

from raconvert.arrays.dtypes import few_lengths
from raconvert.cli.console import one_line
from raconvert.cli.options import GATHERING
from raconvert.cli.sources import below, each, expand, failing, is_tree, reading
from raconvert.errors import UsageError, counted, listed
from raconvert.inspect.verify import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.cli.console import Console

_DIFFERENT = 1


def run(args: Any, console: Console) -> int:
    """Verify every file; with --against one, which may differ from its sources (exit code 1)."""
    trees = _trees(args)
    if trees or args.certificate is not None:
        from raconvert.cli.trees import run as compare

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
    found = []

    def look(path: str) -> dict[str, Any]:
        return verify(path, against, go_on=True, **gathering, **reading(args))

    def tell(path: str, facts: dict[str, Any]) -> int:
        console.notes(facts["notes"], f"{path}: ")
        if console.json:
            found.append(facts)
        else:
            for line in _lines(facts):
                console.result(line)
        return 0 if facts["same"] else _DIFFERENT

    code = each(paths, look, tell, console, failing(console, found))
    if console.json:
        console.result_json(found[0] if len(paths) == 1 else found)
    return code


def _trees(args: Any) -> bool:
    """True if FILE or what it is compared with is a folder that is only a tree of files."""
    words = [*args.files, *(args.against or ())]
    if len(args.files) != 1 or len(words) != 2:
        return False
    return is_tree(words[0]) or (args.combined is not None and is_tree(words[1]))


def _references(facts: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each file of a view that is not what it was, and one for all."""
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
