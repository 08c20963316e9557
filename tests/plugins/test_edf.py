"""EDF and BDF: edfio and pyedflib write and read, and headers that neither writes."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import edfio
import numpy as np
import pyedflib
import pytest
from attempts import refuses
from cases import every
from edf_files import NOTES, edf, lists, signal
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import NAME, Pairs

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError, WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "edf"
FILES = sorted(path.name for path in FIXTURES.glob("*.?df"))


def by_pyedflib(path: Path) -> dict[str, np.ndarray]:
    """The digital numbers of each signal, by label."""
    with pyedflib.EdfReader(str(path)) as file:
        return {
            file.getLabel(n): file.readSignal(n, digital=True) for n in range(file.signals_in_file)
        }


IN_PAIRS = (
    Pairs(name="edf", suffix=".edf", read=lambda path: by_pyedflib(path)[NAME], reads_only=True),
)


def by_edfio(path: Path) -> edfio.Edf:
    return (edfio.read_bdf if path.suffix == ".bdf" else edfio.read_edf)(path)


def made(folder: Path, content: bytes, name: str = "x.edf") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def notes(path: Path, **options: Any) -> str:
    with raconvert.open_bundle(path, **options) as bundle:
        return "\n".join(bundle.notes)


# What libraries write ------------------------------------------------------------------------------


@every("name", FILES)
def test_fixtures_are_what_both_libraries_read(name: str) -> None:
    path = FIXTURES / name
    theirs, digital = by_edfio(path), by_pyedflib(path)
    with raconvert.open_bundle(path) as bundle, raconvert.open_bundle(path, unscale=True) as values:
        names = [one for one in bundle.names if not one.startswith("annotations/")]
        assert [bundle[one].meta.attributes.get("label", one) for one in names] == [*digital]
        for one, their in zip(names, theirs.signals, strict=True):
            array = bundle[one]
            assert array.dtype == ("<i4" if path.suffix == ".bdf" else "<i2")
            assert np.array_equal(array[...], their.digital)
            assert np.array_equal(array[...], digital[their.label])
            assert array.meta.units == their.physical_dimension
            axis = array.meta.axes[0]
            assert (axis.name, axis.units) == ("time", "s")
            assert axis.spacing == 1 / their.sampling_frequency
            assert np.allclose(values[one][...], their.data, rtol=1e-12, atol=1e-9)
        assert bundle.attributes["start"] == "2002-03-02T22:33:44"
        found = [bundle[f"annotations/{part}"][...].tolist() for part in ("onset", "duration", "text")
                 if f"annotations/{part}" in bundle.names]  # fmt: skip
    first = theirs.starttime.microsecond / 1e6
    told = [(one.onset + first, one.duration, one.text.encode()) for one in theirs.annotations]
    again = [
        (on, None if np.isnan(long) else long, text) for on, long, text in zip(*found, strict=True)
    ]
    assert again == told


def test_the_place_of_the_first_sample() -> None:
    """The fraction of a second that only EDF+ says; onsets count from the same start."""
    with raconvert.open_bundle(FIXTURES / "edfio.edf") as bundle:
        axes = [bundle[name].meta.axes[0] for name in bundle.names[:3]]
        assert {axis.origin for axis in axes} == {0.25}
        assert [axis.spacing for axis in axes] == [0.125, 0.125, 0.5]
    with raconvert.open_bundle(FIXTURES / "plain.edf") as bundle:
        assert bundle["ramp"].meta.axes[0].origin is None


PERSONAL = (b"MCH-0234567", b"Harry", b"1951", b"EMG561", b"BK/JOP", b"Sony")


@every("suffix", [".npz", ".h5", ".zip", ".nrrd"])
def test_nothing_of_a_person_leaves_the_file(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"x{suffix}"
    report = raconvert.convert(
        FIXTURES / "edfio.edf", target, arrays=["Temp rectal"] if suffix == ".nrrd" else []
    )
    content = target.read_bytes()
    assert not [word for word in PERSONAL if word in content]
    said = "\n".join(report.notes)
    assert "patient (code, sex, birthdate, name), recording (admincode, technician" in said
    assert not [word for word in PERSONAL if word.decode() in said]


def test_facts_that_somebody_keeps() -> None:
    path = FIXTURES / "edfio.edf"
    with raconvert.open_bundle(path, in_opts={"keep_tags": "patient, equipment"}) as bundle:
        assert bundle.attributes["patient"] == "MCH-0234567 F 02-MAY-1951 Haagse_Harry"
        assert bundle.attributes["equipment"] == "Sony._MNC_R_Median_Nerve."
        assert "recording" not in bundle.attributes
        said = "\n".join(bundle.notes)
    assert "left out of the header: recording (admincode, technician);" in said
    assert "no name is there to keep" in notes(
        FIXTURES / "plain.edf", in_opts={"keep_tags": "name"}
    )
    with pytest.raises(UsageError, match="no fact that is called 'address'"):
        raconvert.info(path, in_opts={"keep_tags": "address"})
    assert "left out" not in notes(FIXTURES / "plus.edf")


def test_channels_of_one_rate_and_unit(tmp_path: Path) -> None:
    path = FIXTURES / "edfio.edf"
    with raconvert.open_bundle(path) as apart:
        numbers = [apart[name][...] for name in apart.names[:3]]
    options = {"layout": "channels"}
    with raconvert.open_bundle(path, in_opts=options, unscale=True) as bundle:
        assert bundle.names[:2] == ["channels 8 Hz uV", "channels 2 Hz degC"]
        array = bundle[bundle.names[0]]
        assert array.meta.axes[0].labels == ("EEG Fpz-Cz", "EEG Fp1/A2")
        assert array.meta.axes[1].spacing == 0.125
        theirs = [one.data for one in by_edfio(path).signals[:2]]
        assert np.allclose(array[...], theirs, rtol=1e-12, atol=1e-9)
    with pytest.raises(WouldLose, match="scales of their own"):
        raconvert.convert(path, tmp_path / "x.npz", in_opts=options)  # two scales in one array
    with raconvert.open_bundle(FIXTURES / "plus.edf", in_opts=options) as bundle:
        assert bundle.names[:2] == ["channels 10 Hz mV", "channels 5 Hz mV"]
    two = edf([signal(), signal(label="y")], bytes(range(24)))
    with raconvert.open_bundle(made(tmp_path, two), in_opts=options) as bundle:
        whole = np.frombuffer(bytes(range(24)), "<i2").reshape(2, 2, 3)
        values = np.moveaxis(whole, 0, 1).reshape(2, 6)
        array = bundle["channels"]
        assert array.meta.attributes["scale_factor"] == 0.1
        for key in (np.s_[...], np.s_[1], np.s_[::-1, 1:5:2], np.s_[:, [4, 0]], np.s_[0, 5]):
            assert np.array_equal(array[key], values[key]), key
        pieces = [piece.copy() for piece in array.data.stream(4)]
        assert np.array_equal(np.concatenate(pieces), values.ravel())
    assert len(numbers) == 3


# Any file ------------------------------------------------------------------------------------------

COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(
    counts=COUNTS, records=st.integers(1, 7), width=st.sampled_from([2, 3]),
    duration=st.sampled_from([1, 2, 0.5]), seed=st.integers(0, 999),
    annotated=st.lists(st.tuples(st.integers(0, 99), st.text("aé ß", min_size=1, max_size=9))),
)  # fmt: skip
def test_any_file_of_edfio(
    counts: list[int], records: int, width: int, duration: float, seed: int,
    annotated: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    chance = np.random.default_rng(seed)
    top = (1 << (8 * width - 1)) - 1
    kind, file = (edfio.EdfSignal, edfio.Edf) if width == 2 else (edfio.BdfSignal, edfio.Bdf)
    signals = []
    for n, count in enumerate(counts):
        values = chance.integers(-top - 1, top, count * records, "i4", endpoint=True)
        values = values.astype("i2") if width == 2 else values
        signals.append(kind.from_digital(
            values, count / duration, label=f"s{n}", physical_range=(-5.5, n + 1),
            digital_range=(-top - 1, top)))  # fmt: skip
    path = tmp_path_factory.mktemp("edf") / ("x.edf" if width == 2 else "x.bdf")
    told = [edfio.EdfAnnotation(at / 8, None, text) for at, text in annotated]
    file(signals, data_record_duration=duration, annotations=told).write(path)
    digital = by_pyedflib(path)
    with raconvert.open_bundle(path) as bundle:
        for n, (count, one) in enumerate(zip(counts, signals, strict=True)):
            array = bundle[f"s{n}"]
            assert np.array_equal(array[...], one.digital)
            assert np.array_equal(array[...], digital[f"s{n}"])
            assert np.array_equal(array[1:-1:2], one.digital[1:-1:2])
            assert array.meta.axes[0].spacing == float(Fraction(duration) / count)
        if told:
            texts = [text.decode() for text in bundle["annotations/text"][...].tolist()]
            onsets = bundle["annotations/onset"][...].tolist()
            theirs = by_edfio(path).annotations
            assert sorted(zip(onsets, texts, strict=True)) == sorted(
                (one.onset, one.text) for one in theirs
            )


@settings(max_examples=25, deadline=None)
@given(
    rates=st.lists(st.integers(1, 30), min_size=1, max_size=3), seconds=st.integers(1, 5),
    kind=st.sampled_from(["EDF", "EDFPLUS", "BDF", "BDFPLUS"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_file_of_pyedflib(
    rates: list[int], seconds: int, kind: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("edf") / "x.edf"
    top = 32767 if kind.startswith("EDF") else 8388607
    numbers = [np.random.default_rng(seed + n).integers(-top - 1, top + 1, rate * seconds, "i4")
               for n, rate in enumerate(rates)]  # fmt: skip
    with pyedflib.EdfWriter(
        str(path), len(rates), file_type=getattr(pyedflib, f"FILETYPE_{kind}")
    ) as file:
        file.setStartdatetime(datetime.datetime(2020, 2, 29, 1, 2, 3))
        for n, rate in enumerate(rates):
            file.setSignalHeader(n, {
                "label": f"s{n}", "dimension": "uV", "sample_frequency": rate, "physical_min": -2,
                "physical_max": 3.5, "digital_min": -top - 1, "digital_max": top,
                "transducer": "", "prefilter": "",
            })  # fmt: skip
        file.writeSamples(numbers, digital=True)
    with raconvert.open_bundle(path) as bundle:
        assert bundle.attributes["start"] == "2020-02-29T01:02:03"
        for n, values in enumerate(numbers):
            assert np.array_equal(bundle[f"s{n}"][...], values)


@every("width", [2, 3])
@every("wide", [10, 3000])
@every("records", [1, 7, 50])
def test_a_signal_beside_a_wide_one(width: int, wide: int, records: int, tmp_path: Path) -> None:
    """Stretches close together are read with what is between them, those far apart one by one."""
    top = (1 << (8 * width - 1)) - 1
    rng = np.random.default_rng(wide + records)
    samples = {"x": 3, "y": wide}
    values = {
        label: rng.integers(-top - 1, top, (records, n), "<i4", endpoint=True)
        for label, n in samples.items()
    }
    data = b"".join(
        values[label][n].astype("<i4").view("u1").reshape(-1, 4)[:, :width].tobytes()
        for n in range(records) for label in samples
    )  # fmt: skip
    content = edf(
        [signal(label=label, samples=n) for label, n in samples.items()], data, records=records,
        version="0" if width == 2 else b"\xffBIOSEMI",
    )  # fmt: skip
    with raconvert.open_bundle(made(tmp_path, content)) as bundle:
        for label, whole in values.items():
            flat, array = whole.reshape(-1), bundle[label]
            for key in (
                np.s_[...],
                np.s_[1:-1],
                np.s_[::-2],
                np.s_[5:7:5],
                np.s_[2:2],
                np.s_[[2, 0]],
                -1,
            ):
                assert np.array_equal(array[key], flat[key]), (label, key)
            if array.extent is not None:  # nothing is between the samples
                continue
            for most in (14, 1 << 20) if len(flat) < 1000 else (1 << 12, 1 << 20):
                pieces = [piece.copy() for piece in array.data.stream(most)]
                assert np.array_equal(np.concatenate(pieces), flat)
    raconvert.convert(tmp_path / "x.edf", tmp_path / "x.npz")
    assert np.array_equal(np.load(tmp_path / "x.npz")["x"], values["x"].reshape(-1))


# Records with gaps ---------------------------------------------------------------------------------


def with_gaps(*onsets: str, plus: str = "EDF+D") -> bytes:
    data = b"".join(
        np.arange(3 * n, 3 * n + 3, dtype="<i2").tobytes() + lists(b"+%s\x14\x14" % one.encode())
        for n, one in enumerate(onsets)
    )
    return edf([signal(), NOTES], data, reserved=plus, records=len(onsets))


def test_records_with_gaps_keep_their_times(tmp_path: Path) -> None:
    path = made(tmp_path, with_gaps("0.5", "1.5", "7.25"))
    assert not by_edfio(path).is_continuous
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["x", "records/onset"]
        assert np.array_equal(bundle["x"][...], np.arange(9).reshape(3, 3))
        assert np.array_equal(bundle["x"][1:, 2], [5, 8])
        assert np.array_equal(bundle["x"][:, 1:], [[1, 2], [4, 5], [7, 8]])
        assert np.array_equal(bundle["x"][::2], [[0, 1, 2], [6, 7, 8]])
        assert bundle["records/onset"][...].tolist() == [0.5, 1.5, 7.25]
        record, time = bundle["x"].meta.axes
        assert (record.labels, record.units) == ((0.5, 1.5, 7.25), "s")
        assert (time.spacing, time.origin) == (1 / 3, None)
        assert any("record 3 begins at 7.25 s" in note for note in bundle.notes)
    with raconvert.open_bundle(path, in_opts={"layout": "channels"}) as bundle:
        assert bundle["channels"].shape == (1, 3, 3)
        assert np.array_equal(bundle["channels"][0, ::2, 1], [1, 7])


def test_edf_d_without_gaps_is_one_run(tmp_path: Path) -> None:
    with raconvert.open_bundle(made(tmp_path, with_gaps("2", "3", "4"))) as bundle:
        assert bundle.names == ["x"]
        assert bundle["x"].shape == (9,)
        assert bundle["x"].meta.axes[0].origin == 2


def test_edf_c_that_says_of_gaps_is_noted(tmp_path: Path) -> None:
    path = made(tmp_path, with_gaps("0", "1", "9", plus="EDF+C"))
    assert raconvert.read(path)["x"].shape == (9,)
    assert "record 3 says that it begins at 9 s" in notes(path)


# Headers of the wild -------------------------------------------------------------------------------

ODD: dict[str, tuple[bytes, str]] = {
    "unknown_number_of_records": (edf(records=-1), "2 were found"),
    "unknown_number_and_half_a_record": (edf(data=bytes(range(12)) + b"abc", records=-1),
                                         "the last 3 bytes"),
    "wrong_length_of_the_header": (edf(nbytes=9999), "says 9999 of its length"),
    "no_length_of_the_header": (edf(nbytes=""), "says nothing of its length"),
    "longer_header": (edf(nbytes=768, data=bytes(256) + bytes(range(12))), "256 more than"),
    "trailing_bytes": (edf(data=bytes(range(12)) + b"junk"), "4 bytes after the data were ignored"),
    "micro_in_latin_1": (edf([signal(unit=b"\xb5V")]), "unit of signal 1"),
    "micro_in_utf_8": (edf([signal(unit="µV".encode())]), "unit of signal 1"),
    "label_of_slashes": (edf([signal(label="a/b")]), "a_b"),
    "no_label": (edf([signal(label="")]), "signal"),
    "physical_range_of_nothing": (edf([signal(low="5", high="5")]), "no scale"),
    "digital_range_of_nothing": (edf([signal(first="0", last="0")]), "no scale"),
    "physical_range_of_words": (edf([signal(low="low")]), "no scale"),
    "digital_range_turned": (edf([signal(first="10", last="-10")]), "above the maximum"),
    "commas": (edf([signal(low="-0,5")]), "comma"),
    "date_of_words": (edf(date="tomorrow"), "not a date"),
    "date_that_is_none": (edf(date="31.02.02"), "not a date"),
    "zeros_for_blanks": (edf([signal(label=b"x" + bytes(15))], version=b"0" + bytes(7)), ""),
}  # fmt: skip


@every("name", ODD)
def test_odd_headers_give_the_values(name: str, tmp_path: Path) -> None:
    content, words = ODD[name]
    path = made(tmp_path, content)
    with raconvert.open_bundle(path, from_="edf") as bundle:
        assert np.array_equal(bundle.arrays[0][...], np.frombuffer(bytes(range(12)), "<i2"))
        assert words in "\n".join(bundle.notes)


def test_labels_that_are_there_twice(tmp_path: Path) -> None:
    four = [signal(label=one) for one in ("x", "x", "x 2", "annotations")]
    path = made(tmp_path, edf(four, bytes(48)))
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["x", "x 2", "x 2 2", "annotations 2"]
        assert [one.meta.attributes.get("label") for one in bundle.arrays] == [
            None, "x", "x 2", "annotations"]  # fmt: skip


@every("fields", [
    {"date": "02.03.85", "start": "1985-03-02"}, {"date": "02.03.84", "start": "2084-03-02"},
    {"date": "02-03-yy", "recording": "Startdate 02-MAR-2090 X X X", "start": "2090-03-02"},
    {"date": "02.03.51", "recording": "Startdate 02-MAR-1951 X X X", "start": "1951-03-02"},
])  # fmt: skip
def test_the_year(fields: dict[str, str], tmp_path: Path) -> None:
    start = fields.pop("start")
    with raconvert.open_bundle(made(tmp_path, edf(reserved="EDF+C", **fields))) as bundle:
        assert bundle.attributes["start"] == f"{start}T22:33:44"


def test_a_scale_is_the_nearest_double(tmp_path: Path) -> None:
    path = made(tmp_path, edf([signal(low="-3276.8", high="3276.7", first="-32768", last="32767")]))
    with raconvert.open_bundle(path) as bundle:
        said = bundle["x"].meta.attributes
    assert said["scale_factor"] == 0.1
    assert "add_offset" not in said


def test_records_that_are_there(tmp_path: Path) -> None:
    path = made(tmp_path, edf(records=9))
    with pytest.raises(Corrupt, match="records=found|records.*found"):
        raconvert.read(path)
    options = {"in_opts": {"records": "found"}}
    assert raconvert.read(path, **options)["x"].shape == (6,)
    assert "of which 2 are there" in notes(path, **options)


def test_annotations_of_many_forms(tmp_path: Path) -> None:
    """Several texts of a list, several lists of a record, texts in Latin-1 and none at all."""
    data = lists(
        b"+0\x14\x14first\x14\0+0.25\x150.5\x14two\x14\x14",
        b"+1\x14\x14\0-1\x14caf\xe9\x14", nbytes=64,
    )  # fmt: skip
    notes_ = signal(NOTES, samples=32)
    path = made(tmp_path, edf([notes_], data, reserved="EDF+C", duration=0))
    with raconvert.open_bundle(path) as bundle:
        assert bundle["annotations/onset"][...].tolist() == [0, 0.25, 0.25, -1]
        assert bundle["annotations/text"][...].tolist() == [b"first", b"two", b"", "café".encode()]
        durations = bundle["annotations/duration"][...]
        assert np.array_equal(durations, [np.nan, 0.5, 0.5, np.nan], equal_nan=True)
        assert any("Latin-1" in note for note in bundle.notes)


def test_annotations_that_cannot_be_read_leave_the_signals(tmp_path: Path) -> None:
    broken = edf([signal(), NOTES], bytes(6) + lists(b"no time"), records=1)
    path = made(tmp_path, broken)
    with pytest.raises(WouldLose, match="do not follow"):
        raconvert.convert(path, tmp_path / "x.npz")
    raconvert.convert(path, tmp_path / "x.npz", allow=["arrays"])
    assert np.load(tmp_path / "x.npz").files == ["x"]


def test_annotations_beyond_the_limit(tmp_path: Path) -> None:
    path = made(tmp_path, with_gaps("0", "1", "2"))
    with pytest.raises(TooLarge, match="at most 8 bytes"):
        load(by_name("edf")).read(Source(str(path), limits=Limits(document_bytes=8)))
    with pytest.raises(TooLarge, match="and 0 texts"):
        load(by_name("edf")).read(Source(str(path), limits=Limits(hierarchy_bytes=8)))


def test_a_stretch_of_annotations_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = made(tmp_path, edf([signal(NOTES, samples=8)], bytes(16), reserved="EDF+C", records=1))
    source = Source(str(path), limits=Limits(document_bytes=15))
    with pytest.raises(TooLarge, match="at most 15 bytes"):
        load(by_name("edf")).read(source)


# Hostile files -------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "half_a_header": (edf()[:100], Corrupt, "ends inside the header"),
    "half_the_headers_of_signals": (edf()[:400], Corrupt, "ends inside the headers of 1 signal"),
    "very_many_signals": (edf(count=9999), Corrupt, "ends inside the headers of 9999"),
    "no_signals": (edf([]), Corrupt, "number of signals"),
    "minus_one_signal": (edf(count=-1), Corrupt, "number of signals"),
    "signals_of_words": (edf(count="many"), Corrupt, "number of signals"),
    "no_samples": (edf([signal(samples=0)]), Corrupt, "without samples"),
    "minus_three_samples": (edf([signal(samples=-3)]), Corrupt, "number of samples of signal 1"),
    "samples_of_words": (edf([signal(samples="x")]), Corrupt, "number of samples"),
    "samples_of_words_of_the_second": (edf([signal(), signal(samples="x")]), Corrupt,
                                       "number of samples of signal 2 is not a number, at byte 696"),
    "samples_of_half_a_number": (edf([signal(samples="1.5")]), Corrupt, "number of samples"),
    "very_many_samples": (edf([signal(samples="99999999")]), Corrupt, "cut off"),
    "samples_of_a_large_power": (edf([signal(samples="9e99")]), Corrupt, "cut off"),
    "samples_of_infinity": (edf([signal(samples="inf")]), Corrupt, "number of samples"),
    "very_many_records": (edf(records=99999999), Corrupt, "cut off"),
    "minus_two_records": (edf(records=-2), Corrupt, "number of records"),
    "records_of_words": (edf(records="all"), Corrupt, "number of records"),
    "one_byte_less": (edf()[:-1], Corrupt, "cut off"),
    "negative_duration": (edf(duration=-1), Corrupt, "duration"),
    "duration_of_nan": (edf(duration="nan"), Corrupt, "duration"),
    "no_duration": (edf(duration=""), Corrupt, "duration"),
    "another_version": (edf(version="1"), Corrupt, "neither EDF nor BDF"),
    "version_of_esrf": (b"{\nHeaderID" + edf()[11:], Corrupt, "neither EDF nor BDF"),
    "header_of_the_whole_file": (edf(nbytes="99999999", records=3), Corrupt, "length of the header"),
    "header_of_minus_one_byte": (edf(nbytes=-1, records=3), Corrupt, "length of the header"),
    "records_of_no_time": (edf([signal(), NOTES], bytes(44), reserved="EDF+D"), Corrupt,
                           "do not say when"),
    "times_without_annotations": (edf(reserved="EDF+D"), Corrupt, "do not say when"),
    "times_of_nothing": (with_gaps("x", "y"), Corrupt, "do not follow EDF"),
    "nothing_but_empty_annotations": (edf([NOTES], bytes(32), reserved="EDF+C"), Unsupported,
                                      "neither signals nor"),
    "annotations_of_zeros_and_noise": (edf([NOTES], b"\x14\x15\xff\0" * 8), Corrupt, "follow EDF"),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    refuses(tmp_path / "x.edf", HOSTILE[name], from_="edf")


def test_what_is_not_edf_is_not_taken_for_it() -> None:
    sniff = load(by_name("edf")).sniff
    for content in (b"0       1 2 3 4\n" * 40, b"0       " + bytes(400), b"0       " + b"x" * 400):
        path = Path("/nowhere")
        source = Source(str(path))
        source._head = content
        assert not sniff(source)
