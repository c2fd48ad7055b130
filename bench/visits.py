"""Page visits as by a browser: how long each page takes, and how many statements."""

import gzip
import re
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from urllib.parse import urlencode

from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.sites import Site, Tell
from bench.statements import logged_since, logging

PASSWORD = "correct horse battery staple"
MOST_MEDIAN_MS, MOST_P95_MS, MOST_STATEMENTS = 100, 200, 12
ASKED = 30


class Browser:
    """A browser that keeps its connection and its cookies."""

    def __init__(self, site: Site, email: str | None) -> None:
        self.connection = HTTPConnection("127.0.0.1", site.stack.port, timeout=60)
        self.cookie = ""
        if email:
            token = re.search(r'csrf_token" value="([^"]+)', self.get("/sign-in")[1].decode())
            fields = {"csrf_token": token and token[1], "email": email, "password": PASSWORD}
            status, _ = self._ask("POST", "/sign-in", urlencode(fields))
            if status != 303:
                raise BenchError(f"{email} could not sign in: {status}")

    def get(self, path: str) -> tuple[float, bytes]:
        """Returns the seconds that the page took, and its content, decompressed.

        Raises BenchError unless the status is 200 or 303.
        """
        began = time.perf_counter()
        status, content = self._ask("GET", path)
        seconds = time.perf_counter() - began
        if status not in (200, 303):
            raise BenchError(f"{path}: {status} {content[:500].decode(errors='replace')}")
        return seconds, content

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        headers = {"Cookie": self.cookie, "Accept": "text/html", "Accept-Encoding": "gzip"}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        content = response.read()
        if cookie := response.headers.get("Set-Cookie"):
            self.cookie = cookie.partition(";")[0]
        is_compressed = response.headers.get("Content-Encoding") == "gzip"
        return response.status, gzip.decompress(content) if is_compressed else content


def measured(section: str, site: Site, email: str, paths: Mapping[str, str], tell: Tell) -> list[Row]:
    """Measures pages, by name, as the member with that address sees them: their times and statements."""
    browser = Browser(site, email)
    rows = []
    for name, path in paths.items():
        browser.get(path)  # a cold request, which is not measured
        times = [browser.get(path)[0] for _ in range(ASKED)]
        tell(f"{name}: p50 {milliseconds(percentile(times, 0.5))}, p95 {milliseconds(percentile(times, 0.95))}")
        for share, most in ((0.5, MOST_MEDIAN_MS), (0.95, MOST_P95_MS)):
            what = f"{name}, p{share * 100:.0f}"
            rows.append(at_most(section, what, 1000 * percentile(times, share), most, " ms"))
    with logging(site):
        browser = Browser(site, email)
        for name, path in paths.items():
            number = statements(site, browser, path)
            rows.append(at_most(section, f"{name}, statements", number, MOST_STATEMENTS, places=0))
    return rows


def statements(site: Site, browser: Browser, path: str) -> int:
    """Returns how many statements the page takes. Call it within `logging`.

    Takes the least of three requests, because connecting takes some statements.
    """
    counts = []
    for _ in range(3):
        begin = site.stack.postgres.log.stat().st_size
        browser.get(path)
        found = logged_since(site, begin)
        counts.append(sum(number for (kind, _), number in found.items() if kind == "web"))
    return min(counts)
