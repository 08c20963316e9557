"""What goes wrong with a store becomes an error of ours, after a bounded number of attempts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import raconvert
from raconvert.errors import Changed, MissingDependency, ReadFailed
from raconvert.files.remote import filesystem as fs
from tests.remote import s3server

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("no_waits")


def got(url: str, **more: str) -> Callable[[], object]:
    bucket, _, name = fs.key_of(url).partition("/")
    return lambda: fs.filesystem(url).call_s3("get_object", Bucket=bucket, Key=name, **more)


@pytest.mark.parametrize(
    ("status", "attempts", "text"),
    [
        (403, 1, "access is refused"),
        (404, 1, "does not exist"),
        (503, fs.ATTEMPTS, "slow down"),
        (500, fs.ATTEMPTS, "the server failed"),
    ],
)
def test_each_status_is_an_error_of_ours(
    s3: s3server.S3Server, bucket: s3server.Bucket, status: int, attempts: int, text: str
) -> None:
    bucket.put("x.ra", b"abc")
    s3.fail(s3server.status(status), "GetObject", times=100)
    url = f"s3://{bucket.name}/x.ra"

    with pytest.raises(ReadFailed, match=text) as caught:
        fs.attempted(got(url), url)

    assert caught.value.path == url
    assert len(s3.requests) == attempts


def test_what_works_a_second_later_is_tried_again(
    s3: s3server.S3Server, bucket: s3server.Bucket
) -> None:
    bucket.put("x.ra", b"abc")
    s3.fail(s3server.status(503), "GetObject", times=2)
    url = f"s3://{bucket.name}/x.ra"

    assert fs.attempted(got(url), url)
    assert len(s3.requests) == 3


def test_another_version_is_a_change(s3: s3server.S3Server, bucket: s3server.Bucket) -> None:
    bucket.put("x.ra", b"abc")
    url = f"s3://{bucket.name}/x.ra"

    with pytest.raises(Changed):
        fs.attempted(got(url, IfMatch='"0"'), url)


def test_no_bucket(s3: s3server.S3Server) -> None:
    with pytest.raises(ReadFailed, match="its bucket does not exist"):
        fs.attempted(got("s3://there-is-none/x"), "s3://there-is-none/x")


def test_no_server(monkeypatch: pytest.MonkeyPatch, s3: s3server.S3Server) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    with pytest.raises(ReadFailed, match=f"cut or refused .* {fs.ATTEMPTS} times"):
        fs.attempted(got("s3://bucket/x"), "s3://bucket/x")


def test_no_credentials(
    monkeypatch: pytest.MonkeyPatch, s3: s3server.S3Server, tmp_path: object
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    with pytest.raises(ReadFailed, match="no credentials") as caught:
        fs.attempted(got("s3://bucket/x"), "s3://bucket/x")
    assert "AWS_PROFILE" in str(caught.value)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setattr(fs, "find_spec", lambda name: None if name == "s3fs" else name)

    with pytest.raises(MissingDependency, match=r"pip install 'raconvert\[remote\]'"):
        fs.filesystem("s3://bucket/x")


@pytest.mark.parametrize("url", ["s3://no-such-bucket/x.npy", "https://host.invalid/x.npy"])
def test_reading_without_the_extra_says_what_to_install(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that has only what `pip install raconvert` brings."""
    for name in ("fsspec", "fsspec.asyn", "fsspec.config", "s3fs", "aiohttp"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(fs, "find_spec", lambda name: None)

    with pytest.raises(MissingDependency, match=r"pip install 'raconvert\[remote\]'"):
        raconvert.info(url)
