"""Which words are URLs, and that no message shows what proves who asks."""

from __future__ import annotations

import pytest

from raconvert.errors import RaconvertError, UsageError, without_secrets
from raconvert.files.remote import is_url, located, private, public


@pytest.mark.parametrize(
    "word", ["s3://b/k", "HTTP://h/x.npy", "https://h", "memory://a", "az://c/k"]
)
def test_urls(word: str) -> None:
    assert is_url(word)
    assert located(word).partition("://")[0] == word.partition("://")[0].lower()


@pytest.mark.parametrize(
    "word",
    [
        "C:\\x.ra",
        "C://x.ra",
        "./s3://b/x",
        "data/s3://x",
        "a:b",
        "x.ra",
        "://x",
        "1s://x",
        "ü3://x",
    ],
)
def test_local_names(word: str) -> None:
    assert not is_url(word)
    assert located(word) == word


def test_file_urls_are_local_paths() -> None:
    assert located("file:///data/a%20b.ra") == "/data/a b.ra"
    assert located("file://localhost/data/x.ra") == "/data/x.ra"
    with pytest.raises(UsageError, match="this machine"):
        located("file://elsewhere/x.ra")


def test_an_unknown_scheme_is_refused_with_the_way_to_name_a_local_file() -> None:
    with pytest.raises(UsageError, match=r"\./ftp2://"):
        located("ftp2://h/x.ra")


def test_password_and_query_are_hidden_and_still_sent() -> None:
    signed = "https://user:geheim@host/a/x.npy?X-Sig=abcdef"
    name = located(signed)

    assert name == "https://***@host/a/x.npy"
    assert located(name) == name
    assert private(name) == signed
    other = located(signed.replace("abcdef", "123456"))
    assert other != name
    assert private(other).endswith("123456")
    assert located(signed) == name
    assert located("https://host/a/x.npy") == private("https://host/a/x.npy")


def test_a_fragment_stays_behind_a_hidden_query() -> None:
    assert public("https://host/x.h5?sig=secret#/grid") == "https://***@host/x.h5#/grid"


def test_a_hidden_name_alone_is_not_enough() -> None:
    with pytest.raises(UsageError, match="whole URL"):
        private("https://***7@host/never.npy")


def test_a_bucket_takes_no_password() -> None:
    with pytest.raises(UsageError, match="environment") as caught:
        located("s3://key:geheim@bucket/x.ra")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "Cannot connect to http://u:geheim@h/x",
        "GET 'https://h/x.npy?sig=geheim': 403",
        "http://h/x?geheim",
    ],
)
def test_texts_of_libraries_are_scrubbed(text: str) -> None:
    assert "geheim" not in without_secrets(text)
    assert "geheim" not in str(RaconvertError(text, path="p"))
