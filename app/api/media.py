"""Media: serves the files of messages at unguessable addresses."""

from __future__ import annotations

from flask import Blueprint, Response, request
from werkzeug.utils import send_file

from app.domain.channels import media
from app.errors import NotFound
from app.lib.file_types import SAFE_INLINE

blueprint = Blueprint("media", __name__)

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    # A web chat shows these files on other sites' pages.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, max-age=31536000, immutable",
}


@blueprint.get("/media/<upload_id>/<proof>")
def show_file(upload_id: str, proof: str) -> Response:
    """Sends a file; inline only if its type cannot run scripts. Raises NotFound."""
    found = media.find(upload_id, proof)
    try:
        response = send_file(
            media.path_of(found),
            request.environ,
            mimetype=found.content_type,
            as_attachment=found.content_type not in SAFE_INLINE,
            download_name=found.name or found.id,
            response_class=Response,
            use_x_sendfile=False,
        )
    except FileNotFoundError as error:
        raise NotFound from error
    response.headers.update(_HEADERS)
    return response  # type: ignore[return-value]
