"""Migrations into a tree at a URL: each unit is made in a private folder, and sent from there.

Its journal is on this machine, since a store has neither locks nor appending. An object that a dead
run has sent is recognised by its content: the store refuses to replace it, and its checksum is
compared.
"""

from __future__ import annotations

import os

from raconvert.conversion.remote import sending
from raconvert.errors import RaconvertError, UsageError
from raconvert.files.quoting import operand
from raconvert.files.remote import folder_of, is_url, located
from raconvert.files.remote.listing import abort, is_s3, range_of, stat, uploads_below
from raconvert.files.remote.objects_by_ranges import SECOND
from raconvert.files.remote.target import Remote, check_writable, replaceable
from raconvert.metadata.sidecar import added
from raconvert.migration.records import DONE, SKIPPED, Outcome, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.files.remote.objects_by_ranges import Facts
    from raconvert.migration.records import Job, Unit

_PIECE = 8 << 20  # bytes read at a time
_ALONE = {
    "shard": "`--shard`", "scheduler": "`--scheduler`", "scheduler_file": "`--scheduler-file`",
}  # fmt: skip


def root_of(word: str) -> str:
    """The root of a tree as the user names it: an absolute path, or a URL."""
    root = located(word) if "://" in word else word
    return root.rstrip("/") if is_url(root) else os.path.abspath(root)


def check(source: str, target: str, options: dict[str, Any]) -> None:
    """Raise `UsageError` for trees and options that do not go with a tree at a URL."""
    if is_url(target) or is_url(source):
        for inner, outer in ((source, target), (target, source)):
            if f"{inner}/".startswith(f"{outer}/"):
                raise UsageError(
                    "source and destination lie one in the other",
                    path=target,
                    expected="two trees that have no file in common",
                )
    if not is_url(target):
        return
    check_writable(f"{target}/x")
    for name, option in _ALONE.items():
        if options[name] is not None:
            raise UsageError(
                f"{option} does not go with a destination at a URL",
                path=target,
                remedy="use `--jobs N`, or write to a file system that all workers see",
            )
    if options["journal"] is None and not options["dry_run"]:
        raise no_journal(target)


def no_journal(target: str) -> UsageError:
    """The error for a destination at a URL without a journal; its remedy is the option to add."""
    name = target.rpartition("/")[2] or "migration"
    return UsageError(
        "a destination at a URL needs a journal on this machine",
        path=target,
        remedy=f"add `--journal {operand(f'{name}.sqlite')}`",
    )


def converted(
    job: Job, unit: Unit, convert: Callable[[Job, Unit], Outcome], *, ours: bool
) -> Outcome:
    """Have `convert` make the files of a unit in a private folder, and send them.

    `ours`: an earlier run may have sent them already.
    """
    options = job.options
    url = f"{job.target}/{unit.target}"
    replaces = unit.replaces == 1 or options["overwrite"] or options["update"]
    if unit.replaces != 1 and (options["skip_existing"] or options["update"]):
        newest = unit.mtime / 1e9 if options["update"] else None
        kept = replaceable(
            url, overwrite=replaces, skip=options["skip_existing"], newest=newest
        )  # fmt: skip
        if kept is not None:
            return Outcome(SKIPPED, said={"notes": [kept[1]]})
    with Remote(f"{job.target}/", replaces=replaces) as remote:
        remote.looks = not ours
        there = {**options, "overwrite": False, "skip_existing": False, "update": False}
        local = job._replace(target=remote.place.rstrip("/"), options=there)
        try:
            with sending(remote):
                outcome = convert(local, unit)
                if outcome.state != DONE:
                    return outcome
                return _sent(remote, local.target, unit, outcome, verify=options["verify"])
        except RaconvertError as error:
            remote.renamed(error)
            raise


def _sent(remote: Remote, root: str, unit: Unit, outcome: Outcome, *, verify: bool) -> Outcome:
    """Send the files that a unit was converted into; return the outcome with sizes as sent."""
    target = target_of(unit, outcome)
    files = outcome.files or ((target, outcome.size, outcome.digest),)
    remote.publish([os.path.join(root, path) for path, _, _ in files], verify=verify)
    facts = remote.facts()
    files = [
        (path, *facts.get(os.path.join(root, path), (size, digest))) for path, size, digest in files
    ]
    objects = [stat(remote.url_of(os.path.join(root, path))) for path, _, _ in files]
    size, digest = outcome.size, outcome.digest
    if os.path.join(root, target) in facts:
        size, digest = facts[os.path.join(root, target)]
    remarks = dict(outcome.said or {})
    notes = [*remarks.get("notes", ()), *remote.notes]
    if notes:
        remarks["notes"] = [remote.named(note) for note in notes]
    return outcome._replace(
        size=size,
        digest=digest,
        mtime=mark_of([facts for facts in objects if facts is not None]),
        files=files if outcome.files else (),
        said=remarks or None,
    )


def state_of(root: str, outcome: Outcome, target: str, *, paranoid: bool) -> str:
    """Compare a target with its record: "same", "gone", "cut off", "not proven" or "changed"."""
    files = outcome.files or ((target, outcome.size, outcome.digest),)
    objects = []
    for path, size, digest in files:
        facts = stat(f"{root}/{path}")
        if facts is None:
            return "gone"
        if facts.size != size:
            return "cut off" if facts.size < size else "changed"
        if paranoid and not digest:  # the store has copied it, unread
            return "not proven"
        objects.append(facts)
    proven = all(digest for _, _, digest in files)
    if not paranoid and _is_marked(outcome.mtime, objects, proven=proven):
        return "same"
    if added(f"{root}/{target}", {f"{root}/{path}" for path, _, _ in files}):
        return "changed"
    same = all(digest_of(f"{root}/{path}")[1] == digest for path, _, digest in files)
    return "same" if same else "changed"


def mark_of(objects: Sequence[Facts]) -> int:
    """A number for the objects of a target: the time of the last one with a hash of all versions.

    0 if there are no objects.
    """
    versions = "\n".join(facts.version for facts in objects)
    return objects[-1]._replace(version=versions).mark if objects else 0


def _is_marked(mark: int, objects: Sequence[Facts], *, proven: bool) -> bool:
    """True if the objects of a target are those whose mark the journal has.

    Older journals have the time alone, which is believed for a target without digests.
    """
    if mark % SECOND or proven:
        return mark == mark_of(objects)
    return mark == objects[-1].time


def give_up_uploads(root: str, targets: list[str]) -> None:
    """Abort the uploads of these targets that a killed run has begun. Raises nothing.

    Only one run at a time has the journal: nobody else is at work on them.
    """
    if not targets or not is_s3(root):
        return
    for url, upload in uploads_below(f"{root}/"):
        path = url[len(root) + 1 :]
        if any(path.startswith(target) for target in targets):
            abort(url, upload)


def digest_of(url: str) -> tuple[int, str]:
    """The size of an object in bytes and its SHA-256."""
    from hashlib import sha256

    digest, offset = sha256(), 0
    facts = stat(url)
    size = facts.size if facts else 0
    while offset < size:
        piece = range_of(url, offset, min(_PIECE, size - offset))
        if not piece:  # the object became shorter
            break
        digest.update(piece)
        offset += len(piece)
    return size, digest.hexdigest()


def content_of(url: str) -> bytes | None:
    """Read a small object; None if it does not exist."""
    facts = stat(url)
    if facts is None:
        return None
    return range_of(url, 0, facts.size) if facts.size else b""


def write(url: str, data: bytes) -> None:
    """Write a small object, replacing an existing one."""
    with Remote(folder_of(url), replaces=True) as remote:
        path = remote.path_of(url)
        with open(path, "wb") as file:
            file.write(data)
        remote.publish([path])
