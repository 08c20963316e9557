r"""Files at URLs: which words are URLs, and how they are shown.

A word is a URL if it begins with a scheme of two letters or more and ``://``, whatever files there
are; a local file with such a name is written ``./s3://name``. ``C:\x`` and ``C://x`` are local.

The credentials in a URL (``user:password@``, a signed query) are in no message, report or
journal: `public` returns the name that is used everywhere, `private` the URL that is sent.
"""

from __future__ import annotations

from raconvert.errors import UsageError

# Scheme of a URL -> its protocol in fsspec, and the package that it needs beside fsspec.
SCHEMES: dict[str, tuple[str, str]] = {
    "s3": ("s3", "s3fs"),
    "s3a": ("s3", "s3fs"),
    "gs": ("gs", "gcsfs"),
    "gcs": ("gs", "gcsfs"),
    "az": ("az", "adlfs"),
    "abfs": ("az", "adlfs"),
    "abfss": ("az", "adlfs"),
    "http": ("http", "aiohttp"),
    "https": ("http", "aiohttp"),
    "memory": ("memory", ""),
}
HIDDEN = "***"  # replaces secrets in messages
_private: dict[str, str] = {}  # from the public name of a URL to the one with its password


def scheme_of(word: str) -> str:
    """Return the scheme of a URL in small letters; empty for a word that is not a URL."""
    scheme, mark, _ = word.partition("://")
    letters = scheme.translate({ord(c): None for c in "+.-"})
    if not mark or len(scheme) < 2 or not (letters.isalnum() and scheme.isascii()):
        return ""
    return scheme.lower() if scheme[0].isalpha() else ""


def is_url(word: str) -> bool:
    """True if a word names a file by a URL."""
    return "://" in word and scheme_of(word) != ""


def located(word: str) -> str:
    """Return the name by which a word is used from here on: the public name of a URL, or a path.

    ``file://`` names a local file. Raises `UsageError` for a scheme that is not known.
    """
    scheme = scheme_of(word)
    if scheme == "file":
        return _local(word)
    host = word.partition("://")[2].partition("/")[0]
    protocol = SCHEMES.get(scheme, ("",))[0]
    if protocol == "http":
        _check_port(word)
    # A secret key may have a slash in it; a bucket has no colon, unless it is "arn:aws:...".
    colon = ":" in host and protocol in ("s3", "gs") and not host.startswith("arn:")
    has_secret = "@" in host or colon
    if protocol in ("http", "az") or (protocol and not has_secret):
        return public(word)
    if protocol:
        raise UsageError(
            "a URL of a bucket has no user or password in it",
            path=f"{scheme}://{HIDDEN}" + (f"@{word.rpartition('@')[2]}" if "@" in word else ""),
            remedy="credentials come from the environment: AWS_ACCESS_KEY_ID, AWS_PROFILE, ...",
        )
    if scheme:
        raise UsageError(
            f"'{scheme}://' is not a kind of URL that is read or written here",
            path=word,
            expected=", ".join(f"{known}://" for known in (*SCHEMES, "file")),
            remedy=f"a local file of this name is written ./{scheme}://...",
        )
    return word


def _check_port(word: str) -> None:
    """Raise `UsageError` for a URL without a host, and do not show it: it may have a password."""
    scheme, _, rest = word.partition("://")
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    host = rest.rpartition("@")[2]
    _, colon, port = host.rpartition("]")[2].rpartition(":")
    if not host or (colon and not (port.isascii() and port.isdecimal())):
        raise UsageError(
            "is not an address: what stands before its path is not HOST or HOST:PORT",
            path=f"{scheme.lower()}://{HIDDEN}",
            remedy="in a user or a password '/', '?', '#' and '@' are written %2F, %3F, %23, %40",
        )


def _local(url: str) -> str:
    """Return the path of a ``file://`` URL; raises `UsageError` for that of another machine."""
    from urllib.parse import unquote

    host, slash, path = url.partition("://")[2].partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            "a file:// URL names a file of this machine: file:///folder/name", path=url
        )
    return unquote("/" + path, errors="surrogateescape")


def public(url: str) -> str:
    """Return the name of a URL in messages: ``***@`` replaces user, password and query.

    The whole URL is remembered in this process. Two addresses in the web may differ only in their
    queries: then the second name has a number. Raises nothing.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme not in ("http", "https"):
        return f"{scheme}://{rest}"
    rest, sharp, fragment = rest.partition("#")
    rest, mark, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    if user.startswith(HIDDEN) or not (at or mark):
        return f"{scheme}://{rest}{sharp}{fragment}"
    sent = f"{scheme}://{user}{at}{host}{slash}{path}{mark}{query}"
    number = 1
    while True:
        count = "" if number == 1 else str(number)
        name = f"{scheme}://{HIDDEN}{count}@{host}{slash}{path}"
        if _private.setdefault(name, sent) == sent:
            return name + sharp + fragment
        number += 1


def private(url: str) -> str:
    """Return the URL that is sent to the server for a public name.

    Raises `UsageError` for the public name of a URL that this process was not given.
    """
    if url in _private or f"://{HIDDEN}" not in url:
        return _private.get(url, url)
    user, _, rest = url.partition("@")
    host = f"{user}@{rest.partition('/')[0]}"
    for name, sent in _private.items():  # a file beside one with a password
        if name.startswith(f"{host}/") and "?" not in sent:
            return sent.partition("@")[0] + url[url.index("@") :]
    raise UsageError(
        "is the name that messages have for a URL with a password or a signature",
        path=url,
        remedy="give the whole URL",
    )


def name_of(url: str) -> str:
    """Return the last part of a URL's path, as the name of a file."""
    return url.rstrip("/").rpartition("/")[2]


def folder_of(url: str) -> str:
    """Return a URL up to the last part of its path, with the slash."""
    return url.rstrip("/").rpartition("/")[0] + "/"
