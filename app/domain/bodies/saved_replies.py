"""The bodies that create and change saved replies."""

from __future__ import annotations

from marshmallow import fields, validate

from app.domain.bodies.messages import AttachmentBody
from app.domain.channels import media
from app.domain.macros import saved_replies
from app.lib.schemas import Formatted, RequestBody, about


class SavedReplyPatch(RequestBody):
    """The fields of a saved reply to change. None is required."""

    shortcut = Formatted(
        saved_replies.read_shortcut,
        metadata=about(
            "What members type to find it; unique in the workspace, in whatever case.",
            minLength=1,
            maxLength=saved_replies.LONGEST_SHORTCUT,
            pattern=saved_replies.SHORTCUT,
            example="refund",
        ),
    )
    text = fields.String(
        validate=validate.Length(1, saved_replies.LONGEST_TEXT),
        metadata=about(
            "A template in Liquid that can name `contact` and `member`.",
            example="Hello {{ contact.first_name }}, your refund is on its way.",
        ),
    )
    attachments = fields.List(
        fields.Nested(AttachmentBody),
        validate=validate.Length(max=media.MOST_FILES),
        metadata=about("Files that are sent with it, each time. Replaces the existing ones."),
    )


class SavedReplyCreate(SavedReplyPatch):
    REQUIRED = ("shortcut", "text")
