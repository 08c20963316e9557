"""Options and verbs as other programs call them, and what they are here.

They are looked up if an option or a verb is unknown, so that the message names the right one.
"""

from __future__ import annotations

import os
from itertools import pairwise

from raconvert.cli.options import VERBS, Verb
from raconvert.errors import RaconvertError, UsageError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Options elsewhere -> options here: all of them are named (`_ALL`), or the first one that the verb
# has (`_FIRST`). ``{}`` is the word behind the option. A text without a dash is advice in words, or
# a command.
_ALL: tuple[tuple[str, ...], ...] = (
    ("--format --fmt --filetype --file-type --driver", "--to {}", "--from {}"),
    ("-d", "--out-dir {}", "--array {}"),
    ("--meta-data --metadata", "--meta {}"),
    ("--merge --join --concatenate --append --cat", "--stack", "--concat 0"),
)
_FIRST: tuple[tuple[str, ...], ...] = (
    # formats
    ("-t --output-type --out-format --target-format --dst-format --convert-to", "--to {}"),
    ("-F --input-type --in-format --source-format --src-format", "--from {}"),
    ("--quality", "--out-opt quality={}"),
    ("--wide --pivot", "--out-opt wide={}"),
    ("--levels --pyramid", "--out-opt levels={}"),
    ("--keep-tags --tags", "--in-opt keep-tags={}"),
    ("--layout", "--in-opt layout={}"),
    # places
    ("--dest --destination --out --outfile --out-file --output-file --save --save-as --dst -O",
     "-o {}"),
    ("-o --output", "for a page in a file: raconvert info FILE --html -o PAGE\n"
     "for another format: raconvert FILE -o DST"),
    ("--outdir --output-dir --output-folder --destdir --dest-dir --out-folder", "--out-dir {}"),
    ("-i --input --in --src --source --infile --input-file",
     "the files themselves, without an option"),
    ("--force -y --yes --clobber --replace --rewrite --force-overwrite", "--overwrite"),
    ("--no-clobber --skip --ignore-existing --keep-existing --resume --continue",
     "--skip-existing", "the same command again, which goes on where it was"),
    ("--newer --if-newer", "--update"),
    # parts
    ("--crop --region --roi --select --index --subset --range --window --hyperslab --slices",
     "--slice {}"),
    ("--frame --frames --page --pages --plane", "--slice {}", "--array {}"),
    ("--dataset --dset --key --keys --variable --variables --var --vars --arrays --tensor --field "
     "--member -V -k", "--array {}"),
    # values and axes
    ("--type --data-type --datatype --cast --as-type --astype --output-dtype", "--dtype {}"),
    ("--scale --rescale --apply-scale --physical --mask-and-scale --unpack --calibrate",
     "--unscale"),
    ("--normalize --normalise --stretch --minmax", "--scale minmax"),
    ("--axis-order --order --permute --transpose --axis --dim-order --dimension-order --perm",
     "--axes {}"),
    ("--memory-order", "--index-order {}"),
    ("--split --separate --separately --batch", "--each"),
    ("--lossy --allow-loss --allow-losses --force-cast",
     "losses are allowed one by one: a refusal names the --allow that it needs"),
    ("--no-metadata --ignore-metadata --strip --strip-metadata", "--ignore-meta", "--meta drop",
     "--meta ignore"),
    # choice of files
    ("-r --recursive", "migrate takes all that is below a folder, without an option"),
    ("-R --recurse --subfolders --subdirs --walk", "--recursive"),
    ("--glob --pattern --ext --extension --filter --match", "--include {}"),
    ("--ignore --except --skip-files", "--exclude {}"),
    ("--list-file --filelist --file-list --from-file", "--files-from {}"),
    # speed
    ("--workers --threads --parallel --processes --procs --nproc --cores --num-workers -p -P",
     "--jobs {}"),
    ("--memory --mem --mem-limit --memory-limit --ram -m", "--max-memory {}"),
    # what is said
    ("--dry --simulate --no-act --just-print --plan", "--dry-run"),
    ("--silent --no-progress", "--quiet"),
    ("--verbosity --log-level --loglevel --info-level --vv", "--verbose"),
    ("--no-color --nocolor --no-colour --monochrome", "--color never"),
    ("--colour", "--color {}"),
    ("--check --validate --test", "--verify", "raconvert verify FILE"),
    ("--brief --summary --oneline --one-line -b", "--short"),
    ("--tolerance --tol --eps --epsilon --precision", "--atol {}"),
    ("--list --ls -l --header --show --describe", "raconvert info FILE"),
    ("--preview --plot --image --display", "raconvert peek FILE"),
    ("--view --browse --browser --serve --gui", "raconvert view FILE"),
    ("--version", "raconvert version"),
)  # fmt: skip
_COMPRESS = {
    "--compress", "--compression", "--compressor", "--codec", "-z", "-c", "--level", "--gzip",
    "--zip", "--compression-level", "--deflate", "--zlib", "--lz4", "--zstd",
}  # fmt: skip
# Verbs elsewhere -> verb here
_VERBS = {
    **dict.fromkeys(("show", "display", "plot", "preview", "head", "cat", "dump", "see"), "peek"),
    **dict.fromkeys(
        ("ls", "list", "describe", "inspect", "stat", "header", "identify", "query"), "info"
    ),
    **dict.fromkeys(("browse", "serve", "gui", "open", "viewer"), "view"),
    **dict.fromkeys(("compare", "cmp", "difference"), "diff"),
    **dict.fromkeys(("check", "validate", "test", "fsck"), "verify"),
    **dict.fromkeys(("hash", "checksum", "sha256", "sha256sum", "sum"), "digest"),
    **dict.fromkeys(("cp", "copy", "save", "export", "import", "translate", "stack"), "convert"),
    **dict.fromkeys(("batch", "sync", "tree", "mirror"), "migrate"),
    **dict.fromkeys(("kerchunk", "virtual", "reference", "references", "link"), "refs"),
    **dict.fromkeys(("plugins", "types", "codecs", "drivers"), "formats"),
    **dict.fromkeys(("usage", "man", "commands"), "help"),
}
_OF_OTHERS = " is an option of "
_CLOSE = 0.75  # of the letters of two options are the same, in order
# Words for one method of compression; a format knows one of them
_DEFLATE = ["deflate", "gzip", "zlib", "gz", "true", "yes"]
_NOT_COMPRESSED = ["auto", "none", "no"]


def verb_of(word: str) -> str | None:
    """The verb for a verb of other programs; None if there is no such verb."""
    return _VERBS.get(word.lower())


def unknown_option(verb: str, word: str, words: Sequence[str]) -> UsageError:
    """Return the error for an option that a verb does not have, with a suggestion."""
    flag, _, given = word.partition("=")
    behind = words[words.index(word) + 1 :]
    value = given or next((other for other in behind[:1] if not other.startswith("-")), "")
    what = f"{verb} has no option '{flag}'"
    if flag in _COMPRESS:
        return _of_compression(what, flag, value, words)
    advice = _advice(verb, flag, value)
    if not advice and flag[1:2] != "-" and len(flag) > 2:  # such as -rf
        alone = [f"-{letter}" for letter in flag[1:] if not _has(VERBS[verb], f"-{letter}")]
        known = next((one for one in alone if _advice(verb, one, "")), None)
        if known is not None:
            return unknown_option(verb, known, [known])
    options = [text for text in advice if text.startswith("-") and _OF_OTHERS not in text]
    if options:
        named = " or ".join(option if "'" in option else f"'{option}'" for option in options)
        return UsageError(f"{what}; did you mean {named}?")
    if advice:
        return UsageError(what, remedy=advice[0])
    return _by_spelling(verb, flag, word, what)


def _advice(verb: str, flag: str, value: str) -> list[str]:
    """Return the advice for an option: options of this verb, a text, or which verbs have it."""
    rows: list[tuple[str, ...]]
    if flag == "-f":
        rows = [("--to {}", "--from {}") if _is_format(value) else ("--overwrite",)]
        several = True
    else:
        rows = [tuple(texts) for flags, *texts in _ALL if flag in flags.split()]
        several = bool(rows)
        rows = rows or [tuple(texts) for flags, *texts in _FIRST if flag in flags.split()]
    advice = [text for row in rows for text in row]
    fit = [text for text in advice if not text.startswith("-") or _takes(VERBS[verb], text)]
    if fit:
        chosen = fit if several else fit[:1]
        return list(_filled(chosen, value))
    named = [text.split()[0] for text in advice] or [flag]
    return [
        f"{name}{_OF_OTHERS}{', '.join(others)}"
        for name in named
        if (others := [other for other, spec in VERBS.items() if _has(spec, name)])
    ][:1]


def _filled(advice: Sequence[str], value: str) -> Iterator[str]:
    """Yield advice with the value that was given, or without one."""
    from raconvert.files.quoting import shell

    for text in advice:
        if "{}" not in text:
            yield text
        elif value:
            yield text.replace("{}", shell(value))
        else:
            yield text.replace(" {}", "").replace("{}", "...")


def _has(spec: Verb, flag: str) -> bool:
    """True if a verb has an option."""
    return any(flag in option.flags for option in spec.options)


def _takes(spec: Verb, advice: str) -> bool:
    """True if a verb has the option of an advice, and that takes the value of the advice."""
    flag, _, value = advice.partition(" ")
    return any(
        flag in option.flags and (not option.choices or value in ("", "{}", *option.choices))
        for option in spec.options
    )


def _is_format(word: str) -> bool:
    """True for the name or suffix of a format that is not the name of a file."""
    if not word or "." in word.lstrip(".") or os.path.lexists(word):
        return False
    from raconvert.registry import by_name

    try:
        by_name(word)
    except RaconvertError:
        return False
    return True


def _by_spelling(verb: str, flag: str, word: str, what: str) -> UsageError:
    """The error for an option of no other program, with the nearest one by its letters."""
    from raconvert.files.quoting import operand

    spec = VERBS[verb]
    names = [name[2:] for option in spec.options for name in option.flags if name[:2] == "--"]
    close = did_you_mean(flag.lstrip("-").replace("_", "-").lower(), names, _CLOSE)
    return UsageError(
        what + close.replace("'", "'--", 1),
        remedy=f"see raconvert {verb} --help; a file of that name is {operand(word)}",
    )


# Compression: an option of the format that is written ---------------------------------------------


def _of_compression(what: str, flag: str, value: str, words: Sequence[str]) -> UsageError:
    """The error for an option of compression, which belongs to the format that is written."""
    name = _written(words)
    if name is None:
        return UsageError(
            what,
            remedy="compression belongs to the format, for instance --out-opt compress=gzip; "
            "raconvert formats NAME lists the options of one",
        )
    from raconvert.inspect.info import format_details

    wanted = flag.lstrip("-") if flag[2:] in (*_DEFLATE, "lz4", "zstd") else value
    for option in format_details(name)["write_options"]:
        setting = _setting(option["name"], option["choices"], wanted)
        if setting:
            return UsageError(f"{what}; did you mean '--out-opt {setting}'?")
    return UsageError(
        what, remedy=f"{name} is written uncompressed; its options: raconvert formats {name}"
    )


def _setting(name: str, choices: object, wanted: str) -> str | None:
    """The setting of an option of a format that compresses, nearest to a word; None for others."""
    if name == "level":
        return f"level={wanted if wanted.isdecimal() else 9}"
    if name not in ("compress", "compression", "encoding", "gzip"):
        return None
    level = f"gzip:{wanted}"
    values = list(map(str, choices)) if isinstance(choices, list) else ["gzip", level, "zstd"]
    values = [value for value in values if value not in _NOT_COMPRESSED]
    likely = [wanted, *[level] * wanted.isdecimal(), *_DEFLATE, *values]
    return f"{name}={next(value for value in likely if value in values)}"


def _written(words: Sequence[str]) -> str | None:
    """The name of the format that a line writes, by --to or by its destination."""
    from raconvert.registry import by_name, by_suffix

    behind = dict(pairwise(words))
    named = behind.get("--to") or behind.get("--output-format")
    destination = behind.get("-o") or behind.get("--output") or ""
    try:
        row = by_name(named) if named else by_suffix(destination)
    except RaconvertError:
        return None
    return row.name if row is not None and row.writes else None
