"""A module that notes which of its lines run, made from its source: only its own lines cost time."""

from __future__ import annotations

import ast

# (module, first line, last line) of the statements that ran since this was emptied
REACHED: set[tuple[str, int, int]] = set()
IMPORT = ast.parse(f"from {__name__} import REACHED as _reached").body[0]


def marked(source: str, module: str) -> str:
    """The source with a note before every statement of a function; what runs on import has none."""
    tree = _Marker(module).visit(ast.parse(source))
    first = next(n for n, node in enumerate(tree.body) if not _leads(node))
    tree.body.insert(first, IMPORT)
    return ast.unparse(ast.fix_missing_locations(tree))


def _leads(node: ast.stmt) -> bool:
    """True for the docstring of a module, and for imports from the future."""
    return isinstance(node, ast.Expr) or getattr(node, "module", None) == "__future__"


class _Marker(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self.module = module
        self.depth = 0  # of functions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        found = self.generic_visit(node)
        self.depth -= 1
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            found = getattr(node, field, None)
            if self.depth and isinstance(found, list):
                setattr(node, field, [part for one in found for part in (self._mark(one), one)])
        return node

    def _mark(self, node: ast.stmt) -> ast.stmt:
        inside = getattr(node, "body", None)
        end = inside[0].lineno - 1 if inside else node.end_lineno
        place = self.module, node.lineno, max(node.lineno, end or 0)
        return ast.copy_location(ast.parse(f"_reached.add({place!r})").body[0], node)
