"""An app that has set up logging itself."""

from __future__ import annotations

import logging

from holdfast import Holdfast

logging.basicConfig(level=logging.INFO, format="MINE %(name)s %(task_id)s %(message)s")


class Marked(logging.Filter):
    """Gives records of other times the attribute that the format names."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.__dict__.setdefault("task_id", "-")
        return True


logging.getLogger().handlers[0].addFilter(Marked())

app = Holdfast()


@app.task(name="speaks")
def speaks() -> None:
    logging.getLogger("shop").info("hello")
