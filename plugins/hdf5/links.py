"""Names of arrays and the links that HDF5 can have for them."""

from __future__ import annotations

UNNAMED = "data"  # the link of an array without a name


def link_names(names: list[str]) -> list[str]:
    """Return a path of links for each name: the name itself wherever HDF5 can have it."""
    datasets: set[str] = set()
    groups: set[str] = set()
    links = []
    for name in names:
        link = "/".join(component(part) for part in name.split("/")) if name else UNNAMED
        number = 1
        plain = link
        while not _is_free(link, datasets, groups):
            number += 1
            link = f"{plain.replace('/', '_')}_{number}"
        datasets.add(link)
        groups.update(parents(link))
        links.append(link)
    return links


def component(part: str) -> str:
    """Return one part of a path as HDF5 can have it."""
    part = part.encode("utf-8", "backslashreplace").decode().replace("\0", "_")
    return {"": "_", ".": "_"}.get(part, part)


def parents(link: str) -> list[str]:
    """Return the paths of the groups in which a path lies, outermost first."""
    return [link[:at] for at, letter in enumerate(link) if letter == "/"]


def _is_free(link: str, datasets: set[str], groups: set[str]) -> bool:
    return link not in datasets and link not in groups and datasets.isdisjoint(parents(link))
