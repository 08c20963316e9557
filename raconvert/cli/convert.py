"""``raconvert SRC... -o DST``: convert, and report the result."""

from __future__ import annotations

import os
import sys

from raconvert.cli.console import one_line, progress_of
from raconvert.conversion import pipeline
from raconvert.conversion.options import OPTIONS, Option
from raconvert.errors import RaconvertError, UnknownFormat, UsageError, counted
from raconvert.plugin import first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console, Progress
    from raconvert.conversion.report import Report
    from raconvert.files.target import Target
    from raconvert.plugin import Fit


def run(args: Any, console: Console) -> int:
    """Convert as the options say; return the exit code."""
    _check(args, console)
    journal = _open_journal(args)
    progress = progress_of(args, console, args.output or args.out_dir or "raconvert")
    try:
        report = _convert(args, progress)
    except RaconvertError as error:
        remedy_says_so = "as it was" in (error.remedy or "")
        begun = error.exit_code not in (UsageError.exit_code, UnknownFormat.exit_code)
        if begun and not (args.fail_fast or remedy_says_so):
            error.add_note("nothing was written")
        if journal is not None:
            _write_journal(journal, [_failure(args.src, error)])
        raise
    except BaseException:
        if journal is not None:
            journal.abort()
        raise
    if journal is not None:
        _write_journal(journal, _journal_lines(report))
    return _print_report(report, console)


def _convert(args: Any, progress: Progress | None) -> Report:
    """Call `convert` with the options that differ from their defaults."""
    given = vars(args)
    named = {
        option.name: value_of(option, given[option.name])
        for option in OPTIONS
        if option.name != "progress"
        and given.get(option.name) is not None
        and given[option.name] is not option.default
    }
    words = args.src
    if len(words) > 1 and args.sort is None:
        from raconvert.conversion.inputs import in_shell_order

        words = in_shell_order(words)
    try:
        return pipeline.convert(words, args.output, progress=progress, **named)
    finally:
        if progress is not None:
            progress.clear()


def value_of(option: Option, given: Any) -> Any:
    """Turn the words that argparse collected into the value that `convert` takes."""
    if option.how != "append":
        return given
    if option.kind == "pair":
        return dict(given or ())
    if option.kind == "words":
        return [word for group in given or () for word in group]
    return given or ()


def _check(args: Any, console: Console) -> None:
    """Raise `UsageError` for options that contradict each other, before anything is read."""
    if not args.src and args.files_from is None:
        raise UsageError("no source is named", remedy="usage: raconvert SRC... -o DST")
    if args.output is None and args.out_dir is None:
        from raconvert.cli.sources import no_destination

        raise no_destination(args.src, verb="convert ")
    if args.output is not None and args.out_dir is not None:
        raise UsageError("-o and --out-dir are two destinations", remedy="give one of them")
    if args.output == "-":
        if console.json:
            raise UsageError("--json and -o - both write to the standard output")
        if sys.stdout.isatty():
            raise UsageError(
                "the standard output is a terminal", remedy="send it to a file or a pipe"
            )


# The report ------------------------------------------------------------------------------------


def _print_report(report: Report, console: Console) -> int:
    """Print the report; a batch in which files failed returns 1."""
    if console.json:
        console.result_json(_as_dict(report))
    if report.planned and not console.json:
        _print_plan(report, console)
    else:
        console.notes(list(_remarks(report, console.verbose)))
        if report.written:
            console.note(str(report))
        _print_details(report, console)
    _print_failures(report, console)
    return RaconvertError.exit_code if report.failed else 0


_MOST_LINES = 5  # lines about one change of different arrays; more become one line


def _equivalent(report: Report, verbose: int) -> list[str]:
    """Return the changes of form; one that many arrays have is one line, without -v."""
    alike: dict[tuple[str, str], list[str]] = {}
    for fit in report.equivalent:
        alike.setdefault((fit.property, fit.reason), []).append(fit.array)
    lines = []
    for fit in report.equivalent:
        arrays = alike[fit.property, fit.reason]
        if len(arrays) <= _MOST_LINES or verbose:
            lines.append(f"equivalent: {fit}")
        elif fit.array == arrays[0]:
            text = f"{fit.property}: {fit.reason}: {first_of(arrays)}"
            lines.append(f"equivalent: {len(arrays)} arrays: {text}")
    return lines


def _of_files(report: Report, verbose: int) -> list[str]:
    """Return one line for each remark of a batch: its first file, how many others, its text."""
    files: dict[str, list[str]] = {}
    for remark, sources in report.about.items():
        for source in sources:
            text = _text_of(remark, report, source)
            files.setdefault(text, []).append(source)
    lines = []
    for text, sources in files.items():
        if verbose:
            lines += [f"{source}: {text}" for source in sources]
        else:
            others = len(sources) - 1
            more = f" (and {others} more file{'s' if others > 1 else ''})" if others else ""
            lines.append(f"{sources[0]}{more}: {text}")
    return lines


def _text_of(remark: str | Fit, report: Report, source: str) -> str:
    """The words for a note, a change or a loss; an array with the name of the file is not named."""
    stem = os.path.splitext(os.path.basename(source))[0]
    if isinstance(remark, str):
        return remark.removeprefix(f"array '{stem}': ")
    kind = "equivalent" if remark in report.equivalent else "allowed loss"
    array = "" if remark.array == stem else remark.array
    return f"{kind}: {remark._replace(array=array, flag=None)}"


def _remarks(report: Report, verbose: int) -> list[str]:
    """Return one line for each note, change of form, allowed loss and kept destination."""
    if report.about:
        lines = _of_files(report, verbose)
    else:
        lines = [*report.notes, *_equivalent(report, verbose)]
        lines += [f"allowed loss: {fit._replace(flag=None)}" for fit in report.allowed]
    lines += _left_out(report, verbose)
    if verbose or len(report.skipped) == 1:
        lines += [f"kept {path}: {reason}" for path, reason in report.skipped]
    else:
        reasons = [reason for _, reason in report.skipped]
        lines += [f"kept {counted(reasons.count(r), 'file')}: {r}" for r in dict.fromkeys(reasons)]
    return lines


def _left_out(report: Report, verbose: int) -> list[str]:
    """Return one line for each source that cannot be read; without -v for the first ones."""
    shown = report.left_out if verbose else report.left_out[:_MOST_LINES]
    lines = [f"left out {path}: {reason}" for path, reason in shown]
    more = len(report.left_out) - len(shown)
    return [*lines, f"left out {counted(more, 'more file')}"] if more else lines


def _print_plan(report: Report, console: Console) -> None:
    """Print what a dry run would do."""
    console.result(one_line(str(report)))
    console.result(f"  to {report.target_format}")
    for name, type_name, shape, *_ in report.arrays if len(report.arrays) > 1 else ():
        console.result(f"  {one_line(name)}: {one_line(type_name)} {tuple(shape)}")
    for line in _remarks(report, console.verbose):
        console.result(f"  {one_line(line)}")


def _print_details(report: Report, console: Console) -> None:
    """Print the formats and the paths that were written, with -v."""
    if report.source_format:
        console.detail(f"read as {report.source_format}")
    if report.target_format:
        console.detail(f"written as {report.target_format}")
    for path in report.written:
        console.detail(f"wrote {path}")


def _print_failures(report: Report, console: Console) -> None:
    """Print the errors of a batch, each remedy once."""
    remedies: set[str | None] = set()
    for path, failure in report.failed:
        error = failure if isinstance(failure, RaconvertError) else RaconvertError(str(failure))
        if error.path is None:
            error.path = path
        if error.remedy in remedies:
            error.remedy = None
        remedies.add(error.remedy)
        console.error(error)
    if report.failed:
        total = max(report.source_count, len(report.failed))
        console.error(RaconvertError(f"{len(report.failed)} of {counted(total, 'file')} failed"))


def _as_dict(report: Report) -> dict[str, Any]:
    """The report as values of JSON."""
    fits = {
        name: [{**_fit(one), "sources": report.about.get(one, report.sources)} for one in listed]
        for name, listed in (("equivalent", report.equivalent), ("allowed", report.allowed))
    }
    return {
        "planned": report.planned,
        "sources": report.sources,
        "source_count": report.source_count,
        "source_format": report.source_format,
        "target_format": report.target_format,
        "written": report.written,
        "skipped": [{"path": path, "reason": reason} for path, reason in report.skipped],
        "left_out": [{"path": path, "reason": reason} for path, reason in report.left_out],
        "failed": [_failure([path], error) for path, error in report.failed],
        "arrays": [
            {"name": name, "type": type_name, "shape": list(shape)}
            for name, type_name, shape, *_ in report.arrays
        ],
        "nbytes": report.nbytes,
        "notes": report.notes,
        "noted": [
            {"note": note, "sources": report.about.get(note, report.sources)}
            for note in report.notes
        ],
        **fits,
    }


def _fit(one: Fit) -> dict[str, str]:
    """A change or loss as values of JSON."""
    return {"array": one.array, "property": one.property, "reason": one.reason}


# The journal of --report -------------------------------------------------------------------------


def _open_journal(args: Any) -> Target | None:
    """Open the journal of --report, if it was asked for. Raises for one that exists already."""
    if args.report is None:
        return None
    from raconvert.files.paths import check_target
    from raconvert.files.target import Target

    check_target(args.report, overwrite=args.overwrite)
    if not os.path.isdir(os.path.dirname(args.report) or "."):
        raise UsageError("folder of the report does not exist", path=args.report)
    return Target(args.report, overwrite=args.overwrite)


def _journal_lines(report: Report) -> list[dict[str, Any]]:
    """The lines of the journal: what became of each file, and what was lost."""
    done = "planned" if report.planned else "written"
    return [
        *({"status": done, "path": path, "exit_code": 0} for path in report.written),
        *(
            {"status": "skipped", "path": path, "exit_code": 0, "reason": reason}
            for path, reason in report.skipped
        ),
        *(
            {"status": "left out", "path": path, "exit_code": 0, "reason": reason}
            for path, reason in report.left_out
        ),
        *(_failure([path], error) for path, error in report.failed),
        *({"status": "lost", **_fit(one)} for one in report.allowed),
    ]


def _failure(sources: list[str], error: Exception) -> dict[str, Any]:
    """The line of the journal for a failure."""
    return {
        "status": "failed",
        "path": sources[0] if sources else None,
        "exit_code": getattr(error, "exit_code", RaconvertError.exit_code),
        "error": str(error),
    }


def _write_journal(journal: Target, lines: list[dict[str, Any]]) -> None:
    """Write the journal as lines of JSON."""
    import json

    from raconvert.files.copy import write_all

    with journal:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_all(journal.open(), [text.encode()])
        journal.commit()
