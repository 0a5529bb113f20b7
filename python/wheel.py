"""Writes the package as a wheel (PEP 427), by the standard library alone. The same sources give the same bytes.

    python3 python/wheel.py FOLDER
"""

from __future__ import annotations

import base64
import hashlib
import sys
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: The earliest time that an archive can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def metadata(project: dict[str, object], version: str) -> str:
    """The file METADATA (core metadata 2.1) of what pyproject.toml says."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        "License: MIT OR Apache-2.0",
        "Description-Content-Type: text/markdown",
    ]
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    for extra, needs in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


def write(folder: Path) -> Path:
    """Writes the wheel into a folder."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names: dict[str, object] = {}
    exec((HERE / "partita" / "version.py").read_text(encoding="utf-8"), names)
    version = str(names["VERSION"])
    package = sorted(path for path in (HERE / "partita").iterdir() if path.suffix == ".py" or path.name == "py.typed")
    about = f"partita-{version}.dist-info"
    files = {f"partita/{path.name}": path.read_bytes() for path in package}
    files |= {f"{about}/licenses/{name}": (HERE.parent / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    files[f"{about}/METADATA"] = metadata(project, version).encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: partita\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{about}/RECORD"
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    files[record] = ("\n".join([*lines, f"{record},,"]) + "\n").encode()
    wheel = folder / f"partita-{version}-py3-none-any.whl"
    # Stored, as two versions of zlib may compress the same in two ways.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, TIME)
            member.external_attr = 0o100644 << 16
            member.create_system = 3
            archive.writestr(member, content)
    return wheel


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
