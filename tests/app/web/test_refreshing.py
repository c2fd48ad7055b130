"""Pages refresh themselves while something is under way, and have a link for readers without the script."""

from __future__ import annotations

import io

from tests.cast import accept, apply
from tests.pages import Person

LINK = ">Refresh</a></noscript>"


def test_jobs_refresh_until_they_have_ended(owner: Person) -> None:
    job = accept(owner.workspace_id, "contacts.upsert", {"external_id": "ada"})
    for path in ("dashboard/jobs", f"dashboard/jobs/{job.id}"):
        page = owner.page(path)
        assert "data-refresh" in page
        assert LINK in page.replace("</p>", "")

    apply(owner.workspace_id)

    for path in ("dashboard/jobs", f"dashboard/jobs/{job.id}"):
        page = owner.page(path)
        assert "data-refresh" not in page
        assert "noscript" not in page


def test_an_import_refreshes_until_it_has_ended(owner: Person) -> None:
    file = (io.BytesIO(b"email\nada@example.com\n"), "contacts.csv")
    place = owner.post("contacts/import", {"file": file}, content_type="multipart/form-data").location
    for path in (place, "contacts/import"):
        assert "data-refresh" in owner.page(path)

    apply(owner.workspace_id)

    for path in (place, "contacts/import"):
        assert "data-refresh" not in owner.page(path)
