"""Servers that answer what nobody asked for: an error of ours, in bounded time and room."""

from __future__ import annotations

import socketserver
import time
from typing import TYPE_CHECKING
from unittest.mock import Mock

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Changed, RaconvertError, ReadFailed, UsageError
from raconvert.files.remote import filesystem as fs
from raconvert.files.remote import listing, located, objects_by_ranges
from raconvert.files.remote.source import RemoteFile
from raconvert.migration import remote as migration
from tests.remote.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.remote import s3server

    Answer = Callable[["Raw", str, dict[str, str]], Iterator[bytes]]

SIZE = 100_000


class Raw(socketserver.ThreadingTCPServer):
    """Sends the bytes that `answer` makes of a path and its headers, and closes."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[tuple[str, dict[str, str]]] = []

    def url(self, name: str = "x.ra", *, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.server_address[1]}/{name}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class _Handler(socketserver.StreamRequestHandler):
    server: Raw

    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        headers = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self.server.asked.append((path, headers))
        for piece in self.server.answer(self.server, path, headers):
            self.wfile.write(piece)


def serving(answer: Answer) -> AbstractContextManager[Raw]:
    return in_thread(Raw(answer))


pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture(autouse=True)
def _packages(package: Callable[..., None]) -> None:
    package("aiohttp", "remote")
    package("fsspec", "remote")


def head(status: str, **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def asked_range(headers: dict[str, str]) -> tuple[int, int]:
    begin, _, end = headers["range"].removeprefix("bytes=").partition("-")
    return int(begin), min(int(end) + 1, SIZE)


def honest(headers: dict[str, str], **more: object) -> bytes:
    begin, end = asked_range(headers)
    about = {"Content_Range": f"bytes {begin}-{end - 1}/{SIZE}", "Content_Length": end - begin}
    return head("206 Partial", **{**about, **more}) + bytes(end - begin)


def endless(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


# Answers that are not what was asked for ---------------------------------------------------------

BODY = bytes(16384)
WRONG = {
    "another range": head("206 P", Content_Range="bytes 1-16384/100000", Content_Length=16384),
    "no range": head("206 P", Content_Length=16384),
    "no size": head("206 P", Content_Range="bytes 0-16383/*", Content_Length=16384),
    "a negative range": head("206 P", Content_Range="bytes 0--1/0", Content_Length=16384),
    "a size of 5000 digits": head("206 P", Content_Range=f"bytes 0-16383/{'9' * 5000}"),
    "a longer range": head("206 P", Content_Range="bytes 0-99999/100000", Content_Length=100000),
    "a longer body": head("206 P", Content_Range="bytes 0-16383/100000", Content_Length=99999),
    "a shorter body": head("206 P", Content_Range="bytes 0-16383/100000", Content_Length=100),
    "several ranges": head("206 P", Content_Type="multipart/byteranges; boundary=x"),
    "another status": head("204 No Content"),
    "a choice": head("300 Multiple Choices", Content_Length=16384),
    "compressed": head("206 P", Content_Range="bytes 0-16383/100000", Content_Encoding="gzip"),
    "compressed twice": head("200 OK", Content_Length=16384, Content_Encoding="identity").replace(
        b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"
    ),
    "a long header": head("200 OK", X=bytes(100_000).hex()),
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "no address": head("302 Found", Location="http://[::1/x"),
    "no location": head("302 Found"),
    "another kind of place": head("302 Found", Location="ftp://127.0.0.1/x"),
    "itself": head("302 Found", Location="/x.ra"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_an_error_of_ours(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda *_: iter([WRONG[wrong], BODY])) as server:
        with pytest.raises(ReadFailed, match=r"x\.ra"):
            RemoteFile(server.url())
        assert len(server.asked) <= max(fs.ATTEMPTS, objects_by_ranges.REDIRECTIONS + 1)
        assert main(["info", server.url()]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("part", ["header", "chunked range", "information"])
def test_what_does_not_end_is_given_up(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_by_ranges, "PATIENCE", 0.5)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 1_000_000)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 1_000_000)

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        if part == "header":
            yield b"HTTP/1.1 200 OK\r\n"
            yield from endless(b"X-More: " + b"x" * 1000 + b"\r\n")
        elif part == "information":
            yield from endless(b"HTTP/1.1 102 Processing\r\n\r\n")
        else:
            yield head("206 P", Content_Range="bytes 0-16383/100000", Transfer_Encoding="chunked")
            yield from endless(b"400\r\n" + bytes(1024) + b"\r\n")

    with serving(answer) as server, pytest.raises(ReadFailed):
        RemoteFile(server.url())


def test_an_endless_file_does_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    room = 4 << 20
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2 * room}))
    sent = []

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        yield head("200 OK", Transfer_Encoding="chunked")
        for piece in endless(b"10000\r\n" + bytes(1 << 16) + b"\r\n"):
            sent.append(len(piece))
            yield piece

    with serving(answer) as server:
        with pytest.raises(ReadFailed, match=f"more than {room} bytes"):
            RemoteFile(server.url())
        assert len(server.asked) == 1
    assert sum(sent) < 10 * room


@pytest.mark.parametrize("by_ranges", [True, False])
def test_what_drips_is_given_up(by_ranges: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_by_ranges, "PATIENCE", 0.4)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 100_000)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 100_000)

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        about = {"Content_Range": "bytes 0-16383/100000"} if by_ranges else {}
        yield head("206 P" if by_ranges else "200 OK", Content_Length=16384, **about)
        for _ in range(200):
            time.sleep(0.02)
            yield b"x"

    with serving(answer) as server:
        with pytest.raises(ReadFailed, match="too slowly"):
            RemoteFile(server.url())
        assert len(server.asked) == 1


def test_a_slow_file_is_read_as_long_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a whole copy grows with what has come."""
    monkeypatch.setattr(objects_by_ranges, "PATIENCE", 0.8)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 100_000)
    monkeypatch.setattr(objects_by_ranges, "SLOWEST", 100_000)

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        yield head("200 OK", Content_Length=25 * 20_000)
        for _ in range(25):
            time.sleep(0.05)
            yield bytes(20_000)

    with serving(answer) as server:
        assert RemoteFile(server.url()).size == 500_000


@pytest.mark.parametrize("later", ["gone", "empty", "other tag", "other size", "whole", "no tag"])
def test_a_file_that_is_another_one_later(later: str) -> None:
    """An answer that nothing is left, too: it once was read forever."""

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        if len(server.asked) == 1:
            yield honest(headers, ETag='"1"')
        elif later == "empty":
            yield head("416 Range", Content_Range="bytes */0", Content_Length=0, ETag='"1"')
        elif later == "gone":
            yield head("404 Not Found", Content_Length=0)
        elif later == "whole":
            yield head("200 OK", Content_Length=SIZE, ETag='"1"') + bytes(SIZE)
        elif later == "other size":
            begin, end = asked_range(headers)
            yield honest(headers, ETag='"1"', Content_Range=f"bytes {begin}-{end - 1}/{SIZE + 1}")
        else:
            yield honest(headers, **({"ETag": '"2"'} if later == "other tag" else {}))

    with serving(answer) as server:
        file = RemoteFile(server.url())
        with pytest.raises(ReadFailed if later == "gone" else Changed):
            file.read(100, 50_000)


def test_many_small_pieces_cost_no_more_than_their_bytes() -> None:
    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        begin, end = asked_range(headers)
        about = {"Content_Range": f"bytes {begin}-{end - 1}/{SIZE}"}
        yield head("206 P", Transfer_Encoding="chunked", **about)
        yield b"1\r\nx\r\n" * (end - begin) + b"0\r\n\r\n"

    with serving(answer) as server:
        assert RemoteFile(server.url()).read(SIZE, 0) == b"x" * SIZE


@pytest.mark.parametrize("suffix", ["ra", "npy", "h5", "tiff"])
def test_a_source_is_of_one_version_whenever_it_changes(suffix: str, tmp_path: Path) -> None:
    """What is asked again is compared, by whatever module: never a mixture of two files."""
    files = []
    for value in (1.0, 2.0):
        raconvert.write(tmp_path / f"x.{suffix}", np.full(20_000, value), overwrite=True)
        files.append((tmp_path / f"x.{suffix}").read_bytes())
    after = [0]

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        number = len(server.asked) > after[0]
        if not path.endswith(f"x.{suffix}"):
            yield head("404 Not Found", Content_Length=0)
            return
        begin, _, end = headers["range"].removeprefix("bytes=").partition("-")
        data, size = files[number][int(begin) : int(end) + 1], len(files[number])
        span = f"bytes {begin}-{int(begin) + len(data) - 1}/{size}"
        about = {"Content_Range": span, "Content_Length": len(data), "ETag": f'"{number}"'}
        yield head("206 P", **about) + data

    results = set()
    with serving(answer) as server:
        name = "x" if suffix == "h5" else None
        for after[0] in range(1, 7):
            server.asked.clear()
            try:
                found = {*np.unique(raconvert.read(server.url(f"x.{suffix}"), name)).tolist()}
            except Changed:
                found = {"changed"}
            assert len(found) == 1
            results |= found
    assert "changed" in results
    assert results <= {"changed", 1.0, 2.0}


# Other hosts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in the URL", "in the environment"])
@pytest.mark.parametrize("same", [True, False])
def test_what_proves_who_asks_stays_with_its_host(
    way: str, same: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if way == "in the environment":
        monkeypatch.setenv("FSSPEC_HTTP", '{"headers": {"X-Api-Key": "geheim"}}')
    user = "me:geheim@" if way == "in the URL" else ""
    place = [""]

    def answer(server: Raw, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        leads = path == "/x.ra"
        yield head("302 Found", Location=place[0]) if leads else honest(headers)

    with serving(answer) as other, serving(answer) as server:
        place[0] = "/y.ra" if same else other.url("y.ra")
        refused = way == "in the environment" and not same
        if refused:
            with pytest.raises(ReadFailed, match="another host"):
                RemoteFile(server.url(user=user))
            assert not other.asked
        else:
            assert RemoteFile(server.url(user=user)).read(10, 0) == bytes(10)
        for _, headers in server.asked:
            assert headers.get("authorization") or headers.get("x-api-key")
        for _, headers in other.asked:
            assert not {"authorization", "x-api-key"} & set(headers)
        main(["info", server.url(user=user)])
    assert "geheim" not in "".join(capsys.readouterr())


def test_https_does_not_lead_to_http(package: Callable[..., None]) -> None:
    import yarl

    plain = type("FS", (), {"kwargs": {}, "client_kwargs": {}})
    page = objects_by_ranges.WebObject("https://h/x")
    secure = yarl.URL("https://me:secret@h/x")

    with pytest.raises(ReadFailed, match="does not follow"):
        page._led_to("http://h/x", secure, plain)
    assert page._led_to("https://other/y", secure, plain).user is None
    assert page._led_to("y", secure, plain).password == "secret"


@pytest.mark.parametrize(
    "word",
    [
        "https://me:geheim/geheim@h/x.ra",
        "https://me:geheim#geheim@h/x.ra",
        "https://me:geheim?geheim@h/x.ra",
        "https://me:geheim@h:port/x.ra",
        "https://:geheim@/x.ra",
        "https://geheim@[h/x.ra",
        "https://me:geheim@h h/x.ra",
        "https://me:geheim@127.0.0.1:1/x.ra?sig=a)geheim'geheim",
        "https://geheim@127.0.0.1:1/x.ra",
        "https://me:geheim@127.0.0.1:99999/x.ra",
        "s3://KEY:geheim/geheim@bucket/x.ra",
        "s3://KEY:geheim/geheim",
        "gs://KEY:geheim@bucket/x.ra",
    ],
)
@pytest.mark.parametrize("verb", ["info", "digest", "verify"])
def test_a_slip_of_the_hand_tells_no_secret(
    word: str, verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs, "ATTEMPTS", 1)

    assert main([verb, word]) in (1, 2)

    told = "".join(capsys.readouterr())
    assert "geheim" not in told
    assert "Traceback" not in told


def test_what_is_a_host_or_a_bucket() -> None:
    for word in (
        "https://[::1]:8080/x",
        "http://h:80/a@b:c",
        "s3://arn:aws:s3:eu-1:1:accesspoint/p/x",
        "s3://b/a:b@c",
    ):
        assert located(word) == word
    with pytest.raises(UsageError):
        located("http:///x")


# Lists of stores ---------------------------------------------------------------------------------


class Store:
    """A file system with a list that nobody should believe."""

    def __init__(self, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = names
        self.asked = 0
        for module in (listing, listing, migration):
            if hasattr(module, "filesystem"):
                monkeypatch.setattr(module, "filesystem", lambda _: self)

    def find(self, *_: object, **__: object) -> dict[str, object]:
        return {n: {"name": n, "type": "file", "size": 1, "ETag": '"1"'} for n in self.names}

    def call_s3(self, *_: object, **__: object) -> dict[str, object]:
        self.asked += 1
        more = {"NextKeyMarker": "k", "NextUploadIdMarker": "u"}
        return {"Uploads": [{"Key": "p/x", "UploadId": "1"}], "IsTruncated": True, **more}

    def info(self, _: str) -> dict[str, object]:
        return {"size": 100, "type": "file"}

    def cat_file(self, *_: object, **__: object) -> bytes:
        return b""


def test_a_list_of_100_000_names(monkeypatch: pytest.MonkeyPatch) -> None:
    Store([f"b/in/{n % 100}/{n}.ra" for n in range(100_000)], monkeypatch)

    assert len(listing.files_in("s3://b/in", True)) == 100_000


@pytest.mark.parametrize(
    "name",
    [
        "b/in/../x.ra", "b/in/a/../../x.ra", "b/in//etc/x.ra", "b/in/a//b.ra", "b/in/./x.ra",
        "b/in/..", "b/in/a\\..\\b.ra", "b/in/a\0.ra", "b/other/x.ra", "b/inside.ra", "c/in/x.ra",
        "b/in",
    ],
)  # fmt: skip
def test_names_that_no_file_below_has_are_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store([name], monkeypatch)

    with pytest.raises(RaconvertError, match="lead out"):
        listing.files_in("s3://b/in", True)


def test_names_with_control_characters_are_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Store(["b/in/a\x1b[2J\n%2F.ra"], monkeypatch)

    (found,) = listing.files_in("s3://b/in", True)

    assert found == "s3://b/in/a\x1b[2J\n%2F.ra"
    shown = str(ReadFailed("does not exist", path=found))
    assert shown == r"'s3://b/in/a\x1b[2J\n%2F.ra': does not exist"


def test_a_list_that_goes_on_with_itself_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Store([], monkeypatch)

    assert listing.uploads_below("s3://b/p/")
    assert odd.asked == 2
    assert listing.uploads_of("s3://b/p/x") is not None


def test_uploads_of_an_object_are_those_of_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        None: {
            "Uploads": [{"Key": "x", "UploadId": "1"}], "IsTruncated": True,
            "NextKeyMarker": "x", "NextUploadIdMarker": "1",
        },
        "1": {"Uploads": [{"Key": "x", "UploadId": "2"}, {"Key": "xy", "UploadId": "3"}]},
    }  # fmt: skip
    store = Mock()
    store.call_s3.side_effect = lambda _, **asked: pages[asked.get("UploadIdMarker")]
    monkeypatch.setattr(listing, "filesystem", lambda _: store)

    assert listing.uploads_of("s3://b/x") == ["1", "2"]


def test_a_store_that_sends_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    Store([], monkeypatch)

    assert migration.digest_of("memory://x")[0] == 100


def test_names_that_are_a_file_and_a_folder(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    """Each is written, or named as failed; none in the place of another."""
    for number, key in enumerate(["x.npy", "x.ra/y.npy", "x.npy/z.npy", "X.npy", "a%2Fb.npy"]):
        np.save(tmp_path / "one.npy", np.arange(number + 1))
        bucket.put(f"in/{key}", (tmp_path / "one.npy").read_bytes())
    bucket.put("in/x/", b"")

    done = raconvert.migrate(bucket.url("in"), tmp_path / "out", to="ra", jobs=1)

    found = {
        str(path.relative_to(tmp_path / "out")): raconvert.read(path).size
        for path in (tmp_path / "out").rglob("*.ra")
        if path.is_file()
    }
    failed = {unit.source for unit, _ in done.of_state("failed")} | {p for p, _ in done.left_out}
    sizes = {"x.ra": 1, "x.ra/y.ra": 2, "x.npy/z.ra": 3, "X.ra": 4, "a%2Fb.ra": 5}
    assert found.items() <= sizes.items()
    missing = {name.removesuffix(".ra") + ".npy" for name in sizes.keys() - found.keys()}
    assert missing <= failed
    assert len(missing) <= 1
