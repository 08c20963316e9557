"""What pyproject.toml has no stable word for: the optional compiled code, and editable installs.

A build that cannot compile them says so and goes on (docs/decisions/0012-compiled-loops.md).
"""

import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.editable_wheel import editable_wheel

# One wheel serves Python 3.11 and all later ones. Only free-threaded Python has no stable ABI;
# there the code is left out.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")
# A fault in the code ends the process, and opens no way into it. Words of gcc, clang and GNU ld.
HARDENED = sys.platform == "linux"
# Equal sources make equal wheels (with SOURCE_DATE_EPOCH, and one compiler): no names of folders.
NO_FOLDERS = ["-g0"] * (sys.platform != "win32")
COMPILED = {
    "raconvert.plugins.png._fast": "plugins/png/_fast.c",
    "raconvert.files._small": "raconvert/files/_small.c",
    "raconvert.files._swap": "raconvert/files/_swap.c",
}


class EditableWheel(editable_wheel):
    """`pip install -e`, which leads type checkers to the package."""

    def finalize_options(self):
        """Put the checkout on the path; checkers do not see through a finder of modules."""
        self.mode = self.mode or "compat"
        super().finalize_options()


setup(
    cmdclass={"editable_wheel": EditableWheel},
    ext_modules=[
        Extension(
            name,
            [source],
            optional=True,
            py_limited_api=STABLE_ABI,
            extra_compile_args=NO_FOLDERS
            + ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"] * HARDENED,
            extra_link_args=["-Wl,-z,relro", "-Wl,-z,now"] * HARDENED,
        )
        for name, source in COMPILED.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
