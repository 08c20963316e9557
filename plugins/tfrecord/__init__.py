"""TFRecord: records of `tf.train.Example` and `SequenceExample`, read without TensorFlow.

Specification: tensorflow.org/tutorials/load_data/tfrecord and tensorflow/core/example/*.proto.
Compared with: the `tfrecord` package, and protobuf with the same descriptors.

Layout, for each record, little-endian::

    0    uint64  number of bytes n
    8    uint32  masked CRC-32C of these 8 bytes
    12   n       the record
    12+n uint32  masked CRC-32C of the record

Reads: plain, or the whole in gzip or zlib; both checksums of every record are verified when a file
is opened, which therefore reads all of it: nothing but the records tells their features. A feature
that all records have, with as many values each, is an array of its name: records along the first
axis, then the values unless each record has one. Integers are int64, floats float32. Bytes that are
UTF-8 without zeros in every record are a text; others of one length are uint8 with the bytes along
the last axis. Values of a feature ``image/encoded`` that are PNG are decoded into one array, image
by image when they are asked for, as the plugin of that format reads them; ``images=NAME,...``
decodes those of other names, and JPEG, WebP, BMP and GIF, of which decoders differ. With
``ragged=flat`` they stay bytes. Features of a `SequenceExample` lie in the groups ``context`` and
``feature_lists``, the latter with an axis of steps behind that of records.

Features of which records have different numbers, bytes of different lengths, or which some records
lack are arrays that cannot be read, unless ``ragged=flat``: all values in NAME/values, and how many
each has in NAME/lengths (of bytes: for each value; then NAME/counts tells the values of a record;
NAME/steps the steps). With ``records=bytes`` records are not parsed: each is one value of
``records``; opening reads their lengths alone, and the checksum of the data is verified with it.

Noted and left out: features without any value. Nothing in a file says how many records it has: one
that was cut off between two records is a shorter file.

Refused: checksums that are wrong, files that end inside a record, records that are not Examples
(``records=bytes`` reads them), features that are integers here and floats there, or twice in a
record; gzip of more than an eighth of ``--max-memory``.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from .records import is_record
from .tables import SAMPLES

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="tfrecord",
    title="TFRecord of examples",
    suffixes=(".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"),
    many=True,
    writes=False,
    needs=(("google_crc32c", "google-crc32c"),),
    read_options=(
        Option("ragged", "refused", ("refused", "flat"), "flat: values, and how many each has"),
        Option(
            "images",
            "",
            str,
            "features whose values are decoded as images; PNG in image/encoded is anyway",
        ),
        Option("records", "examples", ("examples", "bytes"), "bytes: records are not parsed"),
    ),
    samples=SAMPLES,
    spec="https://www.tensorflow.org/tutorials/load_data/tfrecord",
    losses="it is read only",
)


def sniff(source: Source) -> int:
    """Return SURE if the checksum of the first length is right."""
    return SURE if is_record(source) else NO


def read(
    source: Source, *, ragged: str = "refused", images: str = "", records: str = "examples"
) -> Bundle:
    """Read the features of all records, each an array.

    Raises `Corrupt`, `TooLarge`, `Unsupported`, and `UsageError` for a wrong option.
    """
    from .reader import read_file

    return read_file(source, flat=ragged == "flat", parsed=records == "examples",
                     images=images)  # fmt: skip
