"""Reads the settings of deliveries: each takes what somebody gave, or raises `ValueError`."""

from __future__ import annotations

import re

from holdfast.core.mail_address import parse_smtp_url


def smtp_url(value: object) -> str:
    parse_smtp_url(value)
    return str(value)


def public_url(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        raise ValueError(f"expected a URL such as 'https://tasks.example.com', got {value!r}")
    return value.rstrip("/")


def text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text that is not empty")
    return value


def vapid_key(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{43}=?", value):
        raise ValueError("expected a P-256 private key: 32 bytes in base64url")
    return value


def vapid_subject(value: object) -> str:
    if isinstance(value, str) and value.startswith(("mailto:", "https://")):
        return value
    raise ValueError(f"expected 'mailto:…' or 'https://…', got {value!r}")
