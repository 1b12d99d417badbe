"""Redis's protocol, as it is written."""

from __future__ import annotations

import pytest

from holdfast.dispatch.redis.resp import ErrorReply, Push, Reader, Reply, command


def test_a_command_is_a_list_of_sized_texts() -> None:
    assert command("SET", "ä", 7, b"\x00") == (
        b"*4\r\n$3\r\nSET\r\n$2\r\n\xc3\xa4\r\n$1\r\n7\r\n$1\r\n\x00\r\n"
    )


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        (b"+OK\r\n", b"OK"),
        (b":-12\r\n", -12),
        (b"$5\r\na\r\nbc\r\n", b"a\r\nbc"),
        (b"$0\r\n\r\n", b""),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"_\r\n", None),
        (b"#t\r\n", True),
        (b",1.5\r\n", 1.5),
        (b"*0\r\n", []),
        (b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", [1, [b"a"]]),
        (b"%1\r\n+proto\r\n:3\r\n", [b"proto", 3]),
        (b"~1\r\n:1\r\n", [1]),
        (b"=6\r\ntxt:ab\r\n", b"txt:ab"),
        (b"|1\r\n+ttl\r\n:3\r\n:7\r\n", 7),
    ],
)
def test_replies_are_understood_however_they_are_cut(data: bytes, reply: Reply) -> None:
    whole, pieces = Reader(), Reader()

    assert whole.feed(data + b":1\r\n") == [reply, 1]
    assert [each for n in range(len(data)) for each in pieces.feed(data[n : n + 1])] == [reply]


def test_refusals_and_calls_are_told_from_answers() -> None:
    refused, long, call = Reader().feed(
        b"-NOSCRIPT No such\r\n!7\r\nMOVED 1\r\n>3\r\n+message\r\n+channel\r\n+1\r\n"
    )

    assert isinstance(refused, ErrorReply)
    assert isinstance(long, ErrorReply)
    assert (refused.code, str(refused), long.code) == ("NOSCRIPT", "NOSCRIPT No such", "MOVED")
    assert isinstance(call, Push)
    assert call == [b"message", b"channel", b"1"]


def test_what_is_no_redis_is_refused() -> None:
    with pytest.raises(ValueError, match="this is no Redis"):
        Reader().feed(b"HTTP/1.1 400 Bad Request\r\n")
