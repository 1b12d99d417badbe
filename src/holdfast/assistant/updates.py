"""Requests about tasks that exist: which operation, on which task, with which result.

`read_update` answers None for a request that is no update; then it is read as a new task. What it
cannot account for word by word is no update, unless it clearly points at a task: then it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from holdfast.assistant.language.sentences import Sentence
from holdfast.assistant.language.stream import Stream
from holdfast.assistant.language.trimming import without_asides, without_old_values
from holdfast.assistant.language.update_phrases import may_be_update, read_update_words
from holdfast.assistant.plan import Refused, refusal
from holdfast.assistant.renaming import new_title
from holdfast.assistant.rescheduling import rescheduled, says_amount, says_bare_time
from holdfast.assistant.stopping import changed_delivery, paused, skipped
from holdfast.assistant.targets import (
    ALL,
    Mention,
    Tasks,
    asks_about_tasks,
    find_mention,
    names_task,
    with_titles_apart,
    wonders,
)
from holdfast.assistant.update_requests import UpdateRequest

Json = Any
_FOR_ALL: Final = ("pause", "resume", "cancel", "run_now", "deliver", "skip")
_MOVES: Final = ("change", "move", "shift", "postpone", "push", "delay", "bump", "push back")
_STOPS: Final = ("pause", "resume", "cancel", "skip")
_UNKNOWN: Final = "unknown"
"""An operation on a task that does not exist, or on one that is not clear."""
_SCHEDULE: Final = frozenset({"every", "sub", "weekdays", "yearly", "ntimes"})


def read_update(
    sentence: Sentence, tasks: Tasks, focus: str | None, now: datetime, tz: str
) -> dict[str, Json] | None:
    """The update that a request asks for, a refusal, or None if it asks for none."""
    if not (tasks or may_be_update(sentence.stream)):
        return None
    sentence = with_titles_apart(sentence, tasks)
    whole = find_mention(sentence.stream, tasks, focus)
    if asks_about_tasks(sentence, whole):
        return refusal("question").mapping()
    trimmed = without_old_values(sentence)
    replaces = trimmed is not sentence
    request = _request(trimmed, tasks, focus, now, tz, whole, replaces)
    operation = _operation(request)
    hurries = operation == "reschedule" and request.has("op_now")  # "don't wait for Monday, …"
    if operation in (None, _UNKNOWN) or hurries:
        shorter = without_asides(trimmed, request.mention.words)
        if shorter is not trimmed:
            second = _request(shorter, tasks, focus, now, tz, whole, replaces)
            found = _operation(second)
            if found is not None:
                request, operation = second, found
    if operation is None:
        asked = whole.named and sentence.stream.pack.name == "en" and wonders(sentence)
        return refusal("no_target").mapping() if asked else None
    return _answer(request, operation)


def points_at_a_task(sentence: Sentence, tasks: Tasks, focus: str | None) -> bool:
    """Whether a request that was understood in no other way speaks of a task that exists."""
    s = sentence.stream
    mention = find_mention(s, tasks, focus)
    kinds = ("points_at", "one_word") if mention.named else ("points_at",)
    if any(s.has(n, *kinds) for n in range(len(s.items))):
        return True
    words = read_update_words(s, mention.words)
    if mention.is_full and (words.verb is not None or not words.leftover):
        return True
    return words.has_pronoun and len(words.leftover) <= 1 and bool(tasks) and not mention.named


def _request(
    sentence: Sentence,
    tasks: Tasks,
    focus: str | None,
    now: datetime,
    tz: str,
    whole: Mention,
    replaces: bool,
) -> UpdateRequest:
    mention = find_mention(sentence.stream, tasks, focus)
    if whole.named and not mention.named:
        mention = Mention(whole.ids, frozenset(), named=True)
    sentence = _without_the_number_one(sentence, mention.words)
    words = read_update_words(sentence.stream, mention.words)
    return UpdateRequest(sentence, words, mention, replaces, tasks, focus, now, tz)


def _without_the_number_one(sentence: Sentence, named: frozenset[int]) -> Sentence:
    """ "the dentist one on the 20th": no 1st and 20th."""
    s = sentence.stream
    places = [n for n in range(len(s.items)) if s.has(n, "one_word") and n - 1 in named]
    if not places:
        return sentence
    items = list(s.items)
    for n in places:
        kinds = {kind: value for kind, value in items[n].kinds.items() if kind != "num"}
        items[n] = replace(items[n], kinds=kinds)
    return Sentence(sentence.text, Stream(items, s.pack))


def _operation(request: UpdateRequest) -> str | None:
    """The operation; None where the request is a task of its own."""
    words = request.words
    recurs = any(p.kind in _SCHEDULE for p in words.phrases)
    near = request.referred or (request.in_focus and not recurs)
    known = words.leads or (not words.leftover and near)
    said = words.operation if known else None
    if words.reminds:
        if words.leftover or not request.in_focus or request.value("offset") is not None:
            return None
        return "reschedule" if says_amount(request) is not None or request.changes else None
    if _renames(request, said):
        return "rename"
    if said == "rename":
        return _UNKNOWN if request.has("one_word", "task_noun") else None
    if words.leftover:
        return _UNKNOWN if _names_no_task(request, said) else None
    if said in _STOPS and request.spares_one:
        return _UNKNOWN
    if _is_new(request, said):
        return None
    if words.has_channels and not request.timed and _is_about_channels(request):
        return "deliver"
    return _held(request, said) or _of_runs(request, said)


def _of_runs(request: UpdateRequest, said: str | None) -> str | None:
    """Skips, extra runs, and other times."""
    if _leaves_out(request, said):
        return "skip"
    now = request.has("op_now") and not request.timed and request.referred
    if said in (None, "deliver") and now:
        return "run_now"
    if said is None:
        dropped = request.denies and request.drops_weekdays and request.referred
        return "reschedule" if dropped or _says_other_time(request) else None
    if said == "deliver":
        if says_amount(request) is not None:
            return "reschedule" if request.referred_or_focused else None
        again = request.words.has_pronoun or request.changes or request.has("one_word")
        return "reschedule" if request.timed and again else None
    return _by_time(request, said)


def _is_new(request: UpdateRequest, said: str | None) -> bool:
    """Whether it opens with a schedule and goes on with what to do: "every day at 9 run …"."""
    words = request.words
    if request.changes or request.denies or request.has("one_word", "called"):
        return False
    if says_amount(request) is not None:
        return False
    if not request.mention.named or request.has("points_at"):
        return False
    if request.mention.is_full and request.has("add_channel"):
        return False
    recurs = any(p.kind in _SCHEDULE for p in words.phrases)
    sends = said in ("deliver", "run_now", None)
    return recurs and sends and not request.has("only", "op_now")


def _renames(request: UpdateRequest, said: str | None) -> bool:
    has, words, s = request.has, request.words, request.s
    referred = words.has_pronoun or request.mention.named or has("rename_noun")
    if words.operation == "rename" and words.verb is not None and not words.leads:
        said = "rename" if s.has(words.verb + 1, "pronoun", "rename_to") else said
    if said == "rename" and words.verb is not None:
        if any(p.start < words.verb for p in words.phrases):
            return False  # "at six, call Bob"
        if s.pack.name in ("es", "fr") and not (request.mention.named or has("rename_noun")):
            return s.has(words.verb, "pronoun")  # "appelle-le", but not "appelle la banque"
        return referred or (request.in_focus and s.has(words.verb + 1, "rename_to"))
    if not referred:
        return False
    if words.leftover and not (words.leads or words.has_pronoun or request.mention.named):
        return False  # "print 30 name tags"
    if has("rename_noun"):
        return said in ("reschedule", None) and words.operation in (None, "reschedule", "rename")
    return has("called") and request.refers_first


def _held(request: UpdateRequest, said: str | None) -> str | None:
    """Pauses and resumptions that other words than the verb say."""
    words, has = request.words, request.has
    ends = any(p.kind in ("until", "length") for p in words.phrases)
    moves = said == "reschedule" and request.timed
    if has("hold_words"):
        return "resume" if said == "resume" else "pause"
    if has("back_on") and not moves and said in (None, "reschedule", "resume", "run_now"):
        return "resume"
    puts_off = words.verb is not None and request.s.text(words.verb) == "put"
    if has("turn_off") and said in ("reschedule", None) and not request.timed and not puts_off:
        said = "pause"
    if said == "pause" and has("for_good"):
        return "cancel"
    if said in ("cancel", "skip", None) and (ends or has("for_now")) and not words.has_channels:
        stops = said is not None or has("negative")
        return "pause" if stops and request.referred_or_focused else None
    if has("again") and not has("op_now") and not request.timed and said in ("run_now", None):
        running = said is not None or request.referred
        return "resume" if running and request.is_paused else None
    return "pause" if said == "pause" else None


def _is_about_channels(request: UpdateRequest) -> bool:
    """Whether channels change: of a task that is named, or by words such as "only"."""
    if request.referred:
        return True
    return request.has("only", "enough", "instead", "add_channel", "remove_channel",
                       "all_channels", "op")  # fmt: skip


def _leaves_out(request: UpdateRequest, said: str | None) -> bool:
    """ "not tomorrow", "no digest on Friday", "I don't need it tomorrow"."""
    denied = request.denies and said in (None, "run_now", "deliver", "cancel", "skip")
    if not (denied or said in ("cancel", "skip")) or not request.referred_or_focused:
        return False
    if request.drops_weekdays:
        return False
    return request.names_a_run


def _says_other_time(request: UpdateRequest) -> bool:
    """Whether a request without a verb says when a task is to run from now on."""
    words, has = request.words, request.has
    amount = says_amount(request) is not None
    timed = request.timed or amount or says_bare_time(request) is not None
    if not timed:
        return False
    if request.changes or amount or has("points_at"):
        return True
    if request.mention.named:
        moved = _is_moved_to(request) or (request.mention.is_full and has("add_channel"))
        moved = moved or has("one_word", "only", "same", "op_now")
        return moved or request.is_definite
    return request.in_focus and (words.has_pronoun or not request.has_own_words)


def _is_moved_to(request: UpdateRequest) -> bool:
    """ "dentist to March 15"."""
    behind = max(request.mention.words, default=-1) + 1
    return request.s.has(behind, "range") and behind > 0 and request.timed


def _by_time(request: UpdateRequest, said: str) -> str | None:
    words, has = request.words, request.has
    timed = request.timed
    referred = request.referred or has("task_noun")
    moves = timed or says_amount(request) is not None or says_bare_time(request) is not None
    match said:
        case "run_now":
            if request.changes and moves and not has("op_now"):
                return "reschedule"
            if not request.referred and not (has("op_now") and not timed):
                return None
            amount = says_amount(request) is not None
            return "run_now" if not amount and (has("op_now") or not timed) else "reschedule"
        case "cancel" | "skip" if request.drops_weekdays and request.referred_or_focused:
            return "reschedule"
        case "cancel":
            return None if timed and not referred and not words.has_pronoun else "cancel"
        case "reschedule" if not moves and has("op_now") and request.s.pack.name != "en":
            return "run_now" if request.referred else None
        case "reschedule" if not moves:
            return "reschedule" if request.changes or words.has_pronoun else None
        case "reschedule":
            return said if referred or request.changes or _is_strong(request) else None
        case _:
            return said


def _is_strong(request: UpdateRequest) -> bool:
    """Verbs that need no object to speak of a task: "postpone to Friday", "改到下午5点"."""
    verb = request.words.verb
    text = "" if verb is None else request.s.text(verb)
    return text not in ("make", "set", "turn", "push", "put", "move", "shift", "switch")


def _names_no_task(request: UpdateRequest, said: str | None) -> bool:
    """Whether words are left over that name a task which does not exist, or a second one."""
    words = request.words
    if words.verb is None or said is None:
        return request.has("one_word") and not request.mention.named and request.points_first
    if request.tasks and words.leads and not request.timed and said in _STOPS:
        return True  # "cancel the yoga class", which is none of the tasks
    if words.leads and said == "reschedule" and _changes_time(request):
        return True  # "change the swim lesson to 5pm", which is none either
    if request.mention.named:
        return all(names_task(request.s, n, request.tasks) for n in words.leftover)
    if request.s.text(words.verb) == "reschedule":
        return True
    if request.has("task_noun", "one_word"):
        return said in ("pause", "resume", "skip", "reschedule") or not request.timed
    owned = not request.timed or bool(words.days)
    return said in ("pause", "resume", "skip") and owned


def _changes_time(request: UpdateRequest) -> bool:
    """ "change … to 5pm": a verb of change right before a new time, and nothing behind it."""
    s, words = request.s, request.words
    if s.pack.name != "en" or words.verb is None or s.text(words.verb) not in _MOVES:
        return False
    last = words.phrases[-1] if words.phrases else None
    first = words.phrases[0].start if words.phrases else 0
    return last is not None and s.text(first - 1) == "to" and request.ends_at(last.end)


def _answer(request: UpdateRequest, operation: str) -> dict[str, Json]:
    target = _target(request, operation)
    if target is None or operation == _UNKNOWN:
        return refusal("no_target").mapping()
    task = next((t for t in request.tasks if str(t["id"]) == target), None)
    try:
        result = _result(request, operation, task)
    except Refused as refused:
        return refused.refusal.mapping()
    if result.get("kind") == "refuse":
        return result
    return {"kind": "update", "op": operation, "target": target, **result}


def _target(request: UpdateRequest, operation: str) -> str | None:
    if not request.tasks:
        return None
    if request.has("all") and not request.mention.named:
        return ALL if operation in _FOR_ALL else None
    return request.mention.ids[0] if len(request.mention.ids) == 1 else None


def _result(
    request: UpdateRequest, operation: str, task: Mapping[str, Json] | None
) -> dict[str, Json]:
    match operation:
        case "pause":
            return paused(request, task)
        case "skip":
            return skipped(request, task)
        case "deliver":
            return changed_delivery(request, task)
        case "rename":
            title = new_title(request.sentence, request.mention.words)
            if not title:
                raise Refused("no_purpose", "purpose", "target")
            return {"title": title}
        case "reschedule":
            assert task is not None
            return rescheduled(request, task)
        case _:
            return {}
