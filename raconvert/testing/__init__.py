"""The conformance kit: what a plugin promises, as functions that raise `AssertionError`.

Built-in formats and formats of third parties are held to the same rules. The tests of a plugin::

    import pytest
    import raconvert_toy
    from raconvert.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    def test_conformance(check):
        check(raconvert_toy)

Every check takes the plugin's module and nothing else. It works in a temporary folder of its own,
needs no test runner, and does not need the plugin to be registered; the module must be importable
by its name, since some checks import it in a fresh interpreter. A check that goes through many
arrays or many damaged files reports all that went wrong.

`CASES` are the arrays of the round trips: every element type of the core in both byte orders, and
every kind of shape and memory order.
"""

from __future__ import annotations

from raconvert.testing.cases import (
    CASES,
    Case,
    filled,
    same,
    same_values,
)
from raconvert.testing.declared import (
    check_catalogue,
    check_format_fields,
    check_format_is_frozen,
    check_import_is_light,
    check_options,
    check_samples_are_sure,
    check_sniff_never_raises,
    check_sniff_rejects_others,
)
from raconvert.testing.empty import check_empty_shapes
from raconvert.testing.headers import check_headers_tell
from raconvert.testing.kit import (
    MAX_MEMORY,
    decode,
    read,
    remove,
    row_of,
    suffix_of,
    write,
)
from raconvert.testing.reading import (
    check_blocks,
    check_close_frees_the_file,
    check_cut_files,
    check_cut_samples,
    check_flipped_samples,
    check_read_is_lazy,
    check_regions,
    check_unreadable_sources,
)
from raconvert.testing.writing import (
    check_additions_keep_the_others,
    check_failed_write_leaves_nothing,
    check_fits_is_pure,
    check_input_is_left_alone,
    check_is_silent,
    check_metadata_is_kept_or_named,
    check_names_are_kept,
    check_output_is_deterministic,
    check_refusals_write_nothing,
    check_round_trips,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = [
    "CASES",
    "CHECKS",
    "MAX_MEMORY",
    "Case",
    "check_additions_keep_the_others",
    "check_blocks",
    "check_catalogue",
    "check_close_frees_the_file",
    "check_cut_files",
    "check_cut_samples",
    "check_empty_shapes",
    "check_failed_write_leaves_nothing",
    "check_fits_is_pure",
    "check_flipped_samples",
    "check_format_fields",
    "check_format_is_frozen",
    "check_headers_tell",
    "check_import_is_light",
    "check_input_is_left_alone",
    "check_is_silent",
    "check_metadata_is_kept_or_named",
    "check_names_are_kept",
    "check_options",
    "check_output_is_deterministic",
    "check_read_is_lazy",
    "check_refusals_write_nothing",
    "check_regions",
    "check_round_trips",
    "check_samples_are_sure",
    "check_sniff_never_raises",
    "check_sniff_rejects_others",
    "check_unreadable_sources",
    "decode",
    "filled",
    "read",
    "remove",
    "row_of",
    "same",
    "same_values",
    "suffix_of",
    "write",
]

CHECKS: tuple[Callable[[ModuleType], None], ...] = (
    check_format_is_frozen,
    check_format_fields,
    check_catalogue,
    check_import_is_light,
    check_options,
    check_samples_are_sure,
    check_sniff_rejects_others,
    check_sniff_never_raises,
    check_read_is_lazy,
    check_regions,
    check_blocks,
    check_close_frees_the_file,
    check_unreadable_sources,
    check_cut_samples,
    check_flipped_samples,
    check_cut_files,
    check_fits_is_pure,
    check_round_trips,
    check_headers_tell,
    check_empty_shapes,
    check_refusals_write_nothing,
    check_input_is_left_alone,
    check_output_is_deterministic,
    check_failed_write_leaves_nothing,
    check_metadata_is_kept_or_named,
    check_names_are_kept,
    check_additions_keep_the_others,
    check_is_silent,
)
