"""The certificate of the local receiver, and the authority that signed it."""

import ssl
from pathlib import Path

import trustme


class Certificates:
    """A certificate for 127.0.0.1, localhost and another host, created once and kept in the directory."""

    def __init__(self, directory: Path, host: str = "127.0.0.1") -> None:
        self.ca_file = directory.resolve() / "ca.pem"
        self.server_file = directory.resolve() / "server.pem"
        if not self.server_file.exists():
            self._make(host)

    def server_context(self) -> ssl.SSLContext:
        """A TLS context for a server with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file)
        return context

    def _make(self, host: str) -> None:
        self.ca_file.parent.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.ca_file)
        certificate = authority.issue_cert(*dict.fromkeys(("127.0.0.1", "localhost", host)))
        self.server_file.touch(mode=0o600)
        certificate.private_key_and_cert_chain_pem.write_to_path(self.server_file)
