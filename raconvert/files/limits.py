"""Bounds of memory, work, counts and depth for one source: parsers ask them, tests lower them."""

from __future__ import annotations

from threading import Lock

from raconvert.declared import Record
from raconvert.errors import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Limits(Record):
    """Bounds that hold for a source wherever it lies: in a file, in a folder, at a URL.

    `memory` is --max-memory. No option changes the others; their defaults are far above the
    numbers in sound files. A program hands its own in: ``Source(path, limits=Limits(nodes=100))``.

    Memory, and texts that are read as a whole:

    memory: bytes that decoding may hold at once
    document_bytes: bytes of one metadata document, of a record of metadata in a file, of a string
    hierarchy_bytes: bytes of a document with the metadata of a whole hierarchy or bundle
    record_bytes: bytes of a record of a known kind: an extended header, a list of names
    searched_bytes: bytes that are looked through, for a mark or for ends of lines
    text_bytes: bytes of a text that is kept without being understood
    raw_record_bytes: bytes of another record that is kept without being understood

    Headers:

    header_bytes: bytes of a header that is parsed: 5000 fields; NumPy reads 10,000 bytes
    short_header_bytes: bytes in which a header of some lines must end
    header_line_bytes: bytes of one line of a header
    header_lines: lines of a header
    header_digits: digits of a number in a header; `tarfile` of old takes their square as time
    literal_levels: brackets of a Python literal inside each other, as Python's parser takes
    literal_digits: digits of an integer in a Python literal; Python reads as many
    header_blocks: blocks of the header of one object
    header_elements: elements of a header that is a tree of them: 20,000 images of 100
    name_bytes: bytes of the name of an array; programs write 63
    number_bytes: bytes of one number in a text; the longest exact double has 1079
    shape_bytes: bytes of the lengths of the axes of an array: 1024 axes
    type_name_characters: characters of the name of a type
    probed_headers: headers that are followed to know a format
    empty_headers: headers without records, which a file may have but hardly does
    damaged_names: damaged names that are looked at one by one

    Archives and decoded bytes:

    directory_bytes: bytes of the directory of an archive; ten times as many in memory
    archive_members: members of an archive: a hundred thousand arrays and what may lie beside them
    trailing_bytes: bytes behind the array in a member of an archive
    surplus_bytes: decoded bytes that do not belong to the array
    expansion_ratio: bytes that a stored byte may become beyond `memory`; Zstandard makes 32 Ki
    lzma_dictionary_bytes: bytes of the dictionary of an LZMA stream; xz -9 takes as many
    lzma_decoder_bytes: bytes that liblzma may take for itself

    Images:

    image_chunks: chunks of one image: a file of 1.5 GiB in pieces of 8 KiB
    image_frames: frames of one animation, some hundred bytes each in memory
    image_scans: scans of one image, each a pass over all its pixels; encoders make ten
    metadata_chunk_bytes: bytes of one chunk of metadata that is kept in memory, also inflated
    metadata_bytes: bytes of all chunks of metadata of an image
    page_characters: characters of a description for each page that it describes
    directory_passes: times that the bytes of a file may be read for its directories

    Metadata and hierarchies:

    nesting_levels: lists and mappings, or structs and cells, inside each other
    document_values: values of one YAML document or pickle: about two seconds
    pickle_operations: operations of one pickle, and values that one of them copies
    attribute_bytes: bytes of the plain values that all attributes of a file become
    attribute_passes: times that the bytes of a file may be read as attributes
    nodes: arrays and groups of one file; some kilobytes each in memory
    group_levels: groups inside each other
    group_bytes: bytes of the paths of all groups on the way to all arrays of a file
    path_characters: characters of all paths in a file: each has those of its groups in it
    entries: entries of a store of values by key; 26 bytes each in memory
    links: links of one file, beside the first name of each of its objects
    link_steps: names that all links of a file lead along
    path_links: links on the way of one path
    external_files: further files that one file may name
    virtual_levels: virtual datasets that take their elements from each other
    virtual_sources: sources of a virtual dataset, and theirs
    structure_fields: fields of a structure, its columns, or the texts in it
    type_levels: types inside types
    tree_levels: levels of a tree of records
    expression_levels: brackets of an expression inside each other
    scale_values: values of a scale that are read to describe an axis
    axis_labels: values of an irregular scale that become labels
    table_columns: columns of a table; XLSX has 16,384
    table_labels: labels of one axis of a table
    table_passes: times that a table beyond memory may be read, once for a column
    repeated_uses: uses of structs and cells after the first one of each
    skipped_variables: variables beyond the limits that are left out before the file is refused

    Chunks and their files:

    chained_codecs: codecs in a chain
    index_passes: times that the bytes of a file may be read as indexes of chunks and objects
    shard_levels: shards inside shards
    shard_index_bytes: bytes of indexes of shards that are read to count their chunks
    shard_passes: times that the bytes of a shard may be decoded, as parts may overlap
    unstored_chunks: chunks of an array beyond the bytes of its file; a second or two
    absent_ratio: pieces or bytes that may be absent for each one that is stored
    absent_piece_bytes: bytes of an absent piece that `absent_ratio` counts
    absent_requests: requests that a server may answer with "not there", if it has no more
    counted_files: files of a folder that are counted when it is opened
    listed_files: files of a folder whose names are kept
    listed_pages: pages of 1000 of a list that a server gives of unfinished uploads
    linked_folders: folders that links in a folder lead to
    note_bytes: bytes of a note that a set of files is not whole
    note_line_bytes: bytes of a line of such a note, with the name of a file
    """

    memory: int = 1 << 30
    document_bytes: int = 16 << 20
    hierarchy_bytes: int = 64 << 20
    record_bytes: int = 1 << 20
    searched_bytes: int = 64 << 20
    text_bytes: int = 4 << 20
    raw_record_bytes: int = 1 << 16
    header_bytes: int = 1 << 18
    short_header_bytes: int = 1 << 16
    header_line_bytes: int = 4 << 20
    header_lines: int = 1 << 16
    header_digits: int = 512
    literal_levels: int = 200
    literal_digits: int = 4300
    header_blocks: int = 1000
    header_elements: int = 2_000_000
    name_bytes: int = 4096
    number_bytes: int = 1 << 11
    shape_bytes: int = 4096
    type_name_characters: int = 64
    probed_headers: int = 1000
    empty_headers: int = 100
    damaged_names: int = 100
    directory_bytes: int = 8 << 20
    archive_members: int = 300_000
    trailing_bytes: int = 1 << 20
    surplus_bytes: int = 64 << 20
    expansion_ratio: int = 1 << 18
    lzma_dictionary_bytes: int = 1 << 26
    lzma_decoder_bytes: int = 128 << 20
    image_chunks: int = 200_000
    image_frames: int = 100_000
    image_scans: int = 500
    metadata_chunk_bytes: int = 8 << 20
    metadata_bytes: int = 32 << 20
    page_characters: int = 1 << 10
    directory_passes: int = 8
    nesting_levels: int = 64
    document_values: int = 400_000
    pickle_operations: int = 2_000_000
    attribute_bytes: int = 128 << 20
    attribute_passes: int = 32
    nodes: int = 200_000
    group_levels: int = 500
    group_bytes: int = 64 << 20
    path_characters: int = 32 << 20
    entries: int = 8_000_000
    links: int = 200_000
    link_steps: int = 1_000_000
    path_links: int = 40
    external_files: int = 100
    virtual_levels: int = 8
    virtual_sources: int = 100_000
    structure_fields: int = 10_000
    type_levels: int = 32
    tree_levels: int = 16
    expression_levels: int = 50
    scale_values: int = 1 << 16
    axis_labels: int = 1000
    table_columns: int = 20_000
    table_labels: int = 200_000
    table_passes: int = 32
    repeated_uses: int = 1000
    skipped_variables: int = 8
    chained_codecs: int = 16
    index_passes: int = 4
    shard_levels: int = 3
    shard_index_bytes: int = 16 << 20
    shard_passes: int = 16
    unstored_chunks: int = 1 << 20
    absent_ratio: int = 1000
    absent_piece_bytes: int = 16 << 20
    absent_requests: int = 10_000
    counted_files: int = 100_000
    listed_files: int = 1_000_000
    listed_pages: int = 1000
    linked_folders: int = 10_000
    note_bytes: int = 64 << 20
    note_line_bytes: int = 1 << 16


DEFAULT = Limits()


# Counts of what reading one array has cost, compared with what there really is -------------------


class Found:
    """Counts of the pieces of one array: how many exist in its store, and how many do not.

    They are counted while the array is read, for all threads that read it. `nbytes` is the size of
    a decoded piece; `asked` is True if each absent piece costs a request to a server. `parts` is
    the number of the smallest units that exist: chunks, also those of a shard.
    """

    __slots__ = (
        "_lock", "absent", "asked", "limits", "nbytes", "parts", "path", "stored", "there", "what",
    )  # fmt: skip

    def __init__(
        self, limits: Limits, nbytes: int, what: str, path: str, *, asked: bool = False
    ) -> None:
        self.limits: Limits = limits
        self.nbytes: int = nbytes
        self.what: str = what
        self.path: str = path
        self.asked: bool = asked
        self.there: int = 0
        self.stored: int = 0
        self.absent: int = 0
        self.parts: int = 0
        self._lock = Lock()

    def add(self, stored: int | None) -> None:
        """Count a piece of `stored` bytes, or one that is not there (None).

        Raises `TooLarge` if a server has far fewer pieces than it is asked for.
        """
        with self._lock:
            if stored is None:
                self.absent += 1
            else:
                self.there += 1
                self.stored += stored
        most = max(self.limits.absent_requests, self.limits.absent_ratio * (self.there + 1))
        if self.asked and self.absent > most:
            raise self.too_many(most)

    def add_parts(self, count: int) -> None:
        """Count units that exist. Raises nothing."""
        with self._lock:
            self.parts += count

    def too_many(self, most: int) -> TooLarge:
        """Return the error for an array nearly none of whose chunks exist. Raises nothing."""
        return TooLarge(
            f"{self.what} is cut into many chunks, of which few exist", path=self.path,
            expected=f"at most {most} requests for chunks that are absent", got=self._counts(),
            remedy="choose a part of it, or copy it to a disk, where it can be listed",
        )  # fmt: skip

    def check(self) -> None:
        """Raise `TooLarge` if the elements are little more than a fill value, or a few bytes."""
        limits = self.limits
        filled = self.absent * self.nbytes
        room = limits.absent_ratio * (self.there + 1) * min(self.nbytes, limits.absent_piece_bytes)
        if filled > max(limits.memory, room):
            raise self._too_much(filled, "are little more than a fill value")
        decoded = self.there * self.nbytes
        if decoded > max(limits.memory, limits.expansion_ratio * self.stored):
            raise self._too_much(decoded, f"have only {self.stored} bytes stored")

    def _too_much(self, nbytes: int, why: str) -> TooLarge:
        """Return the error for so many decoded bytes; `why` is a clause about them."""
        memory = -(-nbytes // (1 << 20))
        return TooLarge(
            f"{self.what} declares {nbytes} bytes that {why}", path=self.path, got=self._counts(),
            expected=f"at most {self.limits.memory} (`--max-memory`), unless more is stored",
            remedy=f"choose a part of it, or allow it with `--max-memory {memory}M`",
        )  # fmt: skip

    def _counts(self) -> str:
        """Return the number of pieces that exist, of all that were looked up, for messages."""
        return f"{self.there} of {self.there + self.absent} chunks"


class Work:
    """Budget of the bytes that may be decoded for one stored piece; `spend` counts them.

    `parts` is the number of units of the piece that have been read, in whole or in part.
    """

    __slots__ = ("_left", "_most", "parts")

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        self.parts: int = 0

    def spend(self, nbytes: float, what: str, **where: Any) -> None:
        """Count decoded bytes; raises `TooLarge` once they are more than the budget."""
        self._left -= int(nbytes)
        if self._left < 0:
            raise TooLarge(
                f"{what} would decode the same bytes again and again",
                expected=f"at most {self._most} bytes", got=f"{self._most - self._left} or more",
                remedy="write it again: parts of a shard do not overlap", **where,
            )  # fmt: skip
