"""EDF and BDF: recordings of EEG, sleep and the like, with their annotations; read only.

Specification: Kemp et al. 1992 (EDF), Kemp and Olivan 2003 (EDF+) and BioSemi's BDF. Compared with:
edfio and pyedflib.

Layout::

    0    version   8 bytes: ``0``, or 255 and ``BIOSEMI``
         texts     patient and recording, 80 bytes each
         start     ``dd.mm.yy`` and ``hh.mm.ss``
         numbers   bytes of the header, 44 reserved (``EDF+C``, ``BDF+D``, ...), number of records,
                   their duration in seconds, number of signals
    256  signals   16 label, 80 transducer, 8 unit, 8 each of physical minimum and maximum, digital
                   minimum and maximum, 80 prefilter, 8 samples in a record, 32 reserved; each field
                   of all signals before the next field
         records   samples of the first signal, of the second, ...

Reads: EDF, EDF+C, EDF+D, BDF, BDF+C and BDF+D. Each signal is an array of its label: the digital
integers as stored, int16, or int32 of the 24 bits of BDF. The axis is time in seconds, its spacing
the duration of a record divided by its samples. Physical and digital range are the attributes
scale_factor and add_offset, each the double nearest to what the decimals of the header say;
``--unscale`` gives physical values. With ``layout=channels`` signals of one rate and unit are one
array (channel, time); where their ranges differ it is only read with ``--unscale``.

Annotations (EDF+, BDF+) are three arrays: annotations/onset and annotations/duration in seconds
from the start of the file (NaN: no duration is said), and annotations/text. The start of the file
is the attribute ``start``; where the first record begins later, that is the origin of time.

Records that do not follow each other (EDF+D with gaps) make arrays (record, time), never one run of
samples; the array ``records/onset`` says when each begins, and labels do if there are few.

What may say who a patient is does not leave the file: the texts of patient and recording; a note
says which kinds were left out. ``keep-tags`` names those that become attributes:
``patient,recording``, or of EDF+ ``code``, ``sex``, ``birthdate``, ``name``, ``admincode``,
``technician`` and ``equipment``. The texts of annotations are data, and stay.

Noted: an unknown number of records (-1), worked out from the length of the file; a length of the
header that is not that of its signals; letters that are not ASCII (UTF-8, else Latin-1); labels
that are there twice, or empty; a physical or digital range without two different numbers (there is
no scale then); commas in numbers; records of EDF+C that say that they have gaps; bytes after the
last record.

Refused: fewer records than the header says, unless ``records=found``; numbers of samples, records
and signals that are not integers in range; annotations that do not follow EDF+ (arrays that cannot
be read, and of EDF+D the file, since they say when records begin).
"""

from __future__ import annotations

import re

from raconvert.plugin import NO, SURE, Format, Option, Source

from .reader import read
from .tables import BDF, EDF, SAMPLES

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="edf",
    title="EDF and BDF recordings",
    suffixes=(".edf", ".bdf"),
    magic=((0, EDF), (0, BDF)),
    many=True,
    writes=False,
    holds=("names", "labels", "spacing", "scale", "units", "attributes"),
    read_options=(
        Option(
            "layout", "signals", ("signals", "channels"), "channels: signals of one rate as one"
        ),
        Option("records", "said", ("said", "found"), "found: those that are there, if fewer"),
        Option("keep_tags", "", str, "what of patient and recording is kept: patient,equipment"),
    ),
    samples=SAMPLES,
    spec="https://www.edfplus.info/specs/",
    losses="it is read only",
)

_NUMBERS = re.compile(rb"[0-9]+ *.{44}-?[0-9]+ *[0-9.,eE+-]+ *[0-9]+ *", re.DOTALL)


def sniff(source: Source) -> int:
    """Return SURE for the version of BDF, or for that of EDF if its header has numbers in place."""
    head = source.head
    if head.startswith(BDF):
        return SURE
    return SURE if head.startswith(EDF) and _NUMBERS.fullmatch(head[184:256]) else NO
