"""``raconvert view``: a file or a folder in a browser, until Ctrl-C."""

from __future__ import annotations

import os
import sys

from raconvert.cli.sources import reading
from raconvert.conversion.options import Settings
from raconvert.viewer.server import Viewer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Serve the page until the user interrupts the command."""
    viewer = Viewer(args.files[0], Settings(**reading(args)), args.port)
    try:
        console.note("Ctrl-C ends it")
        if console.json:
            console.result_line({"url": viewer.url, "port": viewer.port})
        else:
            console.result(viewer.url)
            sys.stdout.flush()
        if not args.no_browser:
            _open(viewer, console)
        viewer.serve_forever(poll_interval=3600)
    finally:
        viewer.server_close()
    return 0


def _open(viewer: Viewer, console: Console) -> None:
    """Open the address in the browser of the desktop; one inside the terminal would occupy that."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not (desktop or os.environ.get("BROWSER") or sys.platform in ("darwin", "win32")):
        console.note("no browser was found; open the address in one on this machine")
        return
    import webbrowser

    if not webbrowser.open(viewer.first_url):
        console.note("no browser could be opened; open the address in one on this machine")
