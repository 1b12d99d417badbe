"""Raw sockets: what no HTTP library would send."""

from __future__ import annotations

import socket
import time
from http.client import HTTPResponse

import httpx
from tests.integration.server.live import LiveServer, ServerProcess

TASKS = "/api/v1/tasks"


def address(server: LiveServer | ServerProcess) -> tuple[str, int]:
    url = httpx.URL(server.url)
    assert url.port is not None
    return url.host, url.port


def connection(
    server: LiveServer | ServerProcess, *, receive_buffer: int | None = None
) -> socket.socket:
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(20)
    sock.connect(address(server))
    return sock


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *lines, "", ""]).encode()


def bearer(server: LiveServer, *scopes: str) -> str:
    return f"Authorization: Bearer {server.token(*scopes)}"


def answered(sock: socket.socket) -> int:
    """The status of an answer that is read to its end."""
    with HTTPResponse(sock) as answer:
        answer.begin()
        answer.read()
        return answer.status


def is_cut(sock: socket.socket, *, within: float = 15.0) -> bool:
    """Whether the server hangs up; what it says before is thrown away."""
    sock.settimeout(within)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def drip(sock: socket.socket, *, seconds: float, piece: bytes = b"x", pause: float = 0.01) -> None:
    """Send piece by piece; `OSError` once the server has hung up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sock.sendall(piece)
        time.sleep(pause)
