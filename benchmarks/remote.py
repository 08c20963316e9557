"""A raw array from NPY to RA inside one bucket: how many bytes pass through the client.

    python benchmarks/remote.py [--mib 1024] [--most-mb 12]

The store is an S3 server on loopback (moto) behind a proxy that counts; what is in it at the end is
compared with the source, element bytes by element bytes. Times say little: that server copies in
memory. Ends with exit code 1 if more than `--most-mb` MB passed, both ways together.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
from hashlib import sha256
from pathlib import Path

from _measure import RACONVERT, machine, record_bytes, run, seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.remote import s3server

PIECE = 1 << 20


def main() -> None:
    """Store an array, have it converted inside the bucket, and count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the array in MiB")
    parser.add_argument("--most-mb", type=float, default=12, help="what may pass, in MB")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    machine("numpy", "s3fs", "moto")
    with s3server.running() as server:
        os.environ.update(server.env)
        measured = [measure(server, options.mib << 20) for _ in range(options.rounds)]
    record_bytes(
        f"{options.mib} MiB of NPY to RA in one bucket: bytes through the client, both ways",
        "the array",
        {"the array": options.mib << 20, "raconvert": max(measured)},
    )
    sys.exit(max(measured) > options.most_mb * 1e6)


def measure(server: s3server.S3Server, nbytes: int) -> int:
    """Convert one array; return the bytes that passed."""
    import _measure

    _measure.ENVIRONMENT.update(server.env)
    bucket = server.bucket()
    digest = store(server, bucket, nbytes)
    server.reset()
    taken = run(*RACONVERT, bucket.url("x.npy"), "-o", bucket.url("x.ra"))
    up, down = server.up, server.down
    print(
        f"{nbytes / 1e6:,.1f} MB in {seconds(taken.wall).strip()}: {', '.join(server.operations)}"
    )
    print(f"through the client: {up / 1e6:.2f} MB up, {down / 1e6:.2f} MB down")
    assert digest_of(server, bucket, "x.ra", nbytes) == digest, "the elements are others"
    bucket.delete("x.npy")
    bucket.delete("x.ra")
    return up + down


def store(server: s3server.S3Server, bucket: s3server.Bucket, nbytes: int) -> str:
    """Put an NPY file of so many bytes of elements into the bucket; return their SHA-256."""
    import numpy as np

    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({nbytes},), }}"
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + f"{head:<117}\n".encode()
    state = sha256()
    rng = np.random.default_rng(1)
    connection = http.client.HTTPConnection(*server.upstream)
    connection.putrequest("PUT", f"/{bucket.name}/x.npy")
    connection.putheader("Content-Length", str(len(header) + nbytes))
    for name, value in s3server.SIGNED.items():
        connection.putheader(name, value)
    connection.endheaders(header)
    for place in range(0, nbytes, PIECE):
        piece = rng.bytes(min(PIECE, nbytes - place))
        state.update(piece)
        connection.send(piece)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    return state.hexdigest()


def digest_of(server: s3server.S3Server, bucket: s3server.Bucket, key: str, nbytes: int) -> str:
    """The SHA-256 of the last bytes of an object."""
    connection = http.client.HTTPConnection(*server.upstream)
    connection.request("GET", f"/{bucket.name}/{key}", headers=s3server.SIGNED)
    answer = connection.getresponse()
    answer.read(int(answer.headers["Content-Length"]) - nbytes)
    state = sha256()
    while piece := answer.read(PIECE):
        state.update(piece)
    return state.hexdigest()


if __name__ == "__main__":
    main()
