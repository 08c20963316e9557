"""Fixtures of the tests of remote files: a real S3 server, and a web server, on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from raconvert.files.remote import filesystem, target
from tests.remote import s3server, webserver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def s3_session(package: Callable[..., None]) -> Iterator[s3server.S3Server]:
    """The server of this run of tests."""
    package("moto", "test")
    package("s3fs", "remote")
    with s3server.running() as server:
        yield server


@pytest.fixture
def s3(
    s3_session: s3server.S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[s3server.S3Server]:
    """The server without faults, and the environment in which everybody goes to it."""
    for name, value in s3_session.env.items():
        monkeypatch.setenv(name, value)
    s3_session.reset()
    yield s3_session
    s3_session.reset()


@pytest.fixture
def bucket(s3: s3server.S3Server) -> s3server.Bucket:
    """A new bucket, seen past the proxy."""
    return s3.bucket()


@pytest.fixture
def damaged(bucket: s3server.Bucket, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give `damage(key)`: from then on the last byte of the object is changed once it appears."""
    appear = target.S3Upload.appear

    def damage(name: str) -> None:
        def changed(upload: target.S3Upload) -> None:
            appear(upload)
            data = bytearray(bucket.get(name))
            data[-1] ^= 1
            bucket.put(name, bytes(data))

        monkeypatch.setattr(target.S3Upload, "appear", changed)

    return damage


@pytest.fixture
def web(tmp_path: Path, package: Callable[..., None]) -> Iterator[webserver.Server]:
    """A web server of the folder `web.folder`."""
    package("aiohttp", "remote")
    package("fsspec", "remote")
    folder = tmp_path / "web"
    folder.mkdir()
    with webserver.running(folder) as server:
        yield server


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once."""
    monkeypatch.setattr(filesystem, "FIRST_WAIT", 0.0)
