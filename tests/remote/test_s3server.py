"""The S3 server of the tests, against a client that we did not write."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.remote.s3server import Bucket, S3Server

boto3 = pytest.importorskip("boto3", reason="pip install 'moto[server]' to run these tests")
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError, ConnectionClosedError  # noqa: E402

from tests.remote import s3server  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def client(s3: S3Server) -> object:
    config = Config(retries={"max_attempts": 0}, request_checksum_calculation="when_required")
    return boto3.session.Session().client("s3", endpoint_url=s3.endpoint, config=config)


def test_bytes_are_counted(client: object, s3: S3Server, bucket: Bucket) -> None:
    client.put_object(Bucket=bucket.name, Key="a/b c.bin", Body=b"12345")
    assert bucket.names() == ["a/b c.bin"]
    assert s3.up == 5
    got = client.get_object(Bucket=bucket.name, Key="a/b c.bin", Range="bytes=1-3")
    assert got["Body"].read() == b"234"
    assert s3.down == 3
    assert s3.operations == ["PutObject", "GetObject"]


def test_a_range_is_copied_only_from_the_object_of_this_etag(
    client: object, s3: S3Server, bucket: Bucket
) -> None:
    data = bytes(range(256)) * (6 * MIB // 256)
    bucket.put("a", data)
    etag = hashlib.md5(data).hexdigest()
    where = {"Bucket": bucket.name, "Key": "b"}
    upload = client.create_multipart_upload(**where)["UploadId"]
    part = {**where, "UploadId": upload, "PartNumber": 1, "CopySourceRange": f"bytes=7-{5 * MIB}"}
    source = {"Bucket": bucket.name, "Key": "a"}
    with pytest.raises(ClientError, match="412|PreconditionFailed"):
        client.upload_part_copy(**part, CopySource=source, CopySourceIfMatch="0" * 32)
    done = client.upload_part_copy(**part, CopySource=source, CopySourceIfMatch=f'"{etag}"')
    assert bucket.uploads() == ["b"]
    parts = [{"PartNumber": 1, "ETag": done["CopyPartResult"]["ETag"]}]
    client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    assert bucket.get("b") == data[7 : 5 * MIB + 1]
    assert bucket.uploads() == []
    assert s3.up < 1000


def test_what_exists_is_not_replaced(client: object, bucket: Bucket) -> None:
    client.put_object(Bucket=bucket.name, Key="a", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=bucket.name, Key="a", Body=b"2", IfNoneMatch="*")
    assert bucket.get("a") == b"1"


@pytest.mark.parametrize("code", [403, 404, 500, 503])
def test_errors_are_injected(client: object, s3: S3Server, bucket: Bucket, code: int) -> None:
    s3.fail(s3server.status(code), "PutObject", times=1, skip=1, key="a")
    where = {"Bucket": bucket.name, "Key": "a"}
    client.put_object(**where, Body=b"1")
    with pytest.raises(ClientError, match=s3server.CODES[code]):
        client.put_object(**where, Body=b"2")
    assert bucket.get("a") == b"1"
    client.put_object(**where, Body=b"3")
    assert bucket.get("a") == b"3"


def test_connections_are_cut(client: object, s3: S3Server, bucket: Bucket) -> None:
    where = {"Bucket": bucket.name, "Key": "a"}
    s3.fail(s3server.cut(), "PutObject", times=1)
    with pytest.raises(ConnectionClosedError):
        client.put_object(**where, Body=b"1")
    assert bucket.names() == []
    s3.reset()
    s3.fail(s3server.lose_answer(), "PutObject", times=1)
    with pytest.raises(ConnectionClosedError):
        client.put_object(**where, Body=b"2")
    assert bucket.get("a") == b"2"
    bucket.put("a", b"x" * 1000)
    s3.fail(s3server.cut_answer(500), "GetObject", times=1)
    body = client.get_object(**where)["Body"]
    with pytest.raises(Exception, match="500 bytes read|Incomplete|Connection broken"):
        body.read()
