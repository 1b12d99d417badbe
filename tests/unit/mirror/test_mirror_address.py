"""`firestore_url` says where, and is refused with what is wrong with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.errors import ConfigError
from holdfast.mirror.address import MirrorAddress, parse_firestore_url
from holdfast.settings import Settings
from holdfast.wiring import open_mirror


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("firestore://shop", MirrorAddress(project="shop")),
        ("firestore://shop/", MirrorAddress(project="shop")),
        ("firestore://shop/(default)", MirrorAddress(project="shop")),
        ("firestore://shop/eu", MirrorAddress(project="shop", database="eu")),
        (
            "firestore://shop?prefix=tenants/acme",
            MirrorAddress(project="shop", collection="tenants/acme/tasks"),
        ),
    ],
)
def test_the_url_names_project_database_and_place(url: str, address: MirrorAddress) -> None:
    assert parse_firestore_url(url) == address


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://shop", "expected firestore://project"),
        ("firestore:///eu", "expected firestore://project"),
        ("firestore://shop/eu/west", "expected firestore://project"),
        ("firestore://shop?prefx=a/b", "no such word: 'prefx'"),
        ("firestore://shop?prefix=tenants", "expected the path of a document"),
        ("firestore://shop?prefix=a//b/c", "expected the path of a document"),
    ],
)
def test_a_wrong_url_is_refused_with_what_is_wrong(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"firestore_url: .*{problem}"):
        parse_firestore_url(url)


def test_without_the_setting_there_is_no_mirror() -> None:
    assert open_mirror(Settings()) is None


def test_without_the_client_library_the_extra_is_named() -> None:
    script = (
        "import sys\n"
        "sys.modules['google.cloud.firestore_v1'] = None\n"
        "sys.modules['google'] = None\n"
        "from holdfast.settings import Settings\n"
        "from holdfast.wiring import open_mirror\n"
        "open_mirror(Settings(firestore_url='firestore://shop'))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "pip install 'holdfast[firestore]'" in done.stderr
