"""Files of messages as they are served: with their own type, and never where they could run a script."""

from __future__ import annotations

import pytest

from app.config import settings
from app.domain.channels import media
from app.lib import ids
from tests.cast import Api

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def address(api: Api, name: str | None, content: bytes) -> str:
    """The path at which the file is served."""
    return media.address_of(media.store(api.workspace_id, name, content).id).removeprefix(settings().base_url)


def test_a_picture_is_shown_inline_without_a_token(api: Api) -> None:
    response = api.client.get(address(api, "Füße.png", PNG))

    assert (response.status_code, response.data, response.content_type) == (200, PNG, "image/png")
    assert response.headers["Content-Disposition"].startswith("inline; filename=")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["Cache-Control"] == "private, max-age=31536000, immutable"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("page.html", b"<html><script>alert(1)</script>", "text/plain; charset=utf-8"),
        ("logo.svg", b"<svg onload='alert(1)'/>", "text/plain; charset=utf-8"),
        ("bill.pdf", b"%PDF-1.7", "application/pdf"),
        (None, b"\0\1", "application/octet-stream"),
    ],
)
def test_what_could_run_a_script_is_only_downloaded(api: Api, name: str | None, content: bytes, kind: str) -> None:
    response = api.client.get(address(api, name, content))

    assert response.headers["Content-Disposition"].startswith("attachment")
    assert (response.status_code, response.content_type) == (200, kind)


def test_a_part_of_a_film_can_be_asked_for(api: Api) -> None:
    response = api.client.get(address(api, "film.mp4", b"\0\0\0\x20ftypisom12345"), headers={"Range": "bytes=4-7"})

    assert (response.status_code, response.data) == (206, b"ftyp")


def test_a_guessed_address_leads_nowhere(api: Api) -> None:
    found = address(api, "a.png", PNG)
    upload_id, proof = found.split("/")[2:]

    for path in (f"{found}0", f"/media/{ids.new('upl')}/{proof}", f"/media/{upload_id}/{'0' * 32}", "/media/a/b"):
        assert api.client.get(path).status_code == 404


def test_a_file_that_was_deleted_is_not_found(api: Api) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)
    found = media.address_of(upload.id).removeprefix(settings().base_url)
    media.path_of(upload).unlink()
    assert api.client.get(found).status_code == 404

    media.delete_files([upload.id])

    assert api.client.get(found).status_code == 404
