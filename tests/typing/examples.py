"""What a type checker sees. `test_typing.py` runs mypy over this file and compares.

A line that ends in `# error: code` must be reported with that code, every other line must be fine.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, assert_type

from holdfast import (
    Batch,
    BatchContext,
    Call,
    Composite,
    Config,
    Context,
    Debounce,
    Handle,
    Holdfast,
    Link,
    Page,
    State,
    Task,
    Throttle,
    batch,
    chain,
    chord,
    exponential,
    group,
    init,
    list_tasks,
    result_of,
    submit_task,
    task,
    where,
)

app = Holdfast(url="memory://", lease="30s", queues=["a"])
Holdfast(leese="30s")  # error: call-arg
Holdfast(concurrency="many")  # error: arg-type


@app.task
def add(a: int, b: int = 2) -> int:
    return a + b


@app.task(queue="mail", priority="high", retry=exponential(5), lock="to:{to}")
async def mail(to: str, *, subject: str = "") -> bytes:
    return to.encode()


@app.task
def index(ctx: Context, pages: int) -> list[str]:
    ctx.progress(1, pages)
    return []


@app.task(executor="process", requires={"gpu"})
async def train(ctx: Context, epochs: int) -> float:
    return float(ctx.attempt + epochs)


@app.task(timeout=lambda: 5)  # error: call-overload, untyped-decorator
def bad_option() -> None: ...


@app.task(quue="mail")  # error: call-overload, untyped-decorator
def bad_name() -> None: ...


def submitting() -> None:
    assert_type(add.submit(1), Handle[int])
    assert_type(add.submit(1, b=2).result(timeout="5s"), int)
    assert_type(add.delay(1, 2), Handle[int])
    assert_type(mail.submit("ann", subject="hi"), Handle[bytes])
    assert_type(index.submit(3), Handle[list[str]])
    assert_type(train.submit(epochs=3), Handle[float])

    add.submit()  # error: call-arg
    add.submit("1")  # error: arg-type
    add.submit(1, c=3)  # error: call-arg
    add.delay("1")  # error: arg-type
    mail.submit("ann", "hi")  # error: call-arg
    mail.submit(5)  # error: arg-type
    index.submit("three")  # error: arg-type
    index.submit(pages=3, ctx=None)  # error: call-arg
    train.submit()  # error: call-arg
    add.submit(1).result().upper()  # error: attr-defined


def submitting_with_options() -> None:
    later = add.options(priority="high", delay="5m", unique_key="k", tags=["a"], expires="1h")
    assert_type(later.submit(1), Handle[int])
    assert_type(later.options(queue="b").submit(1, b=2).result(), int)
    assert_type(index.options(run_at=datetime(2030, 1, 1, tzinfo=UTC)).submit(3), Handle[list[str]])

    later.submit("1")  # error: arg-type
    later.submit(1, c=3)  # error: call-arg
    later.options(queue="b").submit()  # error: call-arg
    mail.options(owner="x").submit(to=5)  # error: arg-type
    index.options(idempotency_key="k").submit("three")  # error: arg-type
    add.options(dealy=5)  # error: call-arg
    add.options(max_retries="3")  # error: arg-type
    add.options(retry=lambda n: 5.0)  # error: arg-type


async def submitting_async() -> None:
    assert_type(await add.submit_async(1), Handle[int])
    assert_type(await (await mail.options(delay=5).submit_async("ann")), bytes)
    handle = await train.submit_async(3)
    assert_type(await handle, float)
    assert_type(await handle.status_async(), State)

    await add.submit_async("1")  # error: arg-type
    await train.options(delay=5).submit_async("three")  # error: arg-type


async def calling_directly(ctx: Context) -> None:
    assert_type(add(1, b=2), int)
    assert_type(await mail("ann"), bytes)
    assert_type(index(ctx, 3), list[str])

    add("1")  # error: arg-type
    await mail(5)  # error: arg-type
    mail("ann")  # error: unused-coroutine
    index(3)  # error: call-arg, arg-type


def submitting_many() -> None:
    assert_type(add.call(1), Call[int])
    assert_type(app.submit_many([add.call(1), add.options(delay=5).call(2)]), list[Handle[int]])

    add.call("1")  # error: arg-type
    mail.options(delay=5).call(subject="hi")  # error: call-arg
    app.submit_many([add])  # error: arg-type
    for handle in app.submit_many([add.call(1), mail.call("ann")]):
        assert_type(handle.result(), object)


def composing() -> None:
    assert_type(add.s(1), Link[int])
    assert_type(mail.options(delay=5).s(subject="hi"), Link[bytes])
    assert_type(chain(add.s(1), mail.s()), Composite[bytes])
    assert_type(chain(add.s(1), add.s(2), mail.s(), index.s()).submit(), Handle[list[str]])
    assert_type(group(add.s(1), add.s(2)).submit().result(), list[int])
    assert_type(group(add.s(n) for n in range(9)), Composite[list[int]])
    assert_type(add.map([1, 2, 3]).submit(), Handle[list[int]])
    assert_type(chord(add.map([1]), mail.s()).submit().result(), bytes)
    assert_type(chain(group(add.s(1)), train.s()), Composite[float])
    assert_type(batch(train.s(1), [add.s(1), mail.s("a")], body="before"), Composite[float])
    assert_type(batch(None, {"a": add.s(1)}).options(owner="x"), Composite[list[Any]])
    add.s(1).named("a").after("b", when="always")
    add.s(result_of("a"))

    chain(add.s(1), mail)  # error: call-overload
    chord(add.map([1]), add)  # error: arg-type
    chain(add.s(1), mail.s()).submit().result().bit_length()  # error: attr-defined
    group(add.s(1)).submit().result().upper()  # error: attr-defined
    add.s(1).options(queue="b")  # error: attr-defined


def taking_results() -> None:
    first = add.submit(1)
    assert_type(add.submit(first.result_ref()), Handle[int])
    add.options(after=[first, "id"], when="failure").submit(1)

    mail.submit(first.result_ref())  # error: arg-type
    add.options(after=5)  # error: arg-type


async def looking() -> None:
    assert_type(app.get("id"), Task)
    assert_type(app.list(state="dead_letter", limit=5), Page)
    assert_type(app.list(where(queue="mail")), Page)
    assert_type(await app.list_async(tag="a", after="cursor"), Page)
    assert_type(app.replay(name="x", pace=2.5), int)

    app.get(5)  # error: arg-type
    app.list(limit="5")  # error: arg-type
    app.list(quue="mail")  # error: call-arg
    app.pause()  # error: call-arg


@task
def greet(name: str) -> str:
    return name


@task(max_retries=3)
async def greet_async(ctx: Context, name: str) -> str:
    return name


async def the_functional_face() -> None:
    init(Config(url="memory://"))
    init(url="memory://", drain="5s")
    assert_type(await submit_task(greet, name="Ann", delay_seconds=5), Handle[str])
    assert_type(greet.submit("Ann"), Handle[str])
    assert_type(greet_async.submit("Ann"), Handle[str])
    assert_type(await list_tasks(state="queued"), list[Task])

    greet.submit(5)  # error: arg-type
    greet_async.submit()  # error: call-arg
    init(Config(urll="memory://"))  # error: call-arg
    await submit_task(print, "Ann")  # error: arg-type
    await submit_task(greet, "Ann", priority=5)  # error: arg-type


@app.task
def untyped(x, y=1):  # type: ignore[no-untyped-def] # unannotated handlers stay usable
    return x


@app.task
def takes_anything(x: Any) -> int:
    return 1


def submitting_the_untyped() -> None:
    untyped.submit(1, y=2)
    takes_anything.submit({"a": 1})


@app.task(debounce=Debounce("30s", key="{doc}", max="5m"))
def reindex(doc: int) -> None: ...


@app.task(throttle=Throttle("1h"), queue="mail")
def report(tenant: str) -> int:
    return 0


assert_type(reindex.submit(1), Handle[None])
assert_type(report.submit("acme"), Handle[int])


@app.task(debounce=Debounce("30s", keey="{doc}"))  # error: call-arg
def bad_debounce(doc: int) -> None: ...


@app.task(throttle=5.0 + 1j)  # error: call-overload, untyped-decorator
def bad_throttle() -> None: ...


@app.task(batch=Batch(max=100, within="5s"), queue="search")
def put_all(docs: list[str]) -> None: ...


@app.task(batch=Batch())
async def sizes(ctx: BatchContext, docs: list[bytes]) -> list[int | ValueError]:
    return [len(doc) for doc in docs[: len(ctx.members)]]


@task(batch=Batch())
async def plain_context(ctx: Context, docs: list[int]) -> list[str]:
    return [str(doc) for doc in docs]


assert_type(put_all.submit("a"), Handle[None])
assert_type(sizes.submit(b"a"), Handle[int])
assert_type(sizes.options(queue="x").submit(b"a"), Handle[int])
assert_type(plain_context.submit(1), Handle[str])
assert_type(put_all.call("a"), Call[None])
put_all(["a", "b"])
put_all.submit(["a"])  # error: arg-type
put_all.submit("a", "b")  # error: call-arg
sizes.submit("a")  # error: arg-type
put_all(1)  # error: arg-type


@app.task(batch=100)  # error: call-overload, untyped-decorator
def bad_batch(docs: list[str]) -> None: ...


@app.task(batch=Batch())  # error: arg-type
def no_list(doc: int) -> None: ...
