"""What several sources become: a stack, one named array each, or one file each."""

from __future__ import annotations

import os
import random
import weakref
from collections.abc import Callable
from pathlib import Path

import bundles
import numpy as np
import pytest
import ra_bytes
from PIL import Image

import raconvert
from raconvert import Metadata, convert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.arrays.transpose import Transposed
from raconvert.cli import main
from raconvert.conversion import each
from raconvert.conversion.combine import open_sources
from raconvert.conversion.read import open_bundle
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TargetExists,
    UnknownFormat,
    UsageError,
    WouldLose,
    WriteFailed,
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(name: str, values: np.ndarray) -> None:
    """Write values as the suffix says."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        Image.fromarray(values).save(path)
    elif path.suffix == ".npz":
        np.savez(path, x=values)
    elif path.suffix == ".ra":
        raconvert.write(path, values)
    else:
        np.save(path, values)


def series(suffix: str, count: int = 3, shape: tuple[int, ...] = (4, 5)) -> np.ndarray:
    """Write files 0 to count - 1 and return their stack."""
    values = np.random.default_rng(0).integers(0, 255, (count, *shape), "u1")
    for number in range(count):
        save(f"{number}{suffix}", values[number])
    return values


def tree(folder: str = ".") -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()
    )


# Stacks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["out.ra", "out.npy"])
@pytest.mark.parametrize("suffix", [".ra", ".npy", ".npz", ".png"])
def test_a_stack_has_a_new_first_axis(suffix: str, target: str) -> None:
    values = series(suffix)
    convert(f"?{suffix}", target)
    assert raconvert.read(target).tolist() == values.tolist()
    report = convert([f"{n}{suffix}" for n in range(3)], target, overwrite=True)
    assert report.source_count == 3
    assert raconvert.read(target).tolist() == values.tolist()


def test_a_stack_becomes_a_container_on_request() -> None:
    values = series(".npy")
    convert("?.npy", "out.npz", stack=True)
    got = raconvert.read("out.npz")
    assert [array.tolist() for array in got.values()] == [values.tolist()]


def test_a_stack_under_a_name() -> None:
    values = series(".npy")
    convert("?.npy", "out.npz#images")
    assert {name: array.tolist() for name, array in raconvert.read("out.npz").items()} == {
        "images": values.tolist()
    }


def test_a_stack_of_mixed_index_orders_keeps_every_index() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    save("0.npy", np.asfortranarray(values[0]))
    save("1.npy", values[1])
    convert("?.npy", "out.ra")
    assert raconvert.read("out.ra").tolist() == values.tolist()
    convert(["1.npy", "0.npy"], "back.ra", sort="given")
    assert raconvert.read("back.ra").tolist() == values[::-1].tolist()


@pytest.mark.parametrize("how", [True, ("concat", 1)], ids=["stack", "concat"])
def test_items_are_moved_in_the_memory_that_is_allowed(
    how: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    class Moved(Transposed):
        def __init__(self, array: Array, axes: tuple[int, ...], max_memory: int) -> None:
            limits.append(max_memory)
            super().__init__(array, axes, max_memory)

    for number in range(2):
        save(f"{number}.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    monkeypatch.setattr("raconvert.arrays.transpose.Transposed", Moved)
    convert("?.npy", "out.npy", stack=how, max_memory=1 << 20)
    assert limits
    assert set(limits) == {1 << 20}


def test_a_stack_of_mixed_byte_orders() -> None:
    save("0.npy", np.arange(3, dtype=">i4"))
    save("1.npy", np.arange(3, dtype="<i4"))
    convert("?.npy", "out.ra")
    assert raconvert.read("out.ra").tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,), (2, 3, 4, 5)], ids=str)
def test_a_stack_of_any_shape(shape: tuple[int, ...]) -> None:
    for number in range(3):
        save(f"{number}.npy", np.full(shape, number))
    convert("?.npy", "out.ra")
    assert raconvert.read("out.ra").tolist() == [np.full(shape, n).tolist() for n in range(3)]


def test_an_array_of_each_container() -> None:
    for number in range(2):
        np.savez(f"{number}.npz", a=np.array([number]), b=np.array([10 + number]))
    convert("?.npz", "out.ra", arrays=["b"])
    assert raconvert.read("out.ra").tolist() == [[10], [11]]
    with pytest.raises(UsageError, match=r"(?s)0\.npz.*a, b"):
        convert("?.npz", "again.ra")


def test_arrays_of_containers_by_name() -> None:
    for number in range(2):
        np.savez(f"{number}.npz", a=np.array([number]), b=np.array([10 + number]))
    convert(["0.npz#a", "1.npz#b"], "out.ra")
    assert raconvert.read("out.ra").tolist() == [[0], [11]]


def test_what_the_files_say_is_said_for_a_stack_too() -> None:
    save("0.npy", np.arange(3))
    with Path("0.npy").open("ab") as file:
        file.write(b"more")
    save("1.npy", np.arange(3))
    report = convert("?.npy", "out.ra")
    assert [note for note in report.notes if "4 bytes after the data" in note and "0.npy" in note]


# An odd file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "said"),
    [(np.zeros((4, 6), "u1"), "(4, 6)"), (np.zeros((4, 5, 1), "u1"), "(4, 5, 1)"),
     (np.zeros((4, 5), "u2"), "uint16"), (np.zeros((4, 5), "i1"), "int8"),
     (np.zeros(20, "u1"), "(20,)"), (np.zeros((4, 5), "S1"), "S1"), (np.zeros((4, 5), "?"), "bool")],
    ids=["shape", "rank", "wider", "signed", "flat", "text", "bool"],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".npy", ".ra"])
def test_the_first_odd_file_is_named_with_the_first_file(
    odd: np.ndarray, said: str, suffix: str
) -> None:
    series(suffix, 5)
    for name in (f"2{suffix}", f"4{suffix}"):
        for path in Path().glob(f"{name}*"):
            path.unlink()
        save(name, odd)
    with pytest.raises(UsageError, match="differ") as caught:
        convert(f"?{suffix}", "out.ra")
    text = str(caught.value)
    assert f"'2{suffix}'" in text
    assert f"'0{suffix}'" in text
    assert f"4{suffix}" not in text
    assert said in text
    assert "uint8 (4, 5)" in text
    assert 'stack="each"' in text
    assert not Path("out.ra").exists()


def test_a_file_of_another_format_is_named() -> None:
    series(".npy")
    save("1.npy", np.zeros((4, 5), "u1"))
    raconvert.write("x.ra", np.zeros((4, 5), "u1"))
    os.replace("x.ra", "2.npy")
    with pytest.raises(UsageError, match=r"'2\.npy'.*different formats"):
        convert("?.npy", "out.ra")


@pytest.mark.parametrize(
    ("folder", "named"),
    [("mixed_shape", ["c.png", "(28, 27)", "(28, 28)"]), ("mixed_mode_grey_rgb", ["2.png"]),
     ("one_truncated_of_12", ["3.png"])],
)  # fmt: skip
def test_odd_images_of_the_corpus(
    corpus: Callable[..., Path], folder: str, named: list[str]
) -> None:
    with pytest.raises(RaconvertError) as caught:
        convert(str(corpus("png", folder)), "out.ra")
    assert all(word in str(caught.value) for word in named)
    assert tree() == []


def test_types_that_look_alike_to_numpy_are_told_apart() -> None:
    """128-bit integers of either sign, and quads, are all sixteen bytes."""
    for number, eltype in enumerate((1, 2)):
        Path(f"{number}.ra").write_bytes(ra_bytes.ra_file(eltype, 16, (2,), bytes(32)))
    with pytest.raises(UsageError, match="differ"):
        convert("?.ra", "out.ra")


def test_user_types_that_are_equally_wide_are_told_apart() -> None:
    save("0.npy", np.zeros(2, "M8[s]"))
    save("1.npy", np.zeros(2, "M8[ms]"))
    with pytest.raises(UsageError, match="differ"):
        convert("?.npy", "out.ra")


def test_a_file_that_vanishes_is_an_error_of_ours() -> None:
    series(".npy")
    os.unlink("1.npy")
    with pytest.raises(RaconvertError, match=r"1\.npy"):
        convert(["0.npy", "1.npy", "2.npy"], "out.ra")


def test_a_damaged_file_is_named() -> None:
    series(".npy")
    os.truncate("1.npy", 140)
    with pytest.raises(Corrupt, match=r"1\.npy"):
        convert("?.npy", "out.ra")


# Concatenation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("suffix", [".npy", ".ra"])
def test_concat_joins_along_an_axis(axis: int, suffix: str) -> None:
    values = series(suffix, 3, (2, 3, 4))
    convert(f"?{suffix}", "out.ra", stack=("concat", axis))
    assert raconvert.read("out.ra").tolist() == np.concatenate(list(values), axis).tolist()


@pytest.mark.parametrize("axis", [3, -4])
def test_concat_along_an_axis_that_is_not_there(axis: int) -> None:
    series(".npy", 3, (2, 3, 4))
    with pytest.raises(UsageError, match=r'stack=\("concat", -?\d+\) is not an axis'):
        convert("?.npy", "out.ra", stack=("concat", axis))


def test_concat_of_images() -> None:
    values = series(".png")
    convert("?.png", "out.png", stack=("concat", 0))
    assert raconvert.read("out.png").tolist() == values.reshape(12, 5).tolist()


# Lazy stacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".png"])
def test_regions_of_a_lazy_stack(suffix: str) -> None:
    values = series(suffix, 5)
    with open_sources([f"?{suffix}"]) as bundle:
        array = bundle.arrays[0]
        assert array.shape == values.shape
        for key in (0, -1, slice(1, 3), slice(None, None, 2), (2, 3), (slice(1, 4), 2, slice(1, 3)),
                    (slice(4, 1, -1), 0), (Ellipsis, 2), (slice(2, 2),)):  # fmt: skip
            assert np.asarray(array[key]).tolist() == values[key].tolist(), key


def random_keys(shape: tuple[int, ...], count: int) -> list[tuple[object, ...]]:
    """Keys of integers, slices and at most one Ellipsis, anywhere, the same ones each time."""
    dice = random.Random(3)
    keys: list[tuple[object, ...]] = []
    while len(keys) < count:
        key: list[object] = [
            dice.randrange(-n, n)
            if dice.random() < 0.4
            else slice(*(dice.choice([None, *range(-n, n + 1)]) for _ in "ab"),
                       dice.choice([None, 1, 2, -1]))
            for n in shape
        ]  # fmt: skip
        if dice.random() < 0.7:
            start = dice.randrange(len(key) + 1)
            key[start : dice.randrange(start, len(key) + 1)] = [Ellipsis]
        else:
            del key[dice.randrange(len(key) + 1) :]
        keys.append(tuple(key))
    return keys


@pytest.mark.parametrize("kind", [".npy", ".png", "transposed"])
def test_sources_take_every_key_as_numpy_does(kind: str) -> None:
    """Themselves: an array that holds one gives it whole keys only."""
    suffix = ".npy" if kind == "transposed" else kind
    values = series(suffix, 5)
    with open_sources([f"?{suffix}"]) as bundle:
        source = bundle.arrays[0].data
        if kind == "transposed":
            source, values = (
                Transposed(bundle.arrays[0], (2, 0, 1), 1 << 20),
                values.transpose(2, 0, 1),
            )
        for key in random_keys(values.shape, 300):
            assert np.asarray(source[key]).tolist() == values[key].tolist(), key
        for wrong in ((..., ...), (0,) * 4, (0, ..., 0, 0, 0)):
            with pytest.raises(IndexError):
                source[wrong]


@pytest.mark.parametrize("suffix", [".npy", ".png"])
def test_blocks_of_a_stack(suffix: str) -> None:
    values = series(suffix, 7)
    for max_bytes in (1, 7, 20, 50, 1000):
        with open_sources([f"?{suffix}"]) as bundle:
            pieces = [piece.reshape(-1).copy() for piece in blocks(bundle.arrays[0], max_bytes)]
        assert np.concatenate(pieces).tolist() == values.reshape(-1).tolist()


def test_a_stack_can_be_read_twice() -> None:
    for number in range(3):
        meta = Metadata(attributes={"n": number})
        raconvert.write(f"{number}.ra", np.array([number]), meta=meta)
    with open_sources(["?.ra"]) as bundle:
        for _ in range(2):
            pieces = [piece.reshape(-1).copy() for piece in blocks(bundle.arrays[0])]
            assert np.concatenate(pieces).tolist() == [0, 1, 2]


# Labels ------------------------------------------------------------------------------------------


def test_labels_of_the_corpus(corpus: Callable[..., Path]) -> None:
    folder = corpus("png", "stack_mnist_labels")
    report = convert(str(folder), "images.ra", recursive=True, labels="labels.ra")
    images, labels = raconvert.read("images.ra"), raconvert.read("labels.ra")
    assert images.shape == (120, 28, 28)
    assert labels.dtype == np.uint8
    assert np.bincount(labels).tolist() == [12] * 10
    assert sorted(report.written) == ["images.ra", "labels.ra"]
    paths = sorted(folder.rglob("*.png"), key=lambda path: (int(path.parent.name), int(path.stem)))
    for number in (0, 1, 11, 12, 119):
        with Image.open(paths[number]) as image:
            assert np.asarray(image).tolist() == images[number].tolist()
        assert labels[number] == int(paths[number].parent.name)


@pytest.mark.parametrize("target", ["labels.ra", "labels.npy"])
def test_labels_of_names(target: str) -> None:
    for name in ("dog/1.npy", "cat/1.npy", "cat/2.npy"):
        save(f"in/{name}", np.zeros(2))
    convert("in/*/*.npy", "out.ra", labels=target)
    assert raconvert.read(target).tolist() == [0, 0, 1]
    if target.endswith(".ra"):
        with raconvert.open(target) as array:
            assert array.meta.attributes == {"labels": ["cat", "dog"]}


def test_labels_above_255_are_wider() -> None:
    for name in ("0/1.npy", "256/1.npy"):
        save(f"in/{name}", np.zeros(2))
    convert("in", "out.ra", recursive=True, labels="labels.npy")
    assert raconvert.read("labels.npy").tolist() == [0, 256]
    assert raconvert.read("labels.npy").dtype.kind == "i"


def test_labels_follow_the_order_of_the_files() -> None:
    names = [f"{n % 3}/{n}.npy" for n in range(9)]
    random.Random(0).shuffle(names)
    for name in names:
        save(name, np.array([int(Path(name).stem)]))
    Path("list.txt").write_text("\n".join(names))
    convert([], "out.ra", files_from="list.txt", labels="labels.ra")
    stacked = raconvert.read("out.ra").reshape(-1)
    assert (stacked % 3).tolist() == raconvert.read("labels.ra").tolist()


def test_existing_labels_are_not_overwritten() -> None:
    save("in/0/1.npy", np.zeros(2))
    Path("labels.npy").write_bytes(b"kept")
    with pytest.raises(TargetExists, match=r"labels\.npy"):
        convert("in/*/*.npy", "out.ra", labels="labels.npy")
    assert Path("labels.npy").read_bytes() == b"kept"
    assert not Path("out.ra").exists()


def test_labels_go_when_the_data_fails() -> None:
    save("in/0/1.npy", np.zeros(2))
    save("in/1/1.npy", np.zeros(3))
    with pytest.raises(UsageError, match="differ"):
        convert("in/*/*.npy", "out.ra", labels="labels.npy")
    assert tree() == ["in/0/1.npy", "in/1/1.npy"]


# Containers --------------------------------------------------------------------------------------


def test_a_container_gets_one_named_array_each() -> None:
    values = series(".npy")
    convert("?.npy", "out.npz")
    got = raconvert.read("out.npz")
    assert list(got) == ["0", "1", "2"]
    assert np.stack(list(got.values())).tolist() == values.tolist()


def test_a_container_takes_arrays_of_any_shape_and_format() -> None:
    save("a.npy", np.zeros((2, 3)))
    save("b.png", np.zeros((4, 5), "u1"))
    save("c.ra", np.zeros(7, "c8"))
    convert(["a.npy", "b.png", "c.ra"], "out.npz")
    assert {name: array.shape for name, array in raconvert.read("out.npz").items()} == {
        "a": (2, 3),
        "b": (4, 5),
        "c": (7,),
    }


def test_arrays_of_containers_are_named_after_both() -> None:
    np.savez("a.npz", x=np.zeros(1), y=np.zeros(2))
    save("b.npy", np.zeros(3))
    convert(["a.npz", "b.npy"], "out.npz")
    assert list(raconvert.read("out.npz")) == ["a/x", "a/y", "b"]


def test_stems_that_collide_are_an_error() -> None:
    save("s/a.npy", np.zeros(1))
    save("t/a.npy", np.zeros(1))
    with pytest.raises(UsageError, match="'a'") as caught:
        convert(["s/a.npy", "t/a.npy"], "out.npz")
    assert "s/a.npy" in str(caught.value)
    assert "t/a.npy" in str(caught.value)
    assert not Path("out.npz").exists()


def test_several_arrays_for_one_are_an_error_that_lists_them() -> None:
    np.savez("x.npz", first=np.zeros(1), second=np.zeros(2))
    for target in ("out.ra", "out.npy", "out.png"):
        with pytest.raises(UsageError, match="2 arrays") as caught:
            convert("x.npz", target)
        assert "first, second" in str(caught.value)
        assert 'arrays=["NAME"]' in str(caught.value)
    assert tree() == ["x.npz"]


@pytest.mark.parametrize(
    ("arrays", "names"),
    [(["b"], ["b"]), (["a*"], ["a1", "a2"]), (["b", "a1"], ["a1", "b"]), (["*"], ["a1", "a2", "b"]),
     (["a1", "a*"], ["a1", "a2"])],
    ids=str,
)  # fmt: skip
def test_arrays_are_chosen_by_name_and_pattern(arrays: list[str], names: list[str]) -> None:
    np.savez("x.npz", a1=np.zeros(1), a2=np.zeros(1), b=np.zeros(1))
    convert("x.npz", "out.npz", arrays=arrays)
    assert list(raconvert.read("out.npz")) == names


def test_a_name_that_is_a_pattern_is_literal_first() -> None:
    np.savez("x.npz", **{"a*": np.array([1]), "ab": np.array([2])})
    convert("x.npz", "out.ra", arrays=["a*"])
    assert raconvert.read("out.ra").tolist() == [1]


def test_an_array_that_is_not_there_is_an_error_that_lists_them() -> None:
    np.savez("x.npz", first=np.zeros(1), second=np.zeros(2))
    with pytest.raises(UsageError, match="did you mean 'first'") as caught:
        convert("x.npz", "out.ra", arrays=["frist"])
    assert "first, second" in str(caught.value)


# One file each -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["out-dir", "slash", "existing-folder", "each", "template"])
def test_one_file_each(form: str) -> None:
    values = series(".npy")
    if form == "out-dir":
        report = convert("?.npy", out_dir="out", to="ra")
    elif form == "slash":
        report = convert("?.npy", "out/", to="ra")
    elif form == "existing-folder":
        os.mkdir("out")
        report = convert("?.npy", "out", to="ra")
    elif form == "each":
        os.mkdir("out")
        report = convert("?.npy", "out", to="ra", stack="each")
    else:
        report = convert("?.npy", "out/{stem}.ra")
    assert tree("out") == ["0.ra", "1.ra", "2.ra"]
    assert sorted(report.written) == ["out/0.ra", "out/1.ra", "out/2.ra"]
    for number in range(3):
        assert raconvert.read(f"out/{number}.ra").tolist() == values[number].tolist()


def test_a_template_with_the_whole_name() -> None:
    series(".npy")
    convert("?.npy", "{name}.ra")
    assert {"0.npy.ra", "1.npy.ra", "2.npy.ra"} <= set(tree())


def test_the_source_tree_is_mirrored() -> None:
    for name in ("a.npy", "s/b.npy", "s/t/c.npy", "u/c.npy"):
        save(f"in/{name}", np.zeros(2))
    convert("in", out_dir="out", to="ra", recursive=True)
    assert tree("out") == ["a.ra", "s/b.ra", "s/t/c.ra", "u/c.ra"]
    convert("in/", out_dir="again", to="npz", recursive=True)
    assert tree("again") == ["a.npz", "s/b.npz", "s/t/c.npz", "u/c.npz"]


def test_two_trees_side_by_side() -> None:
    save("in/a.npy", np.zeros(2))
    save("input/b.npy", np.zeros(2))
    convert(["in", "input"], out_dir="out", to="ra")
    assert tree("out") == ["a.ra", "b.ra"]


def test_of_sources_that_would_become_one_file_the_first_one_does() -> None:
    save("s/a.npy", np.zeros(1))
    save("t/a.npy", np.ones(1))
    for options in ({"out_dir": "out", "to": "ra"}, {"dst": "more/{stem}.ra"}):
        report = convert(["s/a.npy", "t/a.npy"], **options)
        ((source, error),) = report.failed
        assert (source, type(error)) == ("t/a.npy", UsageError)
        assert "a.ra" in str(error)
        assert "s/a.npy" in str(error)
        assert [raconvert.read(path).tolist() for path in report.written] == [[0.0]]
    with pytest.raises(UsageError, match="last/a.ra"):
        convert(["s/a.npy", "t/a.npy"], out_dir="last", to="ra", fail_fast=True)
    assert not Path("last").exists()


def test_the_same_stem_in_two_formats_fails_one_of_them() -> None:
    save("in/a.npy", np.zeros((2, 3), "u1"))
    save("in/a.png", np.zeros((2, 3), "u1"))
    report = convert("in", out_dir="out", to="ra")
    assert report.written == ["out/a.ra"]
    ((source, error),) = report.failed
    assert (source, "out/a.ra" in str(error)) == ("in/a.png", True)


@pytest.mark.parametrize("dst", ["out/", "out"], ids=["slash", "existing"])
def test_a_folder_needs_a_format(dst: str) -> None:
    series(".npy")
    if dst == "out":
        os.mkdir("out")
    with pytest.raises(UsageError, match="name it with to: ra or npy") as caught:
        convert("?.npy", dst)
    assert caught.value.exit_code == 2


def test_each_needs_a_folder_or_a_template() -> None:
    series(".npy")
    with pytest.raises(UsageError, match='out_dir="DIR"'):
        convert("?.npy", "out.ra", stack="each")


def test_one_bad_file_does_not_stop_the_others() -> None:
    series(".npy")
    Path("1.npy").write_bytes(b"no array")
    report = convert("?.npy", out_dir="out", to="ra")
    assert tree("out") == ["0.ra", "2.ra"]
    assert [path for path, _ in report.failed] == ["1.npy"]
    assert isinstance(report.failed[0][1], RaconvertError)


def test_fail_fast_stops_at_the_first() -> None:
    series(".npy")
    Path("1.npy").write_bytes(b"no array")
    with pytest.raises(RaconvertError, match=r"1\.npy"):
        convert("?.npy", out_dir="out", to="ra", fail_fast=True)
    assert tree("out") == ["0.ra"]


def test_existing_files_are_skipped_one_by_one() -> None:
    series(".npy")
    os.mkdir("out")
    Path("out/1.ra").write_bytes(b"kept")
    report = convert("?.npy", out_dir="out", to="ra", skip_existing=True)
    assert report.skipped == [("out/1.ra", "exists already")]
    assert Path("out/1.ra").read_bytes() == b"kept"
    assert tree("out") == ["0.ra", "1.ra", "2.ra"]
    again = convert("?.npy", out_dir="out", to="ra")
    assert [type(error) for _, error in again.failed] == [TargetExists] * 3


def test_no_destination_is_a_usage_error() -> None:
    series(".npy")
    with pytest.raises(UsageError, match='out_dir="DIR"'):
        convert("?.npy")


def test_an_array_of_a_container_into_a_folder() -> None:
    np.savez("x.npz", a=np.array([1]), b=np.array([2]))
    report = convert("x.npz#b", out_dir="out", to="ra")
    assert report.failed == []
    assert [raconvert.read(path).tolist() for path in report.written] == [[2]]


@pytest.mark.parametrize("target", ["out.xyz", "out", "out.grib", "out.npy.gz"])
def test_a_destination_of_no_known_format(target: str) -> None:
    series(".npy")
    with pytest.raises(UnknownFormat) as caught:
        convert("?.npy", target)
    assert caught.value.exit_code == 3
    assert not Path(target).exists()


# What several files say --------------------------------------------------------------------------


def _said(name: str) -> None:
    """Write a file that says `a` in three places, and has further names."""
    array = Array(
        element("uint", 1), (3,), name="g/h/x", data=np.arange(3, dtype="u1"), index_order="C"
    )
    array.meta = array.meta.replace(attributes={**array.meta.attributes, "own": 1})
    said = {"g/h": {"a": 2, "same": 1, "own": 1}, "g": {"a": 1, "same": 1}, "e": {}}
    bundle = Bundle([array], attributes={"a": 0, "t": True, "own": True}, groups=said)
    bundle.aliases = {"y": "g/h/x"}
    bundles.save(Path(name), bundle)


KEPT = {
    "own": 1, "a": 2, "same": 1, "g/a": 1, "/a": 0, "t": True, "/own": True,
}  # fmt: skip


def test_attributes_of_one_name_are_all_kept() -> None:
    for name in "pq":
        _said(f"{name}.zip")
    report = convert("[pq].zip", "out.zip")
    with open_bundle("out.zip") as back:
        assert back.names == ["p", "q"]
        for name in "pq":
            found = back[name].meta.attributes
            assert found == KEPT
            assert found["/own"] is True
    reasons = [fit.reason for fit in report.equivalent]
    assert any("are kept as: 'g/a' of 'p.zip', '/a' of 'p.zip'" in reason for reason in reasons)


def test_attributes_of_one_name_are_all_kept_in_a_stack() -> None:
    for name in "pq":
        _said(f"{name}.zip")
    report = convert("[pq].zip", "out.ra", stack=True)
    with open_bundle("out.ra") as back:
        assert back.arrays[0].meta.attributes == KEPT
    assert any("'p.zip': attributes of one name" in note for note in report.notes)


def test_further_names_that_merging_loses_are_told() -> None:
    for name in "pq":
        _said(f"{name}.zip")
    report = convert("[pq].zip", "out.zip")
    told = "; ".join(fit.reason for fit in report.equivalent)
    for name in "pq":
        assert f"group 'e' of '{name}.zip', name 'y' of '{name}.zip'" in told
    with pytest.raises(WouldLose, match="name 'y'"):
        convert("[pq].zip", "strict.zip", strict=True)
    assert not os.path.exists("strict.zip")


def test_further_names_of_chosen_arrays_are_kept_or_told() -> None:
    for name in "pq":
        array = Array(element("uint", 1), (3,), name=name, data=np.arange(3, dtype="u1"))
        bundle = Bundle([array])
        bundle.aliases = {"y": name, f"{name}2": name}
        bundles.save(Path(f"{name}.zip"), bundle)
    report = convert(["p.zip#p", "q.zip#q"], "out.zip")
    with open_bundle("out.zip") as back:
        assert back.aliases == {"y": "p", "p2": "p", "q2": "q"}
    told = "; ".join(fit.reason for fit in report.equivalent)
    assert "name 'y' of 'q.zip#q'" in told
    assert "p2" not in told


# What stays in memory ----------------------------------------------------------------------------


class _Buffer:
    """What a frame may hold, with weak references."""


def test_errors_that_are_kept_hold_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    series(".npy")
    held: list[weakref.ref[_Buffer]] = []

    def decode() -> None:
        buffer = _Buffer()
        held.append(weakref.ref(buffer))
        raise ValueError("odd")

    def open_spec(path: str, _: object) -> None:
        buffer = _Buffer()
        held.append(weakref.ref(buffer))
        try:
            try:
                decode()
            except ValueError:
                raise KeyError(path)  # noqa: B904 - a context, no cause
        except KeyError as error:
            raise Corrupt("is damaged", path=path) from error

    monkeypatch.setattr(each, "open_spec", open_spec)
    report = convert("?.npy", out_dir="out", to="ra")
    assert [str(error) for _, error in report.failed] == [
        f"'{number}.npy': is damaged" for number in range(3)
    ]
    assert len(held) == 6
    assert [buffer() for buffer in held] == [None] * 6


# Templates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template", ["{stem:{x}}.ra", "{stem:{}}.ra", "p{:{i.x}}.png", "{i:{i}}.png"]
)
def test_a_field_within_a_field_is_a_usage_error(
    template: str, capsys: pytest.CaptureFixture[str]
) -> None:
    series(".npy")
    assert main(["0.npy", "1.npy", "-o", template]) == 2
    said = capsys.readouterr().err
    assert "a field within a field" in said
    assert "bug" not in said
    assert tree() == ["0.npy", "1.npy", "2.npy"]


# Left-over sidecars ------------------------------------------------------------------------------


def _refuse(monkeypatch: pytest.MonkeyPatch, function: str, name: str) -> None:
    """Let the system refuse to move or remove a file of this name."""
    real = getattr(os, function)

    def refuse(path: str, *more: object) -> None:
        if os.path.basename(path) == name:
            raise PermissionError(1, "Operation not permitted", path)
        real(path, *more)

    monkeypatch.setattr(os, function, refuse)


def _with_sidecars() -> None:
    np.savez("x.npz", a=np.asfortranarray(np.ones((2, 3))), b=np.asfortranarray(np.ones((2, 3))))
    convert("x.npz", out_dir="out", to="ra", axes="fortran")
    assert tree("out") == ["a.ra", "a.ra.yaml", "b.ra", "b.ra.yaml"]
    np.savez("x.npz", a=np.zeros((2, 3)), b=np.zeros((2, 3)))


def test_left_over_sidecars_go_with_what_they_describe() -> None:
    _with_sidecars()
    convert("x.npz", out_dir="out", to="ra", overwrite=True)
    assert tree("out") == ["a.ra", "b.ra"]
    assert raconvert.read("out/a.ra").tolist() == np.zeros((2, 3)).tolist()


def test_a_left_over_sidecar_that_stays_keeps_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _with_sidecars()
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    _refuse(monkeypatch, "replace", "b.ra.yaml")
    with pytest.raises(WriteFailed, match="Operation not permitted"):
        convert("x.npz", out_dir="out", to="ra", overwrite=True)
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def test_a_left_over_sidecar_of_one_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("f.npy", np.asfortranarray(np.ones((2, 3))))
    np.save("c.npy", np.zeros((2, 3)))
    convert("f.npy", "x.ra", axes="fortran")
    _refuse(monkeypatch, "unlink", "x.ra.yaml")
    with pytest.raises(WriteFailed, match="new data is in its place") as caught:
        convert("c.npy", "x.ra", overwrite=True)
    assert caught.value.path == "x.ra.yaml"
    os.rename("x.ra.yaml", "elsewhere")
    assert raconvert.read("x.ra").tolist() == np.zeros((2, 3)).tolist()
