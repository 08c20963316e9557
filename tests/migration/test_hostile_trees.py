"""Trees and destinations that somebody else has made: links, pipes, journals, lists of checksums.

Nothing hangs, nothing outside is read, written or removed, and each error is one of ours.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert import RaconvertError
from raconvert.errors import Corrupt, TargetExists, Unsafe
from raconvert.migration import checksums, journal, records
from raconvert.migration.certificate import write_certificate
from raconvert.migration.check import check_tree
from raconvert.migration.compare import compare_trees
from raconvert.migration.resume import status

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")

LOG = journal.NAME
DEEP = 1100  # folders in one another: more than Python calls itself


@pytest.fixture(autouse=True)
def never_for_ever() -> Iterator[None]:
    """What waits for a pipe that nobody answers is interrupted."""

    def interrupt(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "in" / "a.npy", np.arange(6.0))
    (tmp_path / "victim").write_text("precious\n")
    yield tmp_path
    for folder in ("in", "out"):  # too deep for those who clean up
        subprocess.run(["rm", "-rf", tmp_path / folder], check=True)


def migrate(**options: Any) -> raconvert.Migration:
    return raconvert.migrate("in", "out", to="ra", jobs=1, **options)


def deep(folder: Path, levels: int = DEEP) -> Path:
    """Make folders in one another; the path of the innermost is too long for most calls."""
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(levels):
        os.mkdir("d")
        os.chdir("d")
    shutil.copy(f"{here}/in/a.npy", "x.npy")
    os.chdir(here)
    return folder.joinpath(*["d"] * levels)


# What lies where raconvert keeps files of its own ------------------------------------------------

PLANTED: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "link": lambda path: path.symlink_to(path.parents[1] / "victim"),
    "dangling": lambda path: path.symlink_to(path.parents[1] / "nobody"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize(
    "name", [LOG, *(LOG + end for end in (".lock", "-journal", "-wal", "-shm"))]
)
def test_a_journal_is_no_link_and_no_pipe(name: str, planted: str, tree: Path) -> None:
    PLANTED[planted](tree / "out" / name)

    with pytest.raises(Unsafe, match="a link, or not a regular file") as caught:
        migrate()

    assert caught.value.path == str(tree / "out" / name)
    assert (tree / "victim").read_text() == "precious\n"
    assert not (tree / "nobody").exists()
    assert not (tree / "out" / "a.ra").exists()


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_a_log_is_no_link_and_no_pipe_where_it_is_only_read(
    end: str, planted: str, tree: Path
) -> None:
    migrate()
    PLANTED[planted](tree / "out" / (LOG + end))

    with pytest.raises(Unsafe):
        status("out")


@pytest.mark.parametrize("planted", PLANTED)
def test_a_list_of_checksums_is_no_link_and_no_pipe(planted: str, tree: Path) -> None:
    (tree / "victim").write_text("")  # as a list that has just been begun
    PLANTED[planted](tree / "out" / "SHA256SUMS")

    result = migrate(report="cert")

    assert result.done == 1
    assert [note for note in result.notes if note.startswith("no checksums were written")]
    assert (tree / "victim").read_text() == ""
    assert not (tree / "nobody").exists()
    assert json.loads((tree / "cert.json").read_text())["checksums"] is None


def test_a_lock_that_is_none_is_left_as_it_is(tree: Path) -> None:
    (tree / "out" / (LOG + ".lock")).write_text("precious\n")

    with pytest.raises(TargetExists, match="not the lock of a migration"):
        migrate()

    assert (tree / "out" / (LOG + ".lock")).read_text() == "precious\n"


def test_a_log_that_has_sqlite_remove_a_file(tree: Path) -> None:
    """The log of a transaction over several databases names a file, which SQLite removes."""
    migrate()
    base = tree / "out" / LOG
    magic = bytes.fromhex("d9d505f920a163d7")
    page = base.read_bytes()[:4096]
    seed, at = 7, len(page) - 200
    total = seed
    while at > 0:
        total, at = (total + page[at]) & 0xFFFFFFFF, at - 200
    name = os.fsencode(tree / "victim")
    (tree / "out" / (LOG + "-journal")).write_bytes(
        (magic + struct.pack(">5I", 1, seed, base.stat().st_size // 4096, 512, 4096)).ljust(512, b"\0")
        + struct.pack(">I", 1) + page + struct.pack(">I", total)
        + struct.pack(">I", (1 << 30) // 4096 + 1) + name
        + struct.pack(">2I", len(name), sum(name)) + magic
    )  # fmt: skip
    shutil.copytree("out", "other")

    for attempt in (migrate, lambda: status("out")):
        with pytest.raises(Corrupt):
            attempt()

    assert (tree / "victim").exists()
    sqlite3.connect("other/" + LOG).execute("SELECT * FROM run").close()
    assert not (tree / "victim").exists()  # so it was a log that does


# Journals ----------------------------------------------------------------------------------------

ERROR = {"what": "x", "path": None, "where": None, "expected": None, "got": None, "remedy": None,
         "notes": [], "class": "Corrupt"}  # fmt: skip
ODD = (None, 5, -1, 1e308, 1 << 70, "text", "../../up", "/etc/passwd", "a\0b", [1], [["a", 5]],
       {"a": 1}, True)  # fmt: skip
NEVER = object()


# What the column of the files may be.
TEXTS = (
    "nope", "5", "[[]]", "{}", '{"units": 5}', '{"units": [["a", 1, 2]]}', "[Infinity]", b"\xff",
    '{"units": [], "outcomes": [null]}', '{"units": [[]]}', '{"units": [], "more": 5}',
    '{"units": [["a", "b", 1, 1]], "outcomes": [["done"], ["done"]]}',
    '{"units": [["a", "b", 1, 1]], "outcomes": [[]]}', '{"units": [{"a": 1}]}', '{"units": {}}',
    '{"units": [["a", "b", 1, 1, [], 0, "", 5]]}', '{"units": [["a", "b", 1, 1]], "outcomes": 5}',
    "[" * 10**5 + "]" * 10**5, "[" * 900 + "]" * 900, "[" + "9" * 5000 + "]",
)  # fmt: skip


def rows(row: list[Any]) -> Iterator[list[Any]]:
    for at in range(len(row)):
        for value in ODD:
            yield [*row[:at], value, *row[at + 1 :]]
    failed = [*row[:7], "failed", 0, 0, "", ERROR, None, "", [], ""]
    for key in ERROR:
        for value in (*ODD, NEVER, "quoted", "TYPE_CHECKING", "__doc__", "os"):
            error = {name: one for name, one in {**ERROR, key: value}.items() if one is not NEVER}
            yield [*failed[:11], error, *failed[12:]]
    for said in ({"notes": [5]}, {"equivalent": [["a"]]}, {"other": []}, {"allowed": [[5] * 5]}):
        yield [*row[:12], said, *row[13:]]
    for file in (["../x", 1, "a" * 64], ["x", -1, "a" * 64], ["x", 1, "b\n" + "a" * 62], ["x"]):
        yield [*row[:14], [file], row[15]]


def change(path: Path, statement: str, *values: Any) -> None:
    base = sqlite3.connect(path)
    with base:
        base.execute(statement, values)
    base.close()


def look(tree: Path) -> int:
    """Tell, certify and go on with what the journal says; how often it was refused."""
    refused = 0
    for attempt in (
        lambda: status("out"),
        lambda: write_certificate("out/cert", "out"),
        lambda: migrate(paranoid=True),
    ):
        try:
            attempt()
        except RaconvertError:
            refused += 1
    assert (tree / "victim").read_text() == "precious\n"
    return refused


def test_a_journal_may_say_anything(tree: Path) -> None:
    migrate()
    path = tree / "out" / LOG
    good = path.read_bytes()
    (known,) = journal.read(str(path))[1]
    row = [*known.unit, *known.outcome]
    assert journal.known_of(text_of(row)) == [(known.unit, known.outcome)]
    for one in TEXTS:
        path.write_bytes(good)
        change(path, "UPDATE batches SET files = ?", one)
        assert look(tree) == 3
    cases = [text_of(one) for one in rows(row)]
    passed = [one for one in cases if not is_refused(journal.known_of, one)]
    assert len(passed) < len(cases) / 4  # another size, another time
    for one in [*passed, *cases[::40]]:
        path.write_bytes(good)
        change(path, "UPDATE batches SET files = ?", one)
        assert look(tree) == 3 or one in passed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET files = CAST(x'ff' AS TEXT)",
        "UPDATE batches SET files = CAST(x'5b22ff225d' AS TEXT)",
        "UPDATE batches SET state = CAST(x'ff' AS TEXT)",
        "UPDATE batches SET time = CAST(x'ff' AS TEXT)",
        "UPDATE run SET value = CAST(x'ff' AS TEXT)",
        "UPDATE run SET key = CAST(x'ff' AS TEXT) WHERE key = 'options'",
        "UPDATE batches SET files = x'ff00'",
    ],
)
def test_texts_of_a_journal_that_are_not_utf8(statement: str, tree: Path) -> None:
    migrate()
    change(tree / "out" / LOG, statement)

    assert look(tree) == (0 if "state" in statement else 3)


def test_damaged_pages_of_a_journal(tree: Path) -> None:
    """Whatever bytes are wrong, the errors are ours, and what was converted stays."""
    migrate()
    path = tree / "out" / LOG
    good = path.read_bytes()
    dice = random.Random(3)
    refused = 0
    for _ in range(60):
        bad = bytearray(good)
        place = dice.randrange(len(bad))
        bad[place : place + 64] = dice.randbytes(len(bad[place : place + 64]))
        path.write_bytes(bad)
        refused += look(tree) > 0
    path.write_bytes(good[: len(good) // 2])
    assert look(tree) == 3
    assert refused > 5


def text_of(row: list[Any]) -> str:
    """A batch of one file, as its text is in a journal."""
    width = len(records.Unit._fields)
    return json.dumps({"units": [row[:width]], "outcomes": [row[width:]]})


def test_settings_may_say_anything(tree: Path) -> None:
    migrate()
    path = tree / "out" / LOG
    good = path.read_bytes()
    base = sqlite3.connect(path)
    settings = dict(base.execute("SELECT key, value FROM run").fetchall())
    base.close()
    assert set(settings) == set(journal._SETTINGS)
    whole = {name: json.loads(value) for name, value in settings.items()}
    assert journal.settings_of(whole) == whole
    for name in settings:
        odd = [one for one in ODD if not is_refused(journal.settings_of, {**whole, name: one})]
        texts = [json.dumps(one) for one in odd]
        for value in (*texts, "}{", "[" * 10**5, None):
            path.write_bytes(good)
            if value is None:
                change(path, "DELETE FROM run WHERE key = ?", name)
            else:
                change(path, "UPDATE run SET value = ? WHERE key = ?", value, name)
            look(tree)


def is_refused(check: Callable[[Any], Any], value: Any) -> bool:
    try:
        check(value)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM batches; END",
        "CREATE TABLE more (x)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON batches (time)",
        "ALTER TABLE run ADD COLUMN more",
    ],
)
def test_a_journal_holds_our_tables_alone(statement: str, tree: Path) -> None:
    migrate()
    change(tree / "out" / LOG, statement)
    before = (tree / "out" / LOG).read_bytes()

    assert look(tree) == 3
    assert (tree / "out" / LOG).read_bytes() == before


def test_a_view_without_end_in_place_of_a_table(tree: Path) -> None:
    migrate()
    change(tree / "out" / LOG, "DROP TABLE batches")
    change(
        tree / "out" / LOG,
        "CREATE VIEW batches AS WITH RECURSIVE c(number, time, files) AS (SELECT 1, 1.0, '[]' "
        "UNION ALL SELECT number + 1, time, files FROM c) SELECT * FROM c",
    )

    assert look(tree) == 3


@pytest.mark.parametrize("column", ["number = 9223372036854775807", "time = 1e300", "time = 'x'"])
def test_a_batch_of_no_time_and_no_number(column: str, tree: Path) -> None:
    migrate()
    change(tree / "out" / LOG, f"UPDATE batches SET {column}")

    assert look(tree) >= 1


def test_a_journal_that_is_locked_is_in_use_and_not_damaged(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate()
    connect = sqlite3.connect
    base = connect(tree / "out" / LOG)
    base.execute("BEGIN EXCLUSIVE")

    def impatient(*words: Any, **options: Any) -> sqlite3.Connection:
        return connect(*words, **{**options, "timeout": 0.05})

    monkeypatch.setattr(journal.sqlite3, "connect", impatient)
    for look_at in (journal.read, journal.Journal):
        with pytest.raises(TargetExists, match="journal is in use"):
            look_at(str(tree / "out" / LOG))
    base.close()


def test_a_mount_with_odd_letters_is_found(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree / "d\u00e4 ta"
    folder.mkdir()
    name = os.fsencode(folder).replace(b" ", b"\\040")
    lines = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / %s rw - nfs4 host:/x rw\n" % name
    monkeypatch.setattr(journal, "open", lambda *_: io.BytesIO(lines), raising=False)
    monkeypatch.setattr(journal.sys, "platform", "linux")

    assert journal.is_local(str(tree))
    assert not journal.is_local(str(folder))


# Trees -------------------------------------------------------------------------------------------


def test_a_pipe_named_as_the_list_of_a_bundle(tree: Path) -> None:
    for folder in (tree / "in", tree / "in" / "below"):
        folder.mkdir(exist_ok=True)
        shutil.copy("in/a.npy", folder / "b.npy")
        os.mkfifo(folder / "bundle.yaml")

    result = migrate()

    assert result.done == 3
    assert sorted(result.left_out) == [
        ("below/bundle.yaml", "is not a regular file"),
        ("bundle.yaml", "is not a regular file"),
    ]
    assert {found.mark for found in compare_trees("out", "in")} == {"="}
    assert {found.mark for found in compare_trees("in", "out")} == {"="}


def test_folders_in_one_another(tree: Path) -> None:
    deep(tree / "in")

    result = migrate()

    assert (result.done, result.failed) == (2, [])
    assert [found.mark for found in compare_trees("out", "in")] == ["=", "="]


def test_what_cannot_be_looked_at_is_not_the_same(tree: Path) -> None:
    migrate()
    deep(tree / "in", 2100)  # its path is too long for the system
    (tree / "in" / "nothing.npy").symlink_to("nobody")

    one, other = compare_trees("out", "in")

    assert sorted([one.mark, other.mark]) == ["!", "="]
    (odd,) = [found for found in (one, other) if found.mark == "!"]
    assert odd.path.startswith("d/d/d/")
    assert "File name too long" in odd.reason


def test_a_bundle_with_pipes_and_with_folders_in_one_another(tree: Path) -> None:
    raconvert.convert("in/a.npy", "in/bundle", to="bundle")
    os.mkfifo(tree / "in" / "bundle" / "pipe")
    (tree / "in" / "bundle" / "zero").symlink_to("/dev/zero")
    deep(tree / "in" / "bundle")

    result = raconvert.migrate("in", "out", to="npy", jobs=1, report="cert")

    assert (result.done, result.failed) == (2, [])
    files = {one["source"]: one for one in json.loads(Path("cert.json").read_text())["files"]}
    assert files["bundle"]["sha256"] is None  # a pipe has no digest
    assert raconvert.info("in/bundle")
    with pytest.raises(TargetExists):
        raconvert.convert("in/a.npy", "in/bundle", to="bundle", overwrite=True)


@pytest.mark.parametrize("planted", ["pipe", "device"])
@pytest.mark.parametrize("paranoid", [False, True])
def test_a_target_that_is_a_pipe_by_now(planted: str, paranoid: bool, tree: Path) -> None:
    migrate()
    (tree / "out" / "a.ra").unlink()
    PLANTED[planted](tree / "out" / "a.ra")

    result = migrate(paranoid=paranoid)

    ((path, error),) = result.failed
    assert (path, type(error)) == ("a.npy", Unsafe)


def test_a_certificate_may_say_anything(tree: Path) -> None:
    migrate(report="cert")
    facts = json.loads((tree / "cert.json").read_text())
    digest = facts["files"][0]["written"][0]["sha256"]
    (tree / "out" / "pipe").symlink_to(tree / "fifo")
    os.mkfifo(tree / "fifo")
    os.mkfifo(tree / "out" / "fifo")
    (tree / "out" / "up").symlink_to(tree)
    names = ["../victim", "/etc/passwd", "up/victim", "pipe", "fifo", "a.ra/x", "a\0b", "\ud800",
             "..", ".", "", "x/" * 5000, "nl\n.ra", 5, None]  # fmt: skip
    for name in names:
        facts["files"][0]["written"] = [{"path": name, "size": 9, "sha256": digest}]
        (tree / "cert.json").write_text(json.dumps(facts))
        try:
            (found,) = check_tree("out", "cert.json")
        except Corrupt:
            continue
        assert found.mark in "*+!"
    nested = "[" * 960 + "]" * 960
    begin = '{"certificate": "raconvert migration", "version": 1, "files": [{"written": '
    for odd in ("5", "{}", nested, f'[{{"path": {nested}}}]', "[" * 10**5):
        (tree / "cert.json").write_text(f"{begin}{odd}}}]}}")
        with pytest.raises(Corrupt):
            list(check_tree("out", "cert.json"))


def test_no_more_of_a_name_is_looked_up_than_can_be_there() -> None:
    class Counted(set[str]):
        asked = 0

        def __contains__(self, item: object) -> bool:
            self.asked += 1
            return super().__contains__(item)

    targets = Counted({"a/b"})

    assert not checksums._belongs("a/" * 10**5 + "x", targets, 3)
    assert targets.asked < 10
    assert checksums._belongs("a/b/c/d", targets, 3)
    assert checksums._belongs("a/b", targets, 3)
    assert not checksums._belongs("a/bc", targets, 3)
    assert sys.getrecursionlimit() < DEEP  # of the tests above
