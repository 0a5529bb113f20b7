"""The lab course: every block of its pages, with the checks in them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from . import small

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"


def blocks(page: str) -> list[str]:
    """The blocks of Python of a page."""
    text = (COURSE / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class Course(small.WithCache):
    def work_through(self, page: str) -> None:
        names: dict[str, Any] = {}
        printed = io.StringIO()
        checks = 0
        for number, block in enumerate([*blocks("index.md"), *blocks(page)]):
            checks += block.count("assert ")
            with contextlib.redirect_stdout(printed):
                try:
                    exec(compile(block, f"{page}, block {number}", "exec"), names)
                except AssertionError:
                    self.fail(f"{page}: a check fails after this was printed:\n{printed.getvalue()}{block}")
        self.assertGreater(checks, 0)

    def test_a_policy(self) -> None:
        self.work_through("policy.md")

    def test_an_exit(self) -> None:
        self.work_through("exit.md")

    def test_an_interrupt_s_way(self) -> None:
        self.work_through("interrupt.md")

    def test_a_tlb_s_reach(self) -> None:
        self.work_through("tlb.md")

    def test_a_lock_s_storm(self) -> None:
        self.work_through("lock.md")

    def test_every_page_is_tried(self) -> None:
        tried = {"exit.md", "index.md", "interrupt.md", "lock.md", "policy.md", "tlb.md"}
        self.assertEqual({path.name for path in COURSE.iterdir()}, tried)
