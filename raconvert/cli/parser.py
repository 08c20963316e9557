"""argparse, built from the tables in `raconvert.cli.options` for the one verb in use."""

from __future__ import annotations

import argparse

from raconvert.cli.options import VERBS, Opt, Verb, one_of
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# what an option does with its value -> arguments of argparse
HOW: dict[str, dict[str, Any]] = {
    "value": {"action": "store"},
    "append": {"action": "append"},
    "rest": {"action": "extend", "nargs": "+"},
    "flag": {"action": "store_true"},
    "maybe": {"nargs": "?"},
    "count": {"action": "count"},
    "const": {"action": "store_const"},
}
OPERANDS = {  # dest -> as shown
    "src": "SRC", "files": "FILE", "trees": "TREE", "name": "NAME", "shell": "SHELL",
    "nothing": "",
}  # fmt: skip

# argparse asks gettext for translations of its few words, and that loads locale and looks for
# catalogues on the disk, at every start; there are none.
argparse._ = str  # type: ignore[attr-defined]


def parse(verb: str, words: list[str], summary: str = "") -> argparse.Namespace:
    """Return the options and operands of a verb. Raises `UsageError` for unknown options.

    Operands may stand anywhere among the options; everything behind ``--`` is an operand.
    """
    spec = VERBS[verb]
    cut = words.index("--") if "--" in words else len(words)
    named = spec._replace(options=_named(spec.options, words[:cut]))
    usual = argparse.Namespace(**{opt.dest: opt.default for opt in spec.options[::-1]})
    parser = build(verb, named, summary)
    args, operands = parser.parse_known_args(_joined(words[:cut], named), usual)
    for word in operands:
        if word.startswith("-") and word != "-":
            from raconvert.cli.elsewhere import unknown_option

            raise unknown_option(verb, word, words[:cut])
    args.verb = verb
    dest, nargs, _ = spec.operand
    setattr(args, dest, _operands(verb, spec, nargs, [*operands, *words[cut + 1 :]]))
    return args


def _named(options: tuple[Opt, ...], words: list[str]) -> tuple[Opt, ...]:
    """The options that are among the words; all options if a word is not exactly one of them.

    Building all options of `convert` takes longer than converting a small file.
    """
    by_flag = {flag: option for option in options for flag in option.flags}
    flags = [word.partition("=")[0] for word in words if word[:1] == "-" and word != "-"]
    if not by_flag.keys() >= {*flags}:
        return options
    return tuple({by_flag[flag]: None for flag in flags})


def _joined(words: list[str], spec: Verb) -> list[str]:
    """Join options with the negative numbers behind them, which argparse takes for options."""
    takes = {name for opt in spec.options if opt.how in ("value", "append") for name in opt.flags}
    takes |= {name for opt in spec.options if opt.kind for name in opt.flags}
    maybe = {name for opt in spec.options if opt.how == "maybe" for name in opt.flags}
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in maybe:  # its value is a number; any other word is an operand
            joined[-1] += "=" + word * _is_whole(word)
            if _is_whole(word):
                continue
        number = word[1:].lstrip(".") if word[:1] == "-" and word != "-0" else ""
        if joined and joined[-1] in takes and (number[:1].isdigit() or number[:3] == "inf"):
            joined[-1] += "=" * joined[-1].startswith("--") + word
        else:
            joined.append(word)
    if joined and joined[-1] in maybe:
        joined[-1] += "="
    return joined


def _is_whole(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _operands(verb: str, spec: Verb, nargs: Any, operands: list[str]) -> Any:
    """Return the operands: a list, or for `nargs` of None or `?` the only one, else None.

    Raises `UsageError` if they are too few or too many.
    """
    least, most = {None: (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}.get(
        nargs, (nargs, nargs)
    )
    flaw = ""
    if len(operands) < least:
        flaw = "an operand is missing"
    elif most is not None and len(operands) > most:
        flaw = f"'{operands[most]}' is one too many"
    if flaw:
        raise UsageError(f"{verb}: {flaw}", remedy=f"usage: raconvert {spec.usage}")
    if nargs in (None, "?"):
        return operands[0] if operands else None
    return operands


class _Formatter(argparse.HelpFormatter):
    """The formatter that argparse makes for each option, with a width: else it imports shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of exiting."""

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Raise the `UsageError` of a check as it is; argparse would take it for a ValueError."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if isinstance(error.__context__, UsageError):
                raise error.__context__ from None
            raise

    def error(self, message: str) -> NoReturn:
        what = message.removeprefix("argument ")
        remedy = f"see {self.prog} --help"
        _, ignored, letters = what.partition(": ignored explicit argument ")
        if ignored and letters[:1] in ("'", '"') and letters[1:2].isalpha():  # such as -rf
            from raconvert.cli.elsewhere import unknown_option

            flag = f"-{letters[1]}"
            raise unknown_option(self.prog.rpartition(" ")[2], flag, [flag])
        if what.startswith("--scale: expected one"):  # other programs have it without a value
            remedy = f"for physical values: --unscale\n{remedy}"
        raise UsageError(what, remedy=remedy)

    def format_help(self) -> str:
        from raconvert.cli.help_text import help_of

        return help_of(self.prog.rpartition(" ")[2], self)


def build(verb: str, spec: Verb, summary: str) -> argparse.ArgumentParser:
    """Return the parser of a verb's options; its operands are what is left over."""
    dest, _, help_text = spec.operand
    parser = _Parser(
        prog=f"raconvert {verb}",
        usage=f"raconvert {spec.usage}".replace("%", "%%"),
        description=f"{summary}. {OPERANDS[dest]}: {help_text}" if help_text else f"{summary}.",
        epilog=spec.more or None,
        formatter_class=_Formatter,
        add_help=False,
        allow_abbrev=False,
    )
    add_options(parser, spec)
    parser.add_argument("-h", "--help", action="help", help="show this help")
    return parser


def add_options(parser: argparse.ArgumentParser, spec: Verb) -> None:
    """Add the options of a verb to a parser."""
    groups: dict[str, Any] = {}
    for option in spec.options:
        group: Any = parser
        if option.exclusive:
            if option.exclusive not in groups:
                groups[option.exclusive] = parser.add_mutually_exclusive_group()
            group = groups[option.exclusive]
        group.add_argument(*option.flags, **_arguments(option))


def _arguments(option: Opt) -> dict[str, Any]:
    """The arguments of argparse for an option."""
    named = {
        "dest": option.dest,
        "help": option.help.replace("%", "%%"),
        "default": option.default,
        **HOW[option.how],
    }
    if option.how == "const":
        named["const"] = option.const
    if option.metavar is not None:
        named["metavar"] = option.metavar
    if option.choices:
        named["choices"] = option.choices
        named["type"] = one_of(option.flags[-1], option.choices)
    elif option.kind is not None:
        named["type"] = option.kind
    return named
