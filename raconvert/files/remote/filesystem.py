"""The fsspec file system of a URL, and its errors as errors of ours.

Options come from the environment alone: ``AWS_*`` as botocore takes them, or
``FSSPEC_S3_ENDPOINT_URL`` and the like (https://filesystem-spec.readthedocs.io/en/latest/features.html#configuration).
Attempts are repeated here and nowhere below, so that their number is known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from time import sleep

from raconvert.errors import (
    MissingDependency,
    RaconvertError,
    ReadFailed,
    WriteFailed,
    changed,
    without_secrets,
)
from raconvert.files.remote import SCHEMES, private, scheme_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

ATTEMPTS = 5
FIRST_WAIT = 0.2  # seconds; each further one is three times as long: 8 seconds in all
TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
THROTTLED = frozenset((429, 503))
# Classes of errors of other libraries after which a second attempt may succeed.
CUT = frozenset((
    "ConnectionError", "TimeoutError", "FSTimeoutError", "ClientConnectionError",
    "ClientPayloadError", "HTTPClientError", "IncompleteRead", "IncompleteReadError",
    "ResponseParserError", "ResponseStreamingError", "ConnectionClosedError",
))  # fmt: skip
_WITHOUT = frozenset(("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError",
                      "ProfileNotFound", "SSOTokenLoadError"))  # fmt: skip
_CODES = {  # S3's error codes that arrive without an HTTP status
    "SlowDown": 503, "ServiceUnavailable": 503, "Throttling": 503, "ThrottlingException": 503,
    "RequestLimitExceeded": 503, "TooManyRequests": 429, "InternalError": 500,
    "RequestTimeout": 408, "NoSuchKey": 404, "NoSuchBucket": 404, "NoSuchUpload": 404,
    "AccessDenied": 403, "InvalidAccessKeyId": 403, "SignatureDoesNotMatch": 403,
    "ExpiredToken": 403, "PreconditionFailed": 412, "InvalidRange": 416,
}  # fmt: skip
CREDENTIALS = {
    "s3": "check the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; "
    "for a public bucket FSSPEC_S3_ANON=true",
    "gs": "check the credentials: GOOGLE_APPLICATION_CREDENTIALS; for a public bucket "
    "FSSPEC_GS_TOKEN=anon",
    "az": "check the credentials: AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "http": "check the address; a signed one may have expired",
}
_CANCELLED = 2.0  # seconds that cancelled requests get to end
_open: dict[Any, Any] = {}  # file systems by process, protocol, host and environment


def filesystem(url: str) -> Any:
    """Return the fsspec file system of a URL (as `located` returns it), made once for its options.

    Raises `MissingDependency`, which names the install line.
    """
    protocol, package = SCHEMES[scheme_of(url)]
    _check_packages(scheme_of(url), package)
    environment = tuple(
        (name, value)
        for name, value in sorted(os.environ.items())
        if name.startswith(("AWS_", "FSSPEC_", "AZURE_", "GOOGLE_"))
    )
    account = url.partition("://")[2].partition("/")[0] if protocol == "az" else ""
    key = os.getpid(), protocol, account, environment
    if key not in _open:
        _open[key] = _made(url, protocol)
    return _open[key]


def cancel_requests() -> None:
    """Cancel the requests that nobody waits for any more, and wait until they have ended.

    It is for the end of an interrupted process: asyncio writes pending requests to standard error.
    """
    import asyncio

    async def cancel() -> None:
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    loops: set[Any] = {getattr(opened, "loop", None) for opened in _open.values()}
    for loop in loops - {None}:
        with suppress(Exception):  # a loop that does not answer; the process ends all the same
            asyncio.run_coroutine_threadsafe(cancel(), loop).result(_CANCELLED)


def key_of(url: str) -> str:
    """Return the key of a URL in its file system: ``bucket/name``, or the address for HTTP."""
    sent = private(url)
    protocol, rest = SCHEMES[scheme_of(url)][0], sent.partition("://")[2]
    if protocol == "http":
        return sent
    if protocol == "memory":
        return f"/{rest.lstrip('/')}"
    host, slash, path = rest.partition("/")
    return f"{host.partition('@')[0]}{slash}{path}"  # Azure: CONTAINER@ACCOUNT.HOST


def _check_packages(scheme: str, package: str) -> None:
    """Raise `MissingDependency` if fsspec, or the package for a scheme, is not installed."""
    missing = [name for name in ("fsspec", package) if name and find_spec(name) is None]
    if missing:
        ours = {"fsspec", "s3fs", "aiohttp"}.issuperset(missing)
        raise MissingDependency(
            f"{scheme}:// needs a package that is not installed: {', '.join(missing)}",
            remedy="pip install " + ("'raconvert[remote]'" if ours else " ".join(missing)),
        )


def _made(url: str, protocol: str) -> Any:
    """Make a file system with the options of the environment; it caches no listings."""
    import fsspec
    from fsspec.config import conf, set_conf_env

    cls = fsspec.get_filesystem_class(protocol)
    options = {name: dict(value) for name, value in conf.items() if isinstance(value, dict)}
    set_conf_env(options)
    own: dict[str, Any] = {"skip_instance_cache": True}
    if protocol != "memory":
        own["use_listings_cache"] = False
    account = url.partition("://")[2].partition("/")[0].partition("@")[2].partition(".")[0]
    if account and protocol == "az":
        own["account_name"] = account
    for name in cls.protocol if isinstance(cls.protocol, tuple | list) else [cls.protocol]:
        own.update(options.get(name, {}))
    if protocol == "s3":
        once = {"total_max_attempts": 1, "mode": "standard"}
        own["config_kwargs"] = {"retries": once, **own.get("config_kwargs", {})}
    fs = cls(**own)
    if protocol == "s3":
        fs.retries = 1
    return fs


def attempted(work: Callable[[], T], url: str, *, writing: bool = False, repeat: bool = True) -> T:
    """Return the result of `work`, which is repeated with growing waits if it fails for a while.

    An exception that it raises in the end becomes an error of ours (`failed`). `repeat=False` is
    for work that must not be done twice.
    """
    attempt, wait = 1, FIRST_WAIT
    while True:
        try:
            return work()
        except RaconvertError:
            raise
        except Exception as error:
            if not repeat or attempt == ATTEMPTS or not is_transient(error):
                raise failed(error, url, writing=writing, attempts=attempt) from error
        sleep(wait)
        attempt, wait = attempt + 1, wait * 3


def is_transient(error: BaseException) -> bool:
    """True if a second attempt may succeed."""
    status = status_of(error)
    return status in TRANSIENT if status else _is_cut(error)


def _is_cut(error: BaseException) -> bool:
    """True if a connection was cut or refused."""
    return any(cls.__name__ in CUT for cls in type(error).__mro__)


def status_of(error: BaseException | None) -> int:
    """Return the HTTP status behind an error of a library, 0 if there is none."""
    while error is not None:
        status = getattr(error, "status", None)
        if isinstance(status, int) and status >= 400:
            return status
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return int(_CODES.get(code_of(error), status))
        error = error.__cause__
    return 0


def code_of(error: BaseException | None) -> str:
    """Return the code of S3 behind an error, as ``SlowDown``; empty if there is none."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        error = error.__cause__
    return ""


def failed(error: BaseException, url: str, *, writing: bool, attempts: int = 1) -> RaconvertError:
    """Return the error of ours for an exception of a library about a URL."""
    kind = WriteFailed if writing else ReadFailed
    verb = "written" if writing else "read"
    status, code = status_of(error), code_of(error)
    codes = str(status or "")
    if code and code != str(status):
        codes = f"{codes} {code}".lstrip()
    tries = f", {attempts} times" if attempts > 1 else ""
    protocol = SCHEMES[scheme_of(url)][0]
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        bucket = code == "NoSuchBucket"
        return kind("its bucket does not exist" if bucket else "does not exist", path=url)
    if status == 412 and not writing:
        return changed(url)
    if isinstance(error, PermissionError) or status in (401, 403):
        what = f"cannot be {verb}: access is refused ({codes or error.__class__.__name__})"
        return kind(what, path=url, remedy=CREDENTIALS.get(protocol))
    if any(cls.__name__ in _WITHOUT for cls in type(error).__mro__):
        what = f"cannot be {verb}: no credentials found ({without_secrets(str(error))})"
        return kind(what, path=url, remedy=CREDENTIALS.get(protocol))
    if status in THROTTLED:
        what = f"cannot be {verb}: the server asks to slow down ({codes}{tries})"
        return kind(what, path=url, remedy="try again later, or with fewer `--jobs`")
    if status >= 500:
        what = f"cannot be {verb}: the server failed ({codes}{tries})"
        return kind(what, path=url, remedy="try again later")
    if _is_cut(error):
        what = f"cannot be {verb}: the connection was cut or refused ({_text(error)}{tries})"
        return kind(what, path=url, remedy="check the network and the address, and try again")
    return kind(f"cannot be {verb}: {codes + ': ' if codes else ''}{_text(error)}", path=url)


def _text(error: BaseException) -> str:
    """Return a library's message on one line, 200 characters at most, without secrets."""
    text = " ".join(without_secrets(str(error)).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
