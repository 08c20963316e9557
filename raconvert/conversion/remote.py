"""Destinations at URLs: made in a private folder by the usual way, and sent from there.

A file of only a header and elements needs no local file: it is sent while it is made, and if source
and destination are in one store, the store copies the elements itself (`raconvert.files.remote`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from raconvert import registry
from raconvert.conversion.options import is_bare
from raconvert.conversion.outputs import (
    file_of,
    is_folder,
    metadata_pieces,
    target_spec,
    template_fields,
)
from raconvert.conversion.report import Report
from raconvert.conversion.write import progress_of
from raconvert.errors import RaconvertError, TargetExists, UsageError
from raconvert.files.paths import is_there
from raconvert.files.remote import folder_of, is_url, located
from raconvert.files.remote.listing import is_s3, stat
from raconvert.files.remote.server_copy import Composed, can_copy, copied
from raconvert.files.remote.target import PART, Remote, S3Upload, replaceable
from raconvert.files.source import refuse_changed
from raconvert.files.target import SENDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from raconvert.arrays.array import Array
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Conversion
    from raconvert.files.source import Source

    Convert = Callable[[list[str], str | None, Settings], Report]


def convert_to_url(
    words: list[str], dst: str | None, settings: Settings, convert: Convert
) -> Report:
    """Have `convert` make files in a private folder, and send them to their URLs.

    Local destinations that only look like URLs go to `convert` as they are.
    """
    dst = None if dst is None else located(dst)
    destinations = {
        name: located(value)
        for name in ("out_dir", "labels")
        if (value := getattr(settings, name)) is not None
        and not (name == "labels" and is_bare(value))
    }
    url = destinations.get("out_dir") or dst
    if url is None or not is_url(url):
        if is_url(destinations.get("labels", "")):
            raise UsageError(
                "labels at a URL go with a destination there", path=destinations["labels"]
            )
        return convert(words, dst, settings.replace(**destinations))
    if "labels" in destinations and folder_of(destinations["labels"]) != folder_of(url):
        raise UsageError(
            "labels lie in the folder of their stack",
            path=destinations["labels"],
            expected=folder_of(url),
        )
    _refuse_addition(url, settings)
    with Remote(url, replaces=settings.overwrite or settings.update) as remote:
        single = _is_single(url, settings)
        skipped = _skipped(words, url, settings, single=single)
        if skipped is not None:
            report = Report(words)
            report.skipped.append(skipped)
            return report
        if single and not remote.replaces:
            remote.absent.add(url)
        local = {name: remote.path_of(path) for name, path in destinations.items()}
        unasked = {"overwrite": False, "skip_existing": False, "update": False, "sync": False}
        local_settings = settings.replace(**unasked, **local)
        if "out_dir" in local:
            os.makedirs(local["out_dir"], exist_ok=True)
        return published(
            remote,
            settings,
            words,
            lambda: convert(words, dst and remote.path_of(dst), local_settings),
        )


def write_to_url(url: str, settings: Settings, write: Callable[[str], Report]) -> Report:
    """Have `write` make a file in a private folder, and send it to its URL."""
    url = located(url)
    if not is_url(url):
        return write(url)
    _refuse_addition(url, settings)
    with Remote(url, replaces=settings.overwrite) as remote:
        if not settings.overwrite:
            skipped = _skipped([], url, settings, single=True)
            if skipped is not None:
                report = Report([])
                report.skipped.append(skipped)
                return report
            remote.absent.add(url)
        return published(remote, settings, [], lambda: write(remote.place))


def _refuse_addition(url: str, settings: Settings) -> None:
    """Refuse (`TargetExists`) a named array in a container that is at the URL already.

    It would have to be fetched and sent again as a whole, which nobody expects of one array, and
    arrays that others send meanwhile would be lost.
    """
    path, name = target_spec(url, settings.to)
    row = registry.by_name(settings.to) if settings.to else registry.by_suffix(path)
    if row is None or not row.many or (name or settings.name) is None:
        return
    urls = [f"{path.rstrip('/')}/{mark}" for mark in row.marks] if row.folder else [path]
    if any(map(is_there, urls)):
        raise TargetExists(
            "exists, and no array is added to a container at a URL",
            path=path,
            remedy="add it to a local copy, and send that: the URL without #NAME, and "
            "`--overwrite`, replace the whole",
        )


def published(
    remote: Remote, settings: Settings, words: list[str], make: Callable[[], Report]
) -> Report:
    """Send the files that `make` has written into the folder; return its report, with URLs."""
    try:
        with sending(remote):
            report = make()
        if not report.planned:
            _refuse_sources(remote, report, words)
            report.written = remote.publish(report.written, verify=settings.verify)
    except RaconvertError as error:
        remote.renamed(error)
        raise
    report.target = remote.named(report.target)
    report.skipped = [(remote.named(path), reason) for path, reason in report.skipped]
    for _, failure in report.failed:
        if isinstance(failure, RaconvertError):
            remote.renamed(failure)
    notes = [remote.named(note) for note in [*report.notes, *remote.notes]]
    report.notes.clear()
    report.add_notes(notes)
    return report


def _is_single(url: str, settings: Settings) -> bool:
    """True if there is one destination, whose name is known beforehand."""
    several = settings.cuts or template_fields(url) or is_folder(url, settings)
    return not (several or settings.out_dir is not None)


def _skipped(
    words: list[str], url: str, settings: Settings, *, single: bool
) -> tuple[str, str] | None:
    """Return the one destination, and the reason why it is skipped; None if it is to be written."""
    if not single:
        if settings.skip_existing or settings.update:
            option = "`--skip-existing`" if settings.skip_existing else "`--update`"
            raise UsageError(
                f"{option} does not go with several destinations at a URL",
                path=url,
                remedy="raconvert migrate SRC_TREE URL does only what is left to do",
            )
        return None
    if url in [file_of(word) for word in words]:
        raise TargetExists("source and destination are the same file", path=url)
    newest = max(map(_changed, words)) if settings.update else None
    return replaceable(
        url, overwrite=settings.overwrite, skip=settings.skip_existing, newest=newest
    )


def _changed(word: str) -> float:
    """Return the time of the last change of a source, in seconds; 0 if it is unknown."""
    path = located(file_of(word))
    if is_url(path):
        facts = stat(path)
        return facts.time / 1e9 if facts else 0.0
    return os.path.getmtime(path) if os.path.exists(path) else 0.0


def _refuse_sources(remote: Remote, report: Report, words: list[str]) -> None:
    """Refuse (`TargetExists`) a destination that is a source, or a file that one is read from."""
    sources = {*remote.used, *words}
    for path in report.written:
        if (url := remote.url_of(path)) in sources:
            raise TargetExists("is read by the source, and is left as it was", path=url)


@contextmanager
def sending(remote: Remote) -> Iterator[None]:
    """Send, inside the block, files while they are made, if they need no local file."""
    inside = os.path.join(remote.folder, "")
    SENDERS[inside] = lambda run: sent(run, remote)
    try:
        yield
    finally:
        del SENDERS[inside]


# Without a local file ---------------------------------------------------------------------------


def sent(run: Conversion, remote: Remote) -> bool:
    """Send a file of only a header and elements while it is made; False: it needs a local file.

    It appears with `Remote.publish`.
    """
    remote.used |= run.used
    array = _raw(run, remote)
    if array is None or run.plan.header is None:
        return False
    header = run.plan.header()
    if len(header) + array.nbytes <= PART:
        return False
    url, beside = remote.url_of(run.path), _has_sidecar(run)
    upload = None
    if array.extent is not None and can_copy(url, array.extent):
        upload = copied(url, header, array.extent, overwrite=remote.replaces)
        if upload is not None and beside:
            source = Composed(run.path, header, array.extent)
            run.report.written += _beside(run, source)
    if upload is None:
        if beside:
            return False
        upload = _streamed(run, url, header, array, overwrite=remote.replaces)
    remote.keep(run.path, upload)
    return True


def _raw(run: Conversion, remote: Remote) -> Array | None:
    """Return the one array of a file of only a header and its elements, else None."""
    arrays, row = run.bundle.arrays, run.row
    usual = os.path.splitext(run.path)[1].lower() in row.suffixes[:1]
    if len(arrays) != 1 or run.settings.meta == "sidecar" or not is_s3(remote.url):
        return None
    return arrays[0] if usual and run.plan.header is not None else None


def _has_sidecar(run: Conversion) -> bool:
    """True if the file gets a sidecar."""
    usual = run.settings.meta == "auto" and run.row.sidecar == "auto"
    return usual and not run.bundle.arrays[0].bare


def _beside(run: Conversion, source: Source) -> list[str]:
    """Write the metadata files of a file that has no local copy; return their paths."""
    run.forms = {run.plan.names[0]: {}}
    pieces = metadata_pieces(run, run.path, source, asked=False)
    for path, lines in pieces.items():
        with open(path, "wb") as file:
            file.writelines(lines)
    return list(pieces)


def _streamed(
    run: Conversion, url: str, header: bytes, array: Array, *, overwrite: bool
) -> S3Upload:
    upload = S3Upload(url, len(header) + array.nbytes, overwrite=overwrite)
    try:
        upload.write(header)
        _send_blocks(run, array, upload)
        upload.finish()
        if run.opened is not None:
            refuse_changed(run.opened.seen)
    except BaseException:
        upload.abort()
        raise
    return upload


def _send_blocks(run: Conversion, array: Array, upload: S3Upload) -> None:
    from raconvert.arrays.blocks import block_bytes, blocks

    progress = progress_of(run.settings.progress, array.nbytes)
    for block in blocks(array, block_bytes(run.settings.max_memory)):
        upload.write(block.reshape(-1).view("u1").data)
        if progress is not None:
            progress(block.nbytes)
