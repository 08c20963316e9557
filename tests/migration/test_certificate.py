"""The certificate of a migration: checked with `sha256sum`, `jq` and a parser of HTML."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import TargetExists, WriteFailed
from raconvert.migration.certificate import write_certificate
from raconvert.migration.records import Outcome, Unit

HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;<!--", "--><b>",
    "\u202egnp.exe", "]]>", "' onload='x", "a\tb", "line\nbreak", "{{7*7}}", "</style><style>",
]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Arrays, one damaged, one whose type PNG refuses, a text; names that a page might obey."""
    root = tmp_path / "source"
    for number, name in enumerate(HOSTILE):
        folder = root / name.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{name.replace('/', '_')}.npy", np.arange(number + 1, dtype="u1"))
    np.save(root / "wide.npy", np.arange(6.0).reshape(2, 3))
    (root / "bad<i>.npy").write_bytes(b"hello <script>")
    (root / "notes <u>.txt").write_text("hello")
    return root


def certified(tree: Path, tmp_path: Path, **options: object) -> tuple[dict, str]:
    """The JSON and the page of a migration with a certificate."""
    options.setdefault("to", "ra")
    raconvert.migrate(tree, tmp_path / "out", report=tmp_path / "cert", **options)
    return json.loads((tmp_path / "cert.json").read_bytes()), (tmp_path / "cert.html").read_text()


def by_source(facts: dict) -> dict[str, dict]:
    return {file["source"]: file for file in facts["files"]}


def test_the_page_about_the_certificate_has_every_field(tree: Path, tmp_path: Path) -> None:
    """`docs/certificate.md` has each field of the JSON in its tables, and no field besides."""
    facts, _ = certified(tree, tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "certificate.md").read_text(encoding="utf-8")
    whole, of_files = text.split("## BASE.json")[1].split("A file of `files` has:")

    for table, fields in ((whole, {*facts}), (of_files, set().union(*facts["files"]))):
        cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
        listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
        assert fields - listed == set()
        # Only of stacks, and of files that were converted with a change or a remark.
        assert listed - fields <= {"members", "equivalent", "allowed", "notes"}


def sha256sum(tool: Callable[..., str], path: Path) -> str:
    with path.open("rb") as file:
        said = subprocess.run([tool("sha256sum")], stdin=file, capture_output=True, check=True)
    return said.stdout.split()[0].decode()


# What it says -----------------------------------------------------------------------------------


def test_every_file_has_its_result_and_its_digests(
    tree: Path, tmp_path: Path, tool: Callable[..., str]
) -> None:
    facts, _ = certified(tree, tmp_path)

    assert facts["certificate"] == "raconvert migration"
    assert facts["version"] == 1
    assert facts["complete"]
    assert facts["summary"]["exact"] == len(HOSTILE) + 1
    assert facts["summary"]["failed"] == 1
    assert facts["left_out"] == [{"path": "notes <u>.txt", "reason": "no format claims it"}]
    files = by_source(facts)
    assert files["bad<i>.npy"]["result"] == "failed"
    for file in facts["files"]:
        if "written" in file:
            assert file["sha256"] == sha256sum(tool, tree / file["source"])
            for one in file["written"]:
                assert one["sha256"] == sha256sum(tool, tmp_path / "out" / one["path"])
                assert one["size"] == (tmp_path / "out" / one["path"]).stat().st_size


def test_refused_and_allowed_are_told_apart(tree: Path, tmp_path: Path) -> None:
    refused, page = certified(tree, tmp_path, to="png")
    shutil.rmtree(tmp_path / "out")
    wide = by_source(refused)["wide.npy"]

    assert wide["result"] == "refused"
    assert "float64" in wide["error"]["what"] + wide["error"]["remedy"]
    assert "wide.npy" in page

    np.save(tree / "wide.npy", np.array([1 + 2**60]))
    allowed, _ = certified(tree, tmp_path, dtype="float64", allow=["precision"],
                           include=["wide.npy"])  # fmt: skip
    assert by_source(allowed)["wide.npy"]["result"] == "allowed"
    assert by_source(allowed)["wide.npy"]["allowed"][0]["reason"]


def test_equivalent_is_said_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    np.save(tmp_path / "source/half.npy", np.ones((2, 2), "f2"))
    np.save(tmp_path / "source/line.npy", np.ones(3))
    facts, page = certified(tmp_path / "source", tmp_path, to="mat")

    assert [file["equivalent"][0]["property"] for file in facts["files"]] == ["type", "shape"]
    assert facts["summary"]["equivalent"] == 2
    assert "equivalent: every value is kept" in page


def test_it_names_no_folder_of_this_machine(tree: Path, tmp_path: Path) -> None:
    certified(tree, tmp_path, to="png")

    for name in ("cert.json", "cert.html"):
        text = (tmp_path / name).read_text()
        assert str(tmp_path) not in text
        assert os.uname().nodename not in text


def test_the_same_from_the_journal_later(tree: Path, tmp_path: Path) -> None:
    now, _ = certified(tree, tmp_path)
    words = ["--status", str(tmp_path / "out"), "--report", str(tmp_path / "later.html")]
    done = subprocess.run([sys.executable, "-m", "raconvert", "migrate", *words],
                          capture_output=True, text=True, check=False)  # fmt: skip

    assert done.returncode == 1, done.stderr  # a file failed
    later = json.loads((tmp_path / "later.json").read_bytes())
    for facts in (now, later):
        facts.pop("made")
    assert later == now


def test_workers_take_the_digests_of_sources_too(tmp_path: Path, tool: Callable[..., str]) -> None:
    (tmp_path / "source").mkdir()
    for number in range(3000):
        np.save(tmp_path / f"source/{number}.npy", np.arange(number % 7))
    facts, _ = certified(tmp_path / "source", tmp_path, jobs=2, batch_seconds=0.01)

    for file in random.Random(2).sample(facts["files"], 50):
        assert file["sha256"] == sha256sum(tool, tmp_path / "source" / file["source"])
    assert all(file["sha256"] for file in facts["files"])


def test_shards_have_one_certificate(tree: Path, tmp_path: Path) -> None:
    for number in (1, 3):
        raconvert.migrate(tree, tmp_path / "out", to="ra", shard=f"{number}/3")
    write_certificate(str(tmp_path / "part"), str(tmp_path / "out"))
    raconvert.migrate(tree, tmp_path / "out", to="ra", shard="2/3")
    write_certificate(str(tmp_path / "cert"), str(tmp_path / "out"))
    part, whole = (json.loads((tmp_path / f"{n}.json").read_bytes()) for n in ("part", "cert"))

    assert not part["complete"]
    assert part["shards"]["missing"] == [2]
    assert "never ran: 2" in (tmp_path / "part.html").read_text()
    assert whole["complete"]
    assert len(whole["files"]) == len(HOSTILE) + 2
    assert len(whole["left_out"]) == 1
    assert len(whole["runs"]) == 3


def test_a_run_that_has_not_ended_is_not_complete(tree: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "raconvert", "migrate", str(tree), str(tmp_path / "out"),
             "--to", "ra", "--jobs", "1", "--batch-seconds", "0.001"]  # fmt: skip
    subprocess.run(words, env={**os.environ, "RACONVERT_TEST_KILL": "synced:1"}, check=False,
                   capture_output=True)  # fmt: skip
    write_certificate(str(tmp_path / "cert"), str(tmp_path / "out"))
    facts = json.loads((tmp_path / "cert.json").read_bytes())

    assert not facts["complete"]
    assert facts["checksums"] is None
    assert facts["summary"]["unfinished"] > 0
    assert "has not ended" in (tmp_path / "cert.html").read_text()


def test_a_source_that_changed_meanwhile_has_no_digest(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.migration.work import Worker

    convert = Worker._outcome

    def changing(worker: Worker, unit: Unit, since: float) -> Outcome:
        outcome = convert(worker, unit, since)
        if unit.source == "wide.npy":
            (tree / unit.source).write_bytes(b"other")
        return outcome

    monkeypatch.setattr(Worker, "_outcome", changing)
    facts, _ = certified(tree, tmp_path, jobs=1)

    assert by_source(facts)["wide.npy"]["result"] == "exact"
    assert by_source(facts)["wide.npy"]["sha256"] is None


def test_a_stack_that_changed_meanwhile_has_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.migration.work import Worker

    convert = Worker._outcome
    (tmp_path / "in/s").mkdir(parents=True)
    for folder in ("s", "t"):
        (tmp_path / "in" / folder).mkdir(exist_ok=True)
        for number in range(3):
            np.save(tmp_path / "in" / folder / f"{number}.npy", np.arange(4))

    def changing(worker: Worker, unit: Unit, since: float) -> Outcome:
        outcome = convert(worker, unit, since)
        if unit.source == "s":
            np.save(tmp_path / "in/s/1.npy", np.arange(5))
        return outcome

    monkeypatch.setattr(Worker, "_outcome", changing)
    facts, _ = certified(tmp_path / "in", tmp_path, jobs=1, stack_folders=True)

    assert by_source(facts)["s"]["sha256"] is None
    assert by_source(facts)["t"]["sha256"] is not None


# A stranger checks it ---------------------------------------------------------------------------


def test_a_stranger_checks_a_thousand_outputs_and_finds_every_flipped_bit(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    choice, root, out = random.Random(1000), tmp_path / "source", tmp_path / "out"
    for number in range(1050):
        folder = root / f"d{number % 30}"
        folder.mkdir(parents=True, exist_ok=True)
        values = np.frombuffer(choice.randbytes(8 * choice.randrange(40)), "u8")
        np.save(folder / f"x{number}.npy", values)
    facts, _ = certified(root, tmp_path)
    said = [one for file in facts["files"] for one in file["written"]]
    lines = [f"{one['sha256']}  {one['path']}\n" for one in choice.sample(said, 1000)]

    def bad(text: str) -> list[str]:
        done = subprocess.run([tool("sha256sum"), "--check", "--quiet"], input=text, cwd=out,
                              capture_output=True, text=True, check=False)  # fmt: skip
        return sorted(line.removesuffix(": FAILED") for line in done.stdout.splitlines())

    assert bad("".join(lines)) == []
    assert bad((out / "SHA256SUMS").read_text()) == []
    assert sha256sum(tool, out / "SHA256SUMS") == facts["checksums"]["sha256"]

    flipped = sorted(line.split("  ")[1].strip() for line in choice.sample(lines, 100))
    for name in flipped:
        whole = bytearray((out / name).read_bytes())
        whole[choice.randrange(len(whole))] ^= 1 << choice.randrange(8)
        (out / name).write_bytes(whole)
    assert bad("".join(lines)) == flipped
    assert bad((out / "SHA256SUMS").read_text()) == flipped


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("jq")
    (tmp_path / "source").mkdir()
    for number in range(5):
        np.save(tmp_path / "source" / f"{number}.npy", np.arange(number))
    facts, page = certified(tmp_path / "source", tmp_path)
    shutil.copy(tmp_path / "cert.json", tmp_path / "out")
    unescaped = {"&quot;": '"', "&#x27;": "'", "&gt;": ">", "&lt;": "<", "&amp;": "&"}
    commands = re.findall(r"<pre>(.*?)</pre>", page)
    for mark, letter in unescaped.items():
        commands = [command.replace(mark, letter) for command in commands]

    outputs = [
        subprocess.run(["sh", "-c", command], cwd=tmp_path / "out", capture_output=True, text=True,
                       check=True).stdout
        for command in commands
    ]  # fmt: skip
    assert len(commands) == 3
    assert outputs[0].split()[0] == facts["checksums"]["sha256"]
    assert outputs[0].split()[0] in page
    assert outputs[1].count(": OK") == outputs[2].count(": OK") == 5


# The page ---------------------------------------------------------------------------------------


def pages(tree: Path, tmp_path: Path) -> list[str]:
    """Pages of runs that went well and not, with few files and with many."""
    found = [certified(tree, tmp_path, to=to)[1] for to in ("ra",)]
    for to in ("png", "mat"):
        (tmp_path / to).mkdir()
        found.append(certified(tree, tmp_path / to, to=to)[1])
    for number in range(1100):
        np.save(tree / f"many{number}.npy", np.arange(2))
    (tmp_path / "many").mkdir()
    found.append(certified(tree, tmp_path / "many", arrays=["?"])[1])
    return found


def test_the_page_is_valid_html_that_loads_and_runs_nothing(
    tree: Path, tmp_path: Path, package: Callable[..., None]
) -> None:
    package("html5lib", "test")
    import html5lib

    allowed = {
        "html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2", "p", "table",
        "thead", "tbody", "tr", "td", "th", "bdi", "code", "pre", "ol", "ul", "li", "br", "details", "summary", "strong",
    }  # fmt: skip

    for page in pages(tree, tmp_path):
        parsed = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
        elements = [one for one in parsed.iter() if isinstance(one.tag, str)]
        assert {one.tag for one in elements} <= allowed
        names = {name for one in elements for name in one.attrib}
        assert names <= {
            "charset",
            "name",
            "content",
            "http-equiv",
            "class",
            "open",
            "lang",
            "scope",
        }
        assert not re.search(r"https?:|url\(|@import|\u202e", page)
        styles = [one for one in elements if one.tag == "style"]
        assert len(styles) == 1
        assert "prefers-color-scheme" in styles[0].text or "color-scheme: light dark" in (
            styles[0].text
        )
        assert "@media print" in styles[0].text


def test_hostile_names_are_read_as_they_are(
    tree: Path, tmp_path: Path, package: Callable[..., None]
) -> None:
    package("html5lib", "test")
    import html5lib

    _, page = certified(tree, tmp_path)
    parsed = html5lib.parse(page, namespaceHTMLElements=False)
    shown = {"".join(one.itertext()) for one in parsed.iter("bdi")}

    for name in HOSTILE:
        safe = name.replace("/", "_")
        escaped = safe.replace("\u202e", r"\u202e").replace("\t", r"\x09").replace("\n", r"\n")
        assert f"{escaped}/{escaped}.npy" in shown, name


def test_a_large_tree_has_a_short_page_with_every_failure(tmp_path: Path) -> None:
    root = tmp_path / "source"
    root.mkdir()
    for number in range(1500):
        np.save(root / f"x{number}.npy", np.asfortranarray(np.eye(2)))
    for number in range(40):
        (root / f"bad{number}.npy").write_bytes(b"hello")
    facts, page = certified(root, tmp_path)

    assert len(facts["files"]) == 1540
    assert len(page) < 20_000
    for number in range(40):
        assert f"bad{number}.npy" in page
    assert page.count("transposed to row-major") == 1
    assert '<td class="n">1,500</td><td>array' in page


# Where it is written ----------------------------------------------------------------------------


def test_other_files_are_not_replaced(tree: Path, tmp_path: Path) -> None:
    for name in ("cert.html", "cert.json"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(TargetExists, match="not a certificate"):
            certified(tree, tmp_path)
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    certified(tree, tmp_path)
    certified(tree, tmp_path)  # its own are


def test_the_page_of_a_file_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    """It comes from the same renderer, and is not a certificate."""
    page = str(tmp_path / "cert.html")
    assert main(["info", str(tree / "wide.npy"), "--html", "-o", page]) == 0
    with pytest.raises(TargetExists, match="not a certificate"):
        certified(tree, tmp_path)


def test_a_migration_imports_the_page_only_to_write_it(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    np.save(tmp_path / "source" / "x.npy", np.eye(2))
    code = (
        "import sys; from raconvert.cli import main; "
        "assert main(['migrate', 'source', 'out', '--to', 'ra', *sys.argv[1:]]) == 0; "
        "print([n for n in sys.modules if '.views' in n or n.endswith('migration.page')])"
    )
    for words, wanted in ((["--report", "cert"], True), ([], False)):
        run = [sys.executable, "-c", code, *words]
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        out = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert ("raconvert.migration.page" in out.splitlines()[-1]) is wanted
        assert ("views" in out.splitlines()[-1]) is wanted


def test_a_folder_that_is_not_there_is_said_before_the_work(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="its folder does not exist"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", report=tmp_path / "none/cert")
    assert not list((tmp_path / "out").rglob("*.ra"))


def test_a_dry_run_says_that_it_has_none(tree: Path, tmp_path: Path) -> None:
    result = raconvert.migrate(tree, tmp_path / "out", to="ra", dry_run=True,
                               report=tmp_path / "cert")  # fmt: skip

    assert "a dry run has no certificate: none was written" in result.notes
    assert not list(tmp_path.glob("cert*"))


def test_the_journal_of_a_finished_run_is_one_file(tree: Path, tmp_path: Path) -> None:
    """A log beside it could not be opened on a medium that cannot be written."""
    certified(tree, tmp_path)
    write_certificate(str(tmp_path / "later"), str(tmp_path / "out"))
    journal = tmp_path / "out/.raconvert-migration.sqlite"

    assert not list((tmp_path / "out").glob(".raconvert*-wal"))
    assert not list((tmp_path / "out").glob(".raconvert*-shm"))
    assert journal.read_bytes()[18:20] == b"\1\1"  # https://www.sqlite.org/fileformat2.html


def test_what_is_refused_before_the_work_is_in_status_too(tree: Path, tmp_path: Path) -> None:
    certified(tree, tmp_path)
    (tree / "wide.nrrd").write_bytes((tree / "wide.npy").read_bytes())
    np.save(tree / "wide.npy", np.arange(3))
    facts, _ = certified(tree, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", "migrate", "--status", str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    files = by_source(facts)
    assert files["wide.npy"]["result"] == "refused"
    assert "changed since it was converted" in files["wide.npy"]["error"]["what"]
    assert "as 'wide.npy' does" in files["wide.nrrd"]["error"]["what"]
    assert done.returncode == 1
    assert "changed since it was converted" in done.stdout
