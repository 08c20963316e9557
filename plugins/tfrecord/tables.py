"""Tables of TFRecord: the levels of what is counted, and sample files."""

from __future__ import annotations

__all__ = ["KINDS", "SAMPLES"]

# What the parts of a ragged feature count: (is bytes, has steps) -> name of the part -> level.
KINDS = {
    (False, False): {"lengths": "values of records"},
    (True, False): {"lengths": "bytes", "counts": "values of records"},
    (False, True): {"lengths": "values of steps", "steps": "steps of records"},
    (True, True): {"lengths": "bytes", "counts": "values of steps", "steps": "steps of records"},
}
# Two records of a feature x with three integers; one with a text.
SAMPLES = {
    "two_by_three.tfrecord": bytes.fromhex(
        "100000000000000095fbfe180a0e0a0c0a017812071a050a030102039fb98a871000000000000000"
        "95fbfe180a0e0a0c0a017812071a050a03040506981100d6"
    ),
    "text.tfrecord": bytes.fromhex(
        "100000000000000095fbfe180a0e0a0c0a017412070a050a03616263c09e8e58"
    ),
}
