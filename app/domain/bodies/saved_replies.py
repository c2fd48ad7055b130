"""The bodies that create and change saved replies."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from app.domain.bodies.messages import AttachmentBody
from app.domain.channels import media
from app.domain.macros import saved_replies
from app.lib.schemas import Formatted, RequestBody, about


class SavedReplyFields(RequestBody):
    """The fields of a saved reply.

    `shortcut` and `text` are required to create one, and optional in a change.
    """

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


class SavedReplyCreate(SavedReplyFields):
    """A saved reply to create. `shortcut` and `text` are required."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Makes `shortcut` and `text` required, which SavedReplyFields leaves optional."""
        field_obj.required = field_name in ("shortcut", "text")


class SavedReplyPatch(SavedReplyFields):
    """The fields of a saved reply to change. None is required."""
