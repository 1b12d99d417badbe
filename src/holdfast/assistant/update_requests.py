"""A request about tasks under work: its words, the task that they name, and questions to both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from holdfast.assistant.language.sentences import Sentence
from holdfast.assistant.language.stream import Stream
from holdfast.assistant.language.update_phrases import UpdateWords
from holdfast.assistant.old_schedules import zone_of_task
from holdfast.assistant.present import Present
from holdfast.assistant.targets import Mention, Tasks

Json = Any
_RECURRING: Final = frozenset({"every", "sub", "weekdays", "yearly", "ntimes", "nths", "monthdays"})


@dataclass(frozen=True)
class UpdateRequest:
    """One request under work."""

    sentence: Sentence
    words: UpdateWords
    mention: Mention
    replaces: bool
    tasks: Tasks
    focus: str | None
    now: datetime
    tz: str

    @property
    def s(self) -> Stream:
        return self.sentence.stream

    @property
    def free(self) -> list[int]:
        """Places outside the name of the task."""
        return [n for n in range(len(self.s.items)) if n not in self.mention.words]

    def has(self, *kinds: str) -> bool:
        """Whether a word of these kinds stands outside the name of the task."""
        return any(self.s.has(n, *kinds) for n in self.free)

    @property
    def changes(self) -> bool:
        """Whether small words alone say that something is to be otherwise from now on."""
        return self.replaces or self.has("instead", "op_mid", "enough", "too_much")

    def value(self, kind: str) -> Any:
        """The value of the first phrase of this kind."""
        return next((p.value for p in self.words.phrases if p.kind == kind), None)

    def present(self, task: Mapping[str, Json] | None) -> Present:
        """The present time where the task is."""
        zone = self.tz if task is None else zone_of_task(task, self.tz)
        return Present(instant=self.now.astimezone(UTC), zone=ZoneInfo(zone))

    @property
    def timed(self) -> bool:
        return bool(self.words.phrases)

    @property
    def in_focus(self) -> bool:
        """Whether a task was talked about before, and none is named."""
        known = any(str(each["id"]) == self.focus for each in self.tasks)
        return known and not self.mention.named

    @property
    def referred(self) -> bool:
        """Whether it says which task it means."""
        return self.words.has_pronoun or self.mention.named or self.has("all", "one_word")

    @property
    def referred_or_focused(self) -> bool:
        return self.referred or self.in_focus or self.has("task_noun") or not self.has_own_words

    @property
    def refers_first(self) -> bool:
        """Whether it opens with the task that it is about, after small words at most."""
        for at in range(len(self.s.items)):
            if at in self.mention.words or self.s.has(at, "pronoun"):
                return True
            if not self.s.has(at, "det", "lead", "filler", "small", "called"):
                return False
        return False

    @property
    def points_first(self) -> bool:
        """ "the yoga one …": opens with "the"."""
        first = next((n for n in self.free if not self.s.has(n, "lead", "filler", "comma")), 0)
        return self.s.has(first, "det")

    def ends_at(self, place: int) -> bool:
        """Whether nothing but politeness stands from there on."""
        s = self.s
        return all(
            s.has(n, "tail") or s.items[n].shape == "mark" for n in range(place, len(s.items))
        )

    @property
    def is_definite(self) -> bool:
        """ "the sales digest at 9:15": its whole title behind "the", and no recurrence."""
        if not self.mention.is_full or any(p.kind in _RECURRING for p in self.words.phrases):
            return False
        return self.s.number(min(self.mention.words) - 1, "det") == 1

    @property
    def spares_one(self) -> bool:
        """ "everything except the gym": more tasks than one, but not all."""
        spared = (self.s.text(n).startswith("everything ") for n in self.free)
        return self.mention.named and any(spared)

    @property
    def is_paused(self) -> bool:
        held = {str(t["id"]): str(t.get("status", "")).upper() for t in self.tasks}
        return any(held.get(each) == "PAUSED" for each in self.mention.ids) or self.has("all")

    @property
    def denies(self) -> bool:
        """Whether it says no to something: "no digest", "not tomorrow", but not "no, tomorrow"."""
        last = len(self.s.items) - 1
        while last > 0 and (self.s.has(last, "tail") or self.s.items[last].shape == "mark"):
            last -= 1
        return any(
            self.s.has(n, "negative")
            and ((n == last and n > 0) or (n < last and not self.s.has(n + 1, "comma", "filler")))
            for n in self.free
        )

    @property
    def names_a_run(self) -> bool:
        """Whether it speaks of single runs: "the next one", "tomorrow"."""
        days = any(p.kind in ("day", "within", "weekdays", "months") for p in self.words.phrases)
        return bool(self.words.days) or days or self.has("next_run")

    @property
    def drops_weekdays(self) -> bool:
        """ "drop Fridays": weekdays on which it is not to run any more."""
        found = [p for p in self.words.phrases if p.kind in ("weekdays", "except_weekdays")]
        lasting = self.has("instead", "every") or any(p.kind == "except_weekdays" for p in found)
        plural = any(
            self.s.has(n, "plural", "daygroup") for p in found for n in range(p.start, p.end)
        )
        return bool(found) and (lasting or plural) and not self.words.days

    @property
    def has_own_words(self) -> bool:
        """Whether words stand in it that could be something to do: "get up"."""
        read = {n for p in self.words.phrases for n in range(p.start, p.end)}
        small = ("filler", "lead", "tail", "comma", "and", "op_mid", "glue", "at", "on", "det",
                 "only", "op_now", "not", "same", "chat", "negative", "next_run")  # fmt: skip
        if any(self.s.word(n, "lead") in ("keep", "remind") for n in self.free):
            return True
        return any(
            self.s.items[n].shape in ("word", "han", "quote")
            and n not in read
            and not self.s.has(n, *small)
            and self.s.is_plain(n)
            for n in self.free
        )
