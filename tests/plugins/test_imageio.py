"""RA files in imageio: exactly what the docstring of `raconvert.imageio` says has to be typed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

import raconvert
from raconvert.errors import Corrupt, Unsupported, UsageError

VALUES = np.arange(24, dtype="<f4").reshape(2, 3, 4)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raconvert.write("x.ra", VALUES)


@pytest.mark.parametrize(
    "imports",
    [
        "import imageio.v3 as iio\nimport raconvert.imageio",
        "import raconvert.imageio\nimport imageio.v3 as iio",
        "import raconvert.imageio, imageio.v3 as iio, importlib\nimportlib.reload(raconvert.imageio)",
    ],
    ids=["after", "before", "twice"],
)
def test_one_import_is_all(imports: str) -> None:
    code = f"""
{imports}
x = iio.imread("x.ra")
iio.imwrite("y.ra", x)
iio.imwrite("y.ra", 2 * x)
print(x.shape, x.dtype, x.sum(), iio.imread("y.ra").sum(), iio.improps("x.ra").shape)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("(2, 3, 4) float32 276.0 552.0 (2, 3, 4)\n", "")


def test_raconvert_itself_does_not_import_imageio() -> None:
    code = "import sys, raconvert; raconvert.read('x.ra'); print('imageio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


@pytest.fixture
def iio():
    import imageio.v3

    import raconvert.imageio  # noqa: F401 - registers

    return imageio.v3


def test_without_registration() -> None:
    import imageio.v3

    from raconvert.imageio import RaPlugin

    assert np.array_equal(imageio.v3.imread("x.ra", plugin=RaPlugin), VALUES)


def test_the_name_of_the_plugin(iio) -> None:
    os.rename("x.ra", "x.dat")

    assert np.array_equal(iio.imread("x.dat", plugin="raconvert"), VALUES)
    assert np.array_equal(iio.imread("x.dat", extension=".ra"), VALUES)


def test_a_file_is_one_array(iio) -> None:
    assert iio.imread("x.ra", index=0).shape == (2, 3, 4)
    assert iio.imread("x.ra", index=...).shape == (1, 2, 3, 4)
    assert [values.shape for values in iio.imiter("x.ra")] == [(2, 3, 4)]
    assert iio.improps("x.ra", index=...).is_batch
    assert iio.improps("x.ra").dtype == np.float32
    for index in (1, -1, "a"):
        with pytest.raises(ValueError, match="one array"):
            iio.imread("x.ra", index=index)


def test_the_array_is_ones_own(iio) -> None:
    values = iio.imread("x.ra")
    values[:] = 7

    assert np.array_equal(iio.imread("x.ra"), VALUES)


@pytest.mark.parametrize("code", ["?", "u1", "<i8", ">f8", "<c16", "S3", "<U2", "<M8[s]"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 3)])
def test_any_type_and_rank(iio, code: str, shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, code)
    iio.imwrite("y.ra", values)

    got = iio.imread("y.ra")

    assert (got.shape, got.dtype) == (shape, values.dtype.newbyteorder("<"))


def test_bytes_files_and_zip_members(iio) -> None:
    data = iio.imwrite("<bytes>", VALUES, extension=".ra")
    assert data == Path("x.ra").read_bytes()
    assert np.array_equal(iio.imread(data, extension=".ra"), VALUES)
    with open("x.ra", "rb") as file:
        assert np.array_equal(iio.imread(file, extension=".ra"), VALUES)
    with open("y.ra", "wb") as file:
        iio.imwrite(file, VALUES, extension=".ra")
    assert Path("y.ra").read_bytes() == data
    with zipfile.ZipFile("z.zip", "w") as archive:
        archive.write("x.ra")
    assert np.array_equal(iio.imread("z.zip/x.ra"), VALUES)


def test_sidecars(iio) -> None:
    iio.imwrite("y.ra", VALUES, description="a text", attributes={"n": 1})

    assert iio.immeta("y.ra") == {"description": "a text", "attributes": {"n": 1}}
    applied = iio.immeta("y.ra", exclude_applied=False)
    assert (applied["dims"], applied["element"]) == ([4, 3, 2], "float32")
    assert iio.immeta("x.ra") == {}


def test_metadata_goes_from_file_to_file(iio) -> None:
    axes = [{"name": "X", "units": "um", "spacing": 0.5}, {}, {"name": "Z"}]
    iio.imwrite("y.ra", VALUES, description="a text", axes=axes, units="K")
    iio.imwrite("z.ra", VALUES, **iio.immeta("y.ra"))

    assert iio.immeta("z.ra") == iio.immeta("y.ra")
    assert iio.immeta("z.ra")["axes"] == axes
    text = Path("z.ra.yaml").read_text(encoding="utf-8")
    assert [axis.get("name") for axis in yaml.safe_load(text)["axes"]] == ["Z", None, "X"]


def test_arguments_that_mean_nothing_to_ra(iio) -> None:
    with pytest.raises(UsageError, match="'compression'; expected description, units"):
        iio.imwrite("y.ra", VALUES, compression=9)
    for ragged in ([VALUES[0], VALUES[0, 0]], []):
        with pytest.raises(UsageError, match="arrays of one shape"):
            iio.imwrite("y.ra", ragged)
    assert not os.path.exists("y.ra")


def test_column_major_files_are_seen_as_by_raconvert_read(iio) -> None:
    np.save("f.npy", np.asfortranarray(VALUES))
    raconvert.convert("f.npy", "f.ra")

    assert np.array_equal(iio.imread("f.ra"), VALUES)
    assert iio.improps("f.ra").shape == VALUES.shape


def test_a_list_is_stacked_and_a_second_array_refused(iio) -> None:
    iio.imwrite("y.ra", [VALUES[0], VALUES[1]])
    assert np.array_equal(iio.imread("y.ra"), VALUES)

    with iio.imopen("y.ra", "w") as file:
        file.write(VALUES)
        with pytest.raises(ValueError, match="holds one array"):
            file.write(VALUES)


def test_errors_are_ours(iio) -> None:
    Path("cut.ra").write_bytes(Path("x.ra").read_bytes()[:-1])
    with pytest.raises(Corrupt, match=r"cut\.ra"):
        iio.imread("cut.ra")

    before = Path("x.ra").read_bytes()
    with pytest.raises(Unsupported, match="type object"):
        iio.imwrite("x.ra", np.array([None]))
    assert Path("x.ra").read_bytes() == before


@pytest.mark.parametrize("magic", [b"arawrrya", b"yarrawar", b".ra\xfd\0\0\0\0"])
def test_other_magics_are_left_to_other_plugins(iio, magic: bytes) -> None:
    Path("y.ra").write_bytes(magic + bytes(100))

    with pytest.raises(OSError, match="can not handle"):
        iio.imread("y.ra", plugin="raconvert")


def test_other_formats_are_untouched(iio) -> None:
    image = np.arange(12, dtype="u1").reshape(3, 4)
    iio.imwrite("y.png", image)

    assert np.array_equal(iio.imread("y.png"), image)
    with pytest.raises(OSError, match="can not handle"):
        iio.imwrite("y.png", image, plugin="raconvert")
