"""Real HTTP receivers of deliveries: a webhook, a push service with a browser behind it, and FCM.

Each checks what it gets as the real one would: signatures, tokens, encryption.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

import http_ece
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature


class Request(NamedTuple):
    """What was posted."""

    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, bytes]


class Receiver(ThreadingHTTPServer):
    """Answers with the statuses it was given, 200 after that, each after `delay` seconds."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[Request] = []
        self.statuses: list[int] = []
        self.delay = 0.0
        self.url = f"http://127.0.0.1:{self.server_port}"

    def answer(self, request: Request) -> Answer:
        return (self.statuses.pop(0) if self.statuses else 200), b""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(self.path, dict(self.headers.items()), body)
        self.server.got.append(request)
        time.sleep(self.server.delay)
        status, said = self.server.answer(request)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None: ...


R = TypeVar("R", bound=Receiver)


@contextmanager
def running(receiver: R) -> Iterator[R]:
    """Let it answer as long as one is inside."""
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()
        thread.join()


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def padded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Browser(Receiver):
    """A push service and a browser that has subscribed to it: checks VAPID, decrypts."""

    def __init__(self) -> None:
        super().__init__()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = b"0123456789abcdef"
        self.shown: list[Any] = []
        self.claims: list[Any] = []

    @property
    def subscription(self) -> dict[str, Any]:
        point = self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        keys = {"p256dh": unpadded(point), "auth": unpadded(self._auth)}
        return {"endpoint": f"{self.url}/push/1", "keys": keys}

    def answer(self, request: Request) -> Answer:
        if self.statuses:
            return self.statuses.pop(0), b""
        scheme, _, rest = request.headers["Authorization"].partition(" ")
        assert scheme == "vapid"
        words = dict(part.strip().split("=", 1) for part in rest.split(","))
        self.claims.append(_checked_jwt(words["t"], words["k"]))
        clear = http_ece.decrypt(
            request.body, private_key=self._key, auth_secret=self._auth, version="aes128gcm"
        )
        self.shown.append(json.loads(clear))
        return 201, b""


def _checked_jwt(token: str, key: str) -> Any:
    head, claims, signature = token.split(".")
    assert json.loads(padded(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = padded(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), padded(key))
    public.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(padded(claims))


class Fcm(Receiver):
    """FCM and the token endpoint of its project: `problems` are answered for device tokens."""

    def __init__(self) -> None:
        super().__init__()
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.problems: dict[str, tuple[int, str]] = {}
        self.pushed: list[Any] = []
        self.tokens_made = 0
        self.revoked: set[str] = set()

    @property
    def credentials(self) -> str:
        """The JSON of a service account that this knows."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        account = {
            "type": "service_account",
            "project_id": "shop-1",
            "private_key_id": "k1",
            "private_key": pem.decode(),
            "client_email": "push@shop-1.iam.gserviceaccount.com",
            "token_uri": f"{self.url}/token",
        }
        return json.dumps(account)

    def answer(self, request: Request) -> Answer:
        if request.path == "/token":
            return self._token(request)
        assert request.path == "/v1/projects/shop-1/messages:send"
        given = request.headers["Authorization"].removeprefix("Bearer ")
        if given in self.revoked or not given.startswith("ya29."):
            return _google_error(401, "UNAUTHENTICATED", None)
        message = json.loads(request.body)["message"]
        device = message["token"]
        if device in self.problems:
            status, code = self.problems[device]
            return _google_error(status, "NOT_FOUND" if status == 404 else code, code)
        self.pushed.append(message)
        return 200, json.dumps({"name": f"projects/shop-1/messages/{len(self.pushed)}"}).encode()

    def _token(self, request: Request) -> Answer:
        form = parse_qs(request.body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        head, claims, signature = form["assertion"][0].split(".")
        self._key.public_key().verify(
            padded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        said = json.loads(padded(claims))
        assert said["iss"] == "push@shop-1.iam.gserviceaccount.com"
        assert said["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        assert said["aud"] == f"{self.url}/token"
        self.tokens_made += 1
        token = {"access_token": f"ya29.{self.tokens_made}", "expires_in": 3599}
        return 200, json.dumps({**token, "token_type": "Bearer"}).encode()


def _google_error(status: int, word: str, code: str | None) -> Answer:
    kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    details = [] if code is None else [{"@type": kind, "errorCode": code}]
    error = {"code": status, "message": f"refused: {word}", "status": word, "details": details}
    return status, json.dumps({"error": error}).encode()
