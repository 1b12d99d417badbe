"""Signs tokens as Google does for a service account, with keys of its own shown at a URL."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import crypt, jwt

KEY_ID = "a-key-of-the-tests"
ISSUER = "https://accounts.google.com"


class Identity:
    """A key, its certificate, and where that is shown. Nothing is made before it is asked for."""

    def __init__(self) -> None:
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.fetched = 0
        """How often somebody asked for the certificate."""

    def token(self, account: str, audience: str, **claims: object) -> str:
        """A token of that account for that audience; `claims` replace what it usually says."""
        now = int(time.time())
        said = {
            "iss": ISSUER,
            "aud": audience,
            "email": account,
            "email_verified": True,
            "sub": "1234567890",
            "iat": now,
            "exp": now + 3600,
            **claims,
        }
        signed = jwt.encode(self._signer, said)  # type: ignore[no-untyped-call] # theirs
        return str(signed, "ascii")

    @property
    def certs_url(self) -> str:
        """Where the certificate is shown, as Google shows its own."""
        if self._server is None:
            self._server = self._shown()
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
            self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}/certs"

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @cached_property
    def _signer(self) -> crypt.RSASigner:
        text = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        signer: crypt.RSASigner = crypt.RSASigner.from_string(text, KEY_ID)  # type: ignore[no-untyped-call] # theirs
        return signer

    @cached_property
    def _certificate(self) -> str:
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def _shown(self) -> ThreadingHTTPServer:
        identity = self

        class Show(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                identity.fetched += 1
                body = json.dumps({KEY_ID: identity._certificate}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return ThreadingHTTPServer(("127.0.0.1", 0), Show)
