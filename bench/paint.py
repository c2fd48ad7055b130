"""The first paint of the inbox in Chromium, from a cold cache, with 2,000 conversations.

Target: 300 ms at the median. Needs what `make browser` installs. `tests/browser/test_weight.py` limits the bytes of the
page.
"""

from app.lib import ids
from bench import inbox, sites, talks
from bench.errors import BenchError
from bench.figures import Row, at_most, percentile
from bench.sites import Site, Tell

MOST_MEDIAN_MS = 300
LOADED = 30
# When the page's first content was visible, and when the page was complete, in milliseconds after the request.
PAINTED = """() => new Promise((resolve) => {
    const done = () => resolve([
        performance.getEntriesByName("first-contentful-paint")[0].startTime,
        performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd]);
    new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").length && done())
        .observe({ type: "paint", buffered: true });
})"""


def run(site: Site, tell: Tell) -> list[Row]:
    try:
        from tests.browser.chromium import chromium  # .venv has no Playwright
    except ModuleNotFoundError as error:
        raise BenchError("This section needs a browser: run tests/browser/install first.") from error
    [cookie], member_ids = inbox.agents(site, 1)
    channel = ids.new("chn")
    site.query(
        "INSERT INTO channels (id, workspace_id, kind, name, state)"
        f" VALUES ('{channel}', '{site.workspace}', 'web_chat', 'Shop', 'connected')"
    )
    talks.insert(site, channel, member_ids, 2_000, 20)
    sites.start(site)
    address = f"{site.stack.base_url}/workspaces/{site.workspace}/inbox"
    name, _, value = cookie.partition("=")
    painted = []
    with chromium() as browser:
        for number in range(LOADED):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            context.add_cookies([{"name": name, "value": value, "url": site.stack.base_url}])
            page = context.new_page()
            answer = page.goto(address)
            if answer is None or not page.locator("#rows > li").count():
                raise BenchError(f"The inbox at {page.url} has no rows.")
            painted.append(page.evaluate(PAINTED))
            tell(f"{number}: painted after {painted[-1][0]:.0f} ms, ready after {painted[-1][1]:.0f} ms")
            context.close()
    # Leaves out the first, because the browser had just started.
    first, ready = zip(*painted[1:], strict=True)
    return [
        at_most(
            "paint",
            "first contentful paint of the inbox, cold cache, p50",
            percentile(first, 0.5),
            MOST_MEDIAN_MS,
            " ms",
        ),
        Row("paint", "the same, p95", f"{percentile(first, 0.95):.1f} ms"),
        Row("paint", "all of it ready, p50", f"{percentile(ready, 0.5):.1f} ms"),
    ]
