"""Templates, and the hostile texts that go through them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from html.parser import HTMLParser
from pathlib import Path

import pytest

from holdfast.delivery.channels.email import EmailChannel
from holdfast.delivery.templates import DEFAULTS, Templates, as_html, one_line
from holdfast.errors import ConfigError, InvalidOption
from holdfast.ports.channel import Message
from holdfast.settings import Settings

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "[click](javascript:alert(1))",
    "https://a.example/\"onmouseover='alert(1)'",
    "https://a.example/<script>x</script>",
    "{{owner}} {{#link}}x{{/link}} {{content}}",
    "{{",
    "title\r\nBcc: everyone@example.com",
    "title\nContent-Type: text/html\n\n<b>x</b>",
    "a\x00b\x1b[31mred\x7f",
    "\u2028Subject: x\u2029",
    "\u202eevil\u202c",
    "=?utf-8?q?=0D=0ABcc:_x?=",
    "x" * 10_000,
    "</title></head><body onload=alert(1)>",
    "&lt;script&gt;",
    ".\r\nMAIL FROM:<eve@example.com>\r\n",
]


def message(title: str = "News", content: str = "Hello", **more: str | None) -> Message:
    return Message(
        id="01a1efc4-5071-7a36-c942-78fcaf153b3e",
        channel="email",
        owner="ann",
        title=title,
        content=content,
        is_failure=False,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        unsubscribe_url="https://t.example/unsubscribe?token=a.b",
        **more,
    )


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_a_mail(text: str) -> None:
    channel = EmailChannel(
        Settings(smtp_url="smtp://mail.example", mail_from="robot@example.com"), Templates()
    )

    mail = channel.compose(message(text, text), "ann@example.com")
    read = message_from_bytes(mail.as_bytes(), policy=default)

    assert sorted(read.keys()) == sorted(
        ["Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "List-Unsubscribe",
         "List-Unsubscribe-Post", "MIME-Version", "Content-Type"]
    )  # fmt: skip
    assert read["To"] == "ann@example.com"
    page = read.get_body(("html",))
    assert page is not None
    tags = Tags()
    tags.feed(page.get_content())
    assert {tag for tag, _ in tags.found} <= {
        "html", "head", "meta", "title", "body", "h1", "div", "br", "a", "hr", "p", "small"
    }  # fmt: skip
    for tag, given in tags.found:
        assert not any(name.startswith("on") for name in given), (tag, given)
        assert re.match("https?://", given.get("href") or "https://")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_title_is_one_printable_line(text: str) -> None:
    line = one_line(text)

    assert line.isprintable()
    assert len(line) <= 200


def test_links_can_be_followed_and_their_marks_are_not_part_of_them() -> None:
    shown = as_html("See (https://a.example/x?a=1&b=2), or http://b.example.\nBye")

    assert shown == (
        'See (<a href="https://a.example/x?a=1&amp;b=2" rel="noopener noreferrer nofollow">'
        "https://a.example/x?a=1&amp;b=2</a>), or "
        '<a href="http://b.example" rel="noopener noreferrer nofollow">http://b.example</a>.'
        "<br>\nBye"
    )


def test_a_section_is_there_if_its_value_is() -> None:
    templates = Templates()
    templates["email.txt"] = (
        "{{#link}}at {{link}}{{#schedule}} of {{schedule}}{{/schedule}}{{/link}}!"
    )

    assert templates.render("email.txt", message()) == "!"
    assert templates.render("email.txt", message(link="here")) == "at here!"
    assert templates.render("email.txt", message(link="here", schedule="s")) == "at here of s!"
    assert templates.render("email.txt", message(schedule="s")) == "!"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("email.text", "x", r"no template 'email.text' Did you mean 'email.txt'\?"),
        ("email.txt", "{{titel}}", r"no \{\{titel\}\} here Did you mean 'title'\?"),
        ("email.txt", "{{#link}}", "is not closed"),
        ("email.txt", "{{/link}}", "closes what is not open"),
        ("email.txt", "{{#link}}{{#title}}{{/link}}{{/title}}", "closes what is not open"),
    ],
)
def test_a_template_that_could_not_work_is_refused(name: str, text: str, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        Templates()[name] = text


def test_a_folder_of_templates_stands_for_the_houses(tmp_path: Path) -> None:
    (tmp_path / "email.subject.txt").write_text("Shop: {{title}}")

    templates = Templates(str(tmp_path))

    assert templates.render("email.subject.txt", message()) == "Shop: News"
    assert templates["email.txt"] == DEFAULTS["email.txt"]
    with pytest.raises(ConfigError, match="there is no folder"):
        Templates(str(tmp_path / "nowhere"))
