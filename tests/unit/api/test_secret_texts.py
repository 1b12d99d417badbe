"""Secrets in texts that others write: exceptions, tracebacks, validators' words."""

from __future__ import annotations

import base64
from typing import Annotated, Any
from urllib.parse import quote_plus

import pytest
from pydantic import AfterValidator, BaseModel, SecretBytes, SecretStr

from holdfast import Holdfast, InvalidArguments
from holdfast.codec import hiding
from holdfast.core.task import TaskError
from holdfast.definitions.definition import Definition
from holdfast.worker.verdict import accept, judge

STARS = "**********"
PASSWORD = 'hunter2 & "söns"\n\\'


@pytest.fixture
def app() -> Holdfast:
    return Holdfast(url="memory://")


def raised(task: Definition[..., Any, Any], payload: bytes, error: BaseException) -> TaskError:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - it is judged
        judged: Any = judge(task, payload, caught)
    kept: TaskError = judged.error
    return kept


@pytest.mark.parametrize(
    "quoted",
    [
        PASSWORD,
        repr(PASSWORD),
        ascii({"a": PASSWORD}),
        f"https://x/?key={quote_plus(PASSWORD)}",
        '{"password": "hunter2 & \\"söns\\"\\n\\\\"}',
        f"the first line was {PASSWORD.splitlines()[0]}",
    ],
)
def test_a_secret_is_stars_in_message_and_traceback_however_it_is_quoted(
    app: Holdfast, quoted: str
) -> None:
    @app.task
    def login(user: str, password: SecretStr) -> None: ...

    kept = raised(login, login.call("anna-maria", SecretStr(PASSWORD)).payload, OSError(quoted))

    text = f"{kept.message}{kept.traceback}"
    assert "hunter2" not in text
    assert STARS in kept.message
    assert "Traceback" in text


def test_what_is_not_secret_stays_and_so_does_what_is_too_short(app: Holdfast) -> None:
    @app.task(secret_fields=["pin", "card.number"])
    def pay(user: str, pin: str, card: dict[str, Any]) -> None: ...

    payload = pay.call("anna", "abc", {"number": 4111222233334444, "holder": "anna"}).payload
    kept = raised(pay, payload, ValueError("anna abc 4111222233334444"))

    assert kept.message == f"anna abc {STARS}"


def test_causes_notes_groups_and_bytes_are_looked_at_too(app: Holdfast) -> None:
    @app.task
    def sign(key: SecretBytes, pem: SecretStr) -> None: ...

    payload = sign.call(SecretBytes(b"raw-key\xff-end"), SecretStr("-----KEY\nMIIabc\n")).payload
    error = ExceptionGroup("several", [KeyError(b"raw-key\xff-end"), ValueError("MIIabc")])
    error.add_note("with MIIabc and " + base64.b64encode(b"raw-key\xff-end").decode())
    error.__cause__ = LookupError("-----KEY\nMIIabc\n")
    kept = raised(sign, payload, error)

    assert "MIIabc" not in f"{kept.traceback}"
    assert "raw-key" not in f"{kept.traceback}"
    assert "cmF3LWtle" not in f"{kept.traceback}"


def test_a_secret_is_not_cut_in_two_before_it_is_found(app: Holdfast) -> None:
    @app.task
    def login(password: SecretStr) -> None: ...

    secret = "s3cret-" * 300
    kept = raised(login, login.call(SecretStr(secret)).payload, OSError(f"{'x' * 900}{secret}" * 5))

    assert "s3cret" not in f"{kept.message}{kept.traceback}"


def test_a_result_that_cannot_be_stored_does_not_tell_the_secret(app: Holdfast) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError("hunter2")

        __repr__ = __str__

    @app.task(secret_fields="password")
    def login(password: str) -> None: ...

    payload = login.call("hunter2").payload
    judged: Any = accept(login, payload, Odd())

    assert "hunter2" not in judged.error.message


def test_arguments_that_no_longer_fit_are_all_hidden(app: Holdfast) -> None:
    @app.task(name="f", secret_fields="password")
    def before(password: str, code: str) -> None: ...

    @Holdfast(url="memory://").task(name="f", secret_fields="password")
    def now(password: int, code: int) -> None: ...

    payload = before.call("hunter2", "abcdef").payload
    with pytest.raises(InvalidArguments) as misfit:
        now.load(payload)
    kept = raised(now, payload, misfit.value)

    assert "hunter2" not in kept.message
    assert "abcdef" not in kept.message


def test_a_validator_that_raises_anything_still_gets_a_verdict(app: Holdfast) -> None:
    def odd(text: str) -> str:
        if not text.startswith("ok"):
            raise KeyError(text)
        return text

    @app.task(name="f", secret_fields="password")
    def before(password: str) -> None: ...

    @Holdfast(url="memory://").task(name="f", secret_fields="password")
    def now(password: Annotated[str, AfterValidator(odd)]) -> None: ...

    payload = before.call("hunter2").payload
    with pytest.raises(KeyError) as strange:
        now.load(payload)

    assert raised(now, payload, strange.value).message == f"'{STARS}'"
    assert now.masked(payload) == {"password": STARS}


def test_a_validators_own_words_do_not_quote_the_secret_at_submit(app: Holdfast) -> None:
    def long_enough(secret: Any) -> Any:
        plain = secret if isinstance(secret, str) else secret.get_secret_value()
        raise ValueError(f"{plain} must have 12 characters")

    class Card(BaseModel):
        number: Annotated[SecretStr, AfterValidator(long_enough)]

    @app.task(secret_fields="pin")
    def pay(card: Card, pin: Annotated[str, AfterValidator(long_enough)]) -> None: ...

    with pytest.raises(InvalidArguments) as refused:
        pay.options().call_json({"card": {"number": "4111-secret"}, "pin": "abcd-secret"})

    assert "-secret" not in f"{refused.value}{refused.value.problems}"
    assert f"{STARS} must have 12 characters" in str(refused.value)


def test_a_text_in_which_to_look_takes_too_long_is_hidden(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hiding, "MOST_WORK", 100)

    @app.task
    def login(password: SecretStr) -> None: ...

    kept = raised(login, login.call(SecretStr("hunter2")).payload, OSError("hunter2" * 99))

    assert kept.message == kept.traceback == hiding.TOO_LONG


async def test_neither_history_nor_log_has_the_secret_of_a_task_that_failed(
    app: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_retries=0)
    async def on_the_loop(password: SecretStr) -> None:
        raise OSError(f"not {password.get_secret_value()}")

    @app.task(max_retries=0, secret_fields="password")
    def in_a_thread(password: str) -> None:
        raise OSError(f"not {password}")

    async with app:
        handles = [await on_the_loop.submit_async(SecretStr("hunter2"))]
        handles.append(await in_a_thread.submit_async("hunter2"))
        with caplog.at_level("INFO"):
            await app.run_worker(burst=True)

        for handle in handles:
            (attempt,) = (await handle.history_async()).attempts
            assert attempt.error is not None
            assert attempt.error.message == f"not {STARS}"
            assert "hunter2" not in (attempt.error.traceback or "")
    assert "hunter2" not in caplog.text
    assert caplog.text.count(f"OSError: not {STARS}") >= 2
