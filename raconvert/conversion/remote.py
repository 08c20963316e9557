"""Destinations at URLs: made in a private folder by the usual way, and sent from there.

What is but a header and elements needs no local file: it is sent as it is made, and where source
and destination are of one store, that copies the elements itself (`raconvert.files.remote`).
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
    """Have `convert` make files in a private folder, and send them to where they belong.

    Local destinations that only look like URLs go to `convert` as they are.
    """
    dst = None if dst is None else located(dst)
    places = {
        name: located(value)
        for name in ("out_dir", "labels")
        if (value := getattr(settings, name)) is not None
        and not (name == "labels" and is_bare(value))
    }
    url = places.get("out_dir") or dst
    if url is None or not is_url(url):
        if is_url(places.get("labels", "")):
            raise UsageError("labels at a URL go with a destination there", path=places["labels"])
        return convert(words, dst, settings.replace(**places))
    if "labels" in places and folder_of(places["labels"]) != folder_of(url):
        raise UsageError(
            "labels lie in the folder of their stack",
            path=places["labels"],
            expected=folder_of(url),
        )
    _refuse_addition(url, settings)
    with Remote(url, replaces=settings.overwrite or settings.update) as remote:
        single = _is_single(url, settings)
        kept = _kept(words, url, settings, single=single)
        if kept is not None:
            report = Report(words)
            report.skipped.append(kept)
            return report
        if single and not remote.replaces:
            remote.absent.add(url)
        local = {name: remote.path_of(path) for name, path in places.items()}
        unasked = {"overwrite": False, "skip_existing": False, "update": False, "sync": False}
        there = settings.replace(**unasked, **local)
        if "out_dir" in local:
            os.makedirs(local["out_dir"], exist_ok=True)
        return published(
            remote,
            settings,
            words,
            lambda: convert(words, dst and remote.path_of(dst), there),
        )


def write_to_url(url: str, settings: Settings, write: Callable[[str], Report]) -> Report:
    """Have `write` make a file in a private folder, and send it to where it belongs."""
    url = located(url)
    if not is_url(url):
        return write(url)
    _refuse_addition(url, settings)
    with Remote(url, replaces=settings.overwrite) as remote:
        if not settings.overwrite:
            kept = _kept([], url, settings, single=True)
            if kept is not None:
                report = Report([])
                report.skipped.append(kept)
                return report
            remote.absent.add(url)
        return published(remote, settings, [], lambda: write(remote.place))


def _refuse_addition(url: str, settings: Settings) -> None:
    """Refuse (`TargetExists`) a named array in a container that is at the URL already.

    It would have to be fetched, and sent again as a whole: nobody who is asked to replace one array
    expects that, and what another one sends meanwhile would be lost.
    """
    path, name = target_spec(url, settings.to)
    row = registry.by_name(settings.to) if settings.to else registry.by_suffix(path)
    if row is None or not row.many or (name or settings.name) is None:
        return
    places = [f"{path.rstrip('/')}/{mark}" for mark in row.marks] if row.folder else [path]
    if any(map(is_there, places)):
        raise TargetExists(
            "exists, and no array is added to a container at a URL",
            path=path,
            remedy="add it to a local copy, and send that: the URL without #NAME, and "
            "`--overwrite`, replace the whole",
        )


def published(
    remote: Remote, settings: Settings, words: list[str], make: Callable[[], Report]
) -> Report:
    """Send what `make` has written into the folder; the report, which speaks of URLs."""
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
    report.skipped = [(remote.named(path), why) for path, why in report.skipped]
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


def _kept(
    words: list[str], url: str, settings: Settings, *, single: bool
) -> tuple[str, str] | None:
    """Return the reason why the one destination is left as it is; None if it is to be written."""
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
    path = located(file_of(word))
    if is_url(path):
        facts = stat(path)
        return facts.time / 1e9 if facts else 0.0
    return os.path.getmtime(path) if os.path.exists(path) else 0.0


def _refuse_sources(remote: Remote, report: Report, words: list[str]) -> None:
    read = {*remote.used, *words}
    for path in report.written:
        if (url := remote.url_of(path)) in read:
            raise TargetExists("is read by the source, and is left as it was", path=url)


@contextmanager
def sending(remote: Remote) -> Iterator[None]:
    """Send, inside the block, files as they are made, if no local file is needed."""
    inside = os.path.join(remote.folder, "")
    SENDERS[inside] = lambda run: sent(run, remote)
    try:
        yield
    finally:
        del SENDERS[inside]


# Without a local file ---------------------------------------------------------------------------


def sent(run: Conversion, remote: Remote) -> bool:
    """Send a file that is but a header and elements as it is made; False: it needs a local one.

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
    """The one array of a file that is but a header and its elements."""
    arrays, row = run.bundle.arrays, run.row
    usual = os.path.splitext(run.path)[1].lower() in row.suffixes[:1]
    if len(arrays) != 1 or run.settings.meta == "sidecar" or not is_s3(remote.url):
        return None
    return arrays[0] if usual and run.plan.header is not None else None


def _has_sidecar(run: Conversion) -> bool:
    usual = run.settings.meta == "auto" and run.row.sidecar == "auto"
    return usual and not run.bundle.arrays[0].bare


def _beside(run: Conversion, source: Source) -> list[str]:
    """Write the metadata files of a file that is not here; their paths."""
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
