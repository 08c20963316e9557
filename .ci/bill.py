"""Check a bill of materials: `python .ci/bill.py FILE.cdx.json`.

Against the schema of CycloneDX, and against pyproject.toml: what raconvert needs is there, with
a version, a package URL and a licence, and raconvert depends on it.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[1]


def main(path: str) -> None:
    """Check the file; end with what is wrong."""
    text = Path(path).read_text(encoding="utf-8")
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"{path}: not by the schema of CycloneDX 1.6: {error}")
    bill = json.loads(text)
    root = bill["metadata"]["component"]
    parts = {plain(part["name"]): part for part in bill["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = {plain(re.split(r"[<>=\[; ]", line)[0]) for line in project["dependencies"]}
    if missing := needs - parts.keys():
        raise SystemExit(f"{path}: without {sorted(missing)}")
    told = {edge["ref"]: set(edge.get("dependsOn", ())) for edge in bill["dependencies"]}
    if absent := {parts[need]["bom-ref"] for need in needs} - told[root["bom-ref"]]:
        raise SystemExit(f"{path}: raconvert does not depend on {sorted(absent)}")
    for name, part in sorted(parts.items()):
        if not (part.get("version") and part.get("purl", "").startswith("pkg:pypi/")):
            raise SystemExit(f"{path}: {name} without a version or a package URL")
        if not part.get("licenses"):
            raise SystemExit(f"{path}: {name} without a licence")
    print(
        f"package: bill of materials by the schema of CycloneDX {bill['specVersion']}: "
        f"{root['name']} and {len(parts)} packages, each with its version and licence"
    )


def plain(name: str) -> str:
    """A name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1])
