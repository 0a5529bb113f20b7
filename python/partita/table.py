"""A table of a system file as an object: what it may hold, and how it is written."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from .errors import InvalidSystem


class Tables(dict[str, Any]):
    """Named tables that cannot be changed, as whatever holds them was checked with them."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("a system cannot be changed; make another one by its method with_()")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Tables, (dict(self),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """Base of all tables. Every value is checked when an object is made; one error lists all mistakes."""

    def __post_init__(self) -> None:
        mistakes: list[str] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if "check" not in field.metadata or (value is None and field.default is None):
                continue
            kept = _checked(field.metadata["key"], value, field.metadata["check"], mistakes)
            object.__setattr__(self, field.name, kept)
        if mistakes:
            raise InvalidSystem("\n".join(mistakes))

    @classmethod
    def of(cls, document: Mapping[str, Any], **others: Any) -> Self:
        """The table that a TOML document describes. `others` are fields that are no keys of the file.

        Raises `InvalidSystem` with all mistakes.
        """
        keys = {field.metadata["key"]: field.name for field in dataclasses.fields(cls) if "key" in field.metadata}
        required = [
            field.metadata["key"]
            for field in dataclasses.fields(cls)
            if "key" in field.metadata and field.default is dataclasses.MISSING
        ]
        mistakes = [f"{key}: there is no such key in {cls.__name__}" for key in document if key not in keys]
        mistakes += [f"{key}: must be given" for key in required if key not in document]
        if mistakes:
            raise InvalidSystem("\n".join(mistakes))
        return cls(**{keys[key]: value for key, value in document.items()}, **others)

    def with_(self, **changes: Any) -> Self:
        """The same with other values, checked again."""
        return dataclasses.replace(self, **changes)

    def document(self, path: Callable[[str], str] = str) -> dict[str, Any]:
        """The table as a document of plain values. `path` is applied to names of files."""
        document: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if "key" not in field.metadata or value is None:
                continue
            if field.metadata["check"].get("path"):
                value = path(value)
            document[field.metadata["key"]] = _plain(value, path)
        return document


def _plain(value: Any, path: Callable[[str], str]) -> Any:
    if isinstance(value, Table):
        return value.document(path)
    if isinstance(value, Mapping):
        return {name: _plain(part, path) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part, path) for part in value]
    return value


def _checked(key: str, value: Any, check: Mapping[str, Any], mistakes: list[str]) -> Any:
    """The value as it is kept, once it was checked. Adds what is wrong to `mistakes`."""
    kind, bound = next(iter(check.items()))
    match kind:
        case "any":
            return _any(key, value, bound, mistakes)
        case "table":
            return _table(key, value, bound, mistakes)
        case "tables":
            return _tables(key, value, check, mistakes)
        case "each":
            if isinstance(value, str) or not isinstance(value, Sequence):
                mistakes.append(f"{key} = {value!r}: takes a list")
                return value
            return tuple(_checked(f"{key}[{index}]", part, bound, mistakes) for index, part in enumerate(value))
    wrong = None
    if kind == "words" and value not in bound:
        wrong = f"use one of {', '.join(bound)}"
    elif kind == "truth" and not isinstance(value, bool):
        wrong = "use True or False"
    elif kind == "number":
        least, most = bound
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            wrong = f"use a whole number, {least} to {most}"
    elif kind == "text":
        value = str(value) if isinstance(value, Path) else value
        if not isinstance(value, str):
            wrong = "use a text"
        elif not re.search(bound, value):
            wrong = f"use a text such as those that match {bound}"
    if wrong is not None:
        mistakes.append(f"{key} = {value!r}: {wrong}")
    return value


def _any(key: str, value: Any, checks: Sequence[Mapping[str, Any]], mistakes: list[str]) -> Any:
    all_found: list[list[str]] = []
    for check in checks:
        found: list[str] = []
        kept = _checked(key, value, check, found)
        if not found:
            return kept
        all_found.append(found)
    # The form that comes nearest is the one with the fewest mistakes.
    all_found.sort(key=len)
    mistakes.extend(all_found[0])
    return value


def _table(key: str, value: Any, name: str, mistakes: list[str]) -> Any:
    from . import keys

    table: type[Table] = getattr(keys, name)
    if isinstance(value, table):
        return value
    if isinstance(value, Mapping):
        try:
            return table.of(value)
        except InvalidSystem as error:
            mistakes.extend(f"{key}.{line}" for line in str(error).splitlines())
    else:
        mistakes.append(f"{key} = {value!r}: use an object of partita.{name}")
    return value


def _tables(key: str, value: Any, check: Mapping[str, Any], mistakes: list[str]) -> Any:
    if not isinstance(value, Mapping):
        mistakes.append(f"{key} = {value!r}: use a dictionary of names and tables")
        return value
    least, most = check.get("minProperties", 0), check.get("maxProperties", len(value))
    if not least <= len(value) <= most:
        mistakes.append(f"{key}: has {len(value)} tables; use {least} to {most}")
    return Tables({name: _checked(f"{key}.{name}", part, check["tables"], mistakes) for name, part in value.items()})


def toml(document: Mapping[str, Any]) -> str:
    """The document as TOML: plain values first, then each table below its name."""
    lines: list[str] = []
    _write(document, (), lines)
    return "\n".join(lines).strip() + "\n"


def _write(table: Mapping[str, Any], names: tuple[str, ...], lines: list[str]) -> None:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if names and (plain or not table):
        lines += ["", f"[{'.'.join(map(_key, names))}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            _write(value, (*names, key), lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # A basic string of TOML takes the escapes of JSON; DEL must be escaped as well.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
