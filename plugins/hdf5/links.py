"""Names of arrays and the links that HDF5 can have for them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from raconvert.plugin import Bundle

UNNAMED = "data"  # the link of an array without a name


def link_names(names: list[str]) -> list[str]:
    """A path of links for each name: the name itself wherever HDF5 can have it."""
    datasets: set[str] = set()
    groups: set[str] = set()
    links = []
    for name in names:
        link = "/".join(component(part) for part in name.split("/")) if name else UNNAMED
        number = 1
        wanted = link
        while not _is_free(link, datasets, groups):
            number += 1
            link = f"{wanted.replace('/', '_')}_{number}"
        datasets.add(link)
        groups.update(parents(link))
        links.append(link)
    return links


def may_be_group(path: Any, taken: Collection[str]) -> bool:
    """True if a group can have this path beside arrays with the links `taken`."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(component(part) != part for part in parts):
        return False
    return path not in taken and not any(above in taken for above in parents(path))


def kept_links(bundle: Bundle, space: dict[str, Any]) -> list[list[Any]]:
    """Path, kind and target of the links that the file had, if the bundle is all of it.

    Of a part, only the further names of what was chosen go along (`Bundle.aliases`).
    """
    links = space.get("links")
    if not isinstance(links, list) or space.get("arrays", len(bundle)) != len(bundle):
        return []
    return [
        link
        for link in links
        if isinstance(link, list) and len(link) == 3 and isinstance(link[0], str)
    ]


def alias_links(bundle: Bundle, space: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The links that further names become, with what each leads to; and those left over.

    What the namespace `space` of a file knows as links, dimensions or empty datasets is written
    from there, and is neither.
    """
    links = dict(zip(bundle.names, link_names(bundle.names), strict=True))
    taken = set(links.values())
    groups = {"", *(path for path in bundle.groups if may_be_group(path, taken))}
    groups.update(*map(parents, (*taken, *groups)))
    named = {path for path, _, _ in kept_links(bundle, space)}
    taken |= named
    for paths in (space.get("dimensions"), space.get("empty")):
        taken.update(paths if isinstance(paths, dict) else ())
    found: dict[str, str] = {}
    left: list[str] = []
    for alias, name in bundle.aliases.items():
        if alias in named:
            continue
        there = name in links or name in groups
        if there and alias not in groups and may_be_group(alias, taken):
            found[alias] = links.get(name, name)
            taken.add(alias)
            groups.update(parents(alias))
        else:
            left.append(alias)
    return found, left


def component(part: str) -> str:
    """One part of a path as HDF5 can have it."""
    part = part.encode("utf-8", "backslashreplace").decode().replace("\0", "_")
    return {"": "_", ".": "_"}.get(part, part)


def parents(link: str) -> list[str]:
    """The paths of the groups in which a path lies, outermost first."""
    return [link[:at] for at, letter in enumerate(link) if letter == "/"]


def _is_free(link: str, datasets: set[str], groups: set[str]) -> bool:
    return link not in datasets and link not in groups and datasets.isdisjoint(parents(link))
