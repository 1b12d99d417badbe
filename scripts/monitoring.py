"""Write the rules for Prometheus that the code already says (`core.metrics`, `core.alerts`).

python scripts/monitoring.py            rewrite deploy/prometheus/holdfast.rules.yml
python scripts/monitoring.py --check    exit 1 if it is out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.core.alerts import RULES, Rule
from holdfast.core.metrics import METRICS, Kind, Metric

FILE = Path(__file__).resolve().parent.parent / "deploy/prometheus/holdfast.rules.yml"
HEAD = """\
# Made by scripts/monitoring.py from the tables of metrics and of rules in the code: `make docs`.
# Tested by holdfast.rules.test.yml: `promtool test rules holdfast.rules.test.yml`.
#
# Every server tells the numbers of the whole fleet, so of several servers the largest one counts.
# The recorded names are for looking; take rates of the scraped ones (`max(rate(holdfast_…[5m]))`),
# since the largest of several counters may shrink when its server leaves.
groups:
  - name: holdfast
    rules:
"""


def main(arguments: list[str]) -> int:
    fresh = HEAD + "".join(recordings()) + "".join(map(alert, RULES))
    if FILE.exists() and FILE.read_text() == fresh:
        return 0
    if "--check" in arguments:
        sys.stderr.write(f"out of date: {FILE.name}; run `make docs`\n")
        return 1
    FILE.write_text(fresh)
    return 0


def recordings() -> Iterator[str]:
    """A rule for each series of each metric."""
    for metric in METRICS:
        for ending, labels in series(metric):
            name = f"{metric.name}{ending}"
            by = f" by ({', '.join(labels)}) " if labels else ""
            yield f"      - record: {name}\n        expr: max{by}(holdfast_{name})\n"


def series(metric: Metric) -> list[tuple[str, tuple[str, ...]]]:
    if metric.kind is not Kind.HISTOGRAM:
        return [("", metric.labels)]
    return [("_bucket", (*metric.labels, "le")), ("_sum", metric.labels), ("_count", metric.labels)]


def alert(rule: Rule) -> str:
    lines = [f"- alert: {rule.name}", f"  expr: {json.dumps(rule.query)}"]
    lines += [f"  for: {rule.minutes}m"] if rule.minutes else []
    lines += [
        "  labels:",
        f"    severity: {rule.severity.value}",
        "  annotations:",
        f"    summary: {json.dumps(rule.title)}",
        f"    description: {json.dumps(rule.advice)}",
    ]
    return "".join(f"      {line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
