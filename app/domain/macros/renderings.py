"""Renderings: check and render the templates of saved replies and macros.

Templates are checked when members write them, and rendered when members use them.
"""

from __future__ import annotations

from collections.abc import Iterator

from app import bounds
from app.domain.automations.definitions import known_names
from app.domain.automations.definitions.known_names import Names
from app.domain.contacts import contacts
from app.domain.people import members, workspaces
from app.domain.people.members import MemberSchema
from app.errors import Conflict, Fault, NotFound
from app.lib import json, templates
from app.lib.templates import Budget, Overspent, TemplateError
from app.models.contacts import Contact

# The names that a template can use.
NAMES: Names = {"contact": known_names.CONTACT, "member": dict.fromkeys(MemberSchema().fields), **known_names.WORKSPACE}
_OVERSPENT = "The templates take more than {:,} steps together. Use fewer or shorter ones."


def faults(template: str, pointer: str) -> Iterator[Fault]:
    """Yields the faults of the template. `pointer`: where it is in the body."""
    yield from (Fault(pointer, detail) for detail in known_names.template_faults(template, NAMES))


class Rendering:
    """Renders templates for a contact, on behalf of the member `member_id` if given.

    All templates of one rendering share a budget. Raises Conflict if there is no such member.
    """

    def __init__(self, contact: Contact, member_id: str | None) -> None:
        self._budget = Budget(bounds.COMPUTING_PER_STEP.most)
        member = _member(contact.workspace_id, member_id) if member_id else {}
        workspace = {"timezone": workspaces.find(contact.workspace_id).timezone}
        named = {"contact": contacts.represent(contact), "member": member, "workspace": workspace}
        self._variables = json.loads(json.dumps(named))

    @property
    def missing(self) -> list[str]:
        """The names in the rendered templates that had no value, so that nothing was printed."""
        return list(self._budget.missing)

    def render(self, template: str) -> str:
        """Renders the template. Raises Conflict with the `code` `limit` or `template`."""
        try:
            return templates.render(template, self._variables, self._budget)
        except Overspent as error:
            bounds.COMPUTING_PER_STEP.reached()
            raise Conflict(_OVERSPENT.format(self._budget.most), code="limit") from error
        except TemplateError as error:
            raise Conflict(str(error), code="template") from error


def _member(workspace_id: str, member_id: str) -> dict[str, object]:
    try:
        return members.represent(members.find(workspace_id, member_id))
    except NotFound as error:
        raise Conflict("There is no such member in this workspace.", code="gone") from error
