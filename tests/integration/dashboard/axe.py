"""What axe says of a page, past the page's own policy."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from playwright.async_api import Page

AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text()
UNFOLD: Final = "document.querySelectorAll('details').forEach(fold => fold.open = true)"
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


async def violations(page: Page, scheme: str) -> list[str]:
    """What axe finds; of the dark, only how it is coloured, as all else is the same."""
    await page.evaluate(AXE)
    rules = RULES if scheme == "light" else ["color-contrast"]
    found: dict[str, Any] = await page.evaluate(
        "rules => axe.run(document, {runOnly: rules})", rules
    )
    return [
        f"{each['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
