"""Writes partita/keys.py from docs/system.schema.json, which `partita reference --schema` writes.

    python3 python/generate.py            writes the file
    python3 python/generate.py --check    fails if the file is not what would be written
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parent / "docs" / "system.schema.json"
TARGET = HERE / "partita" / "keys.py"

#: Names of the classes by the place of their tables. A new table needs a name here.
NAMES = {
    "vm.NAME.terminals": "Terminals",
    "vm.NAME.experiment": "VmExperiment",
    "vm.NAME.disks.0": "Disk",
    "vm.NAME.disks.1": "Slice",
    "vm.NAME.network.1": "Card",
    "vm.NAME": "Vm",
    "disk.NAME.0": "SharedDisk",
    "disk.NAME.1": "ServedDisk",
    "switch.NAME": "Switch",
    "experiment": "Experiment",
    "": "SystemKeys",
}

PATH = "Takes a path from the system file's folder"

HEAD = '''"""Tables of a system file with their keys. Generated from docs/system.schema.json by python/generate.py.

A key's name has `_` where the file's has `-`. `None` leaves a key out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .table import Table
'''


class Generator:
    """Classes in the order in which they can be written: each after those that it names."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}

    def kind(self, place: str, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The type of a value as Python writes it, and what its check needs."""
        if "anyOf" in schema:
            parts = [self.kind(f"{place}.{index}", part) for index, part in enumerate(schema["anyOf"])]
            return " | ".join(kind for kind, _ in parts), {"any": [check for _, check in parts]}
        if schema["type"] == "object" and isinstance(schema.get("additionalProperties"), dict):
            name, check = self.kind(f"{place}.NAME", schema["additionalProperties"])
            bounds = {key: schema[key] for key in ("minProperties", "maxProperties") if key in schema}
            return f"Mapping[str, {name}]", {"tables": check, **bounds}
        if schema["type"] == "object":
            return self.table(place, schema), {"table": NAMES[place]}
        if schema["type"] == "array":
            name, check = self.kind(place, schema["items"])
            return f"Sequence[{name}]", {"each": check}
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]", {"words": tuple(schema["enum"])}
        if schema["type"] == "string":
            check = {"text": schema.get("pattern", "")}
            if PATH in schema.get("description", ""):
                check["path"] = True
            return "str", check
        if schema["type"] == "integer":
            return "int", {"number": (schema["minimum"], schema["maximum"])}
        if schema["type"] == "boolean":
            return "bool", {"truth": True}
        raise SystemExit(f"{place}: a schema of an unknown kind: {schema}")

    def table(self, place: str, schema: dict[str, Any]) -> str:
        """Writes the class of a table, after those of the tables in it, and returns its name."""
        if place not in NAMES:
            raise SystemExit(f"{place}: name the class of this table in NAMES")
        name = NAMES[place]
        lines = []
        required = schema.get("required", [])
        properties = sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
        for key, value in properties:
            kind, check = self.kind(f"{place}.{key}".removeprefix("."), value)
            is_optional = key not in required
            default = "default=None, " if is_optional else ""
            kind += " | None" if is_optional else ""
            lines.append(f"    {key.replace('-', '_')}: {kind} = field({default}metadata={{'key': {key!r}, 'check': {check!r}}})")
            lines.append(documentation(value.get("description", "")))
        about = place or "a system file"
        self.classes[name] = (
            f"\n\n@dataclass(frozen=True, kw_only=True)\nclass {name}(Table):\n"
            f'    """The keys of {about}."""\n\n' + "\n".join(lines) + "\n"
        )
        return name


def documentation(text: str) -> str:
    """A string that documents the field above it."""
    text = textwrap.fill(
        f'"""{text}', 120, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    # The text may end with a quotation mark.
    return text.replace("\\", "\\\\") + '\n    """'


def generate() -> str:
    """The text of keys.py."""
    generator = Generator()
    generator.table("", json.loads(SCHEMA.read_text()))
    names = ", ".join(f'"{name}"' for name in generator.classes)
    return HEAD + f"\n__all__ = [{names}]\n" + "".join(generator.classes.values())


def main() -> None:
    text = generate()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() != text:
            raise SystemExit("python/partita/keys.py is not what the schema says; run python3 python/generate.py")
    else:
        TARGET.write_text(text)


if __name__ == "__main__":
    main()
