"""The receiver of the deliveries benchmark: an nginx on loopback that answers only with 200."""

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BenchError
from tests.stack.certificates import Certificates
from tests.stack.ports import free_port, is_free

PATIENCE_SECONDS = 10

# Keeps connections for as long as any sender wants them. Writes no log, which would cost more than the responses.
_CONFIGURATION = """
daemon off;
pid nginx.pid;
error_log nginx.log warn;
worker_processes 1;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    default_type application/json;
    keepalive_requests 100000000;
    keepalive_timeout 300s;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:sessions:10m;
        return 200;
    }}
    server {{
        listen 127.0.0.1:{status_port};
        stub_status;
    }}
}}
"""


class Nginx:
    """A running server; `url` is its address, and any path below it works."""

    def __init__(self, port: int, status_port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self._status_url = f"http://127.0.0.1:{status_port}/"

    def requests(self) -> int:
        """Returns how many requests nginx has answered, including those of this method."""
        with urllib.request.urlopen(self._status_url, timeout=5) as answer:
            return int(answer.read().split()[9])


@contextmanager
def nginx(directory: Path, certificates: Certificates) -> Iterator[Nginx]:
    """Runs a server in that directory, with the certificate for 127.0.0.1.

    Raises BenchError if it does not start.
    """
    program = _program()
    directory.mkdir(parents=True, exist_ok=True)
    port, status_port = free_port(), free_port()
    configuration = directory / "nginx.conf"
    certificate = certificates.ca_file.with_name("server.pem")
    configuration.write_text(_CONFIGURATION.format(port=port, status_port=status_port, certificate=certificate))
    log = directory / "nginx.log"
    command = [program, "-p", f"{directory}/", "-e", str(log), "-c", str(configuration)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        ends = time.monotonic() + PATIENCE_SECONDS
        while is_free(port) or is_free(status_port):
            if process.poll() is not None or time.monotonic() > ends:
                raise BenchError(f"nginx did not start:\n{log.read_text() if log.exists() else ''}")
            time.sleep(0.02)
        yield Nginx(port, status_port)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


def _program() -> str:
    """Returns the path of nginx, and installs nginx first if needed and possible. Raises BenchError."""
    if (found := _found()) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _found()
    if found is None:
        raise BenchError(
            "The deliveries benchmark needs nginx: apt-get install nginx (as root it tries that itself, and could not)."
        )
    return found


def _found() -> str | None:
    return shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))


def _install() -> None:
    # RUNLEVEL=1 keeps the package from starting a server of its own on port 80.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in ("update", "install -y --no-install-recommends nginx"):
        subprocess.run(["apt-get", *command.split()], env=environment, capture_output=True, check=False)
