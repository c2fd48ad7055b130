from __future__ import annotations

import pytest

from app.domain.people import roles


@pytest.mark.parametrize("action", roles.ACTIONS)
def test_every_action_is_for_roles_that_there_are_and_for_owners(action: str) -> None:
    assert roles.ACTIONS[action] <= set(roles.ROLES)
    assert roles.may("owner", action)


@pytest.mark.parametrize("action", roles.ACTIONS)
def test_what_an_agent_may_an_admin_may_too(action: str) -> None:
    assert roles.may("admin", action) >= roles.may("agent", action)


def test_only_owners_decide_who_belongs_to_a_workspace() -> None:
    assert roles.ACTIONS["members.manage"] == {"owner"}


@pytest.mark.parametrize("action", roles.ACTIONS)
def test_support_sees_everything_but_acts_only_in_a_visit(action: str) -> None:
    assert roles.support_may(action, visiting=False) is action.endswith(".see")
    assert roles.support_may(action, visiting=True) is (action not in roles.NOT_FOR_SUPPORT)


def test_support_hands_out_neither_access_nor_data() -> None:
    assert {"members.manage", "tokens.manage", "contacts.export"} == roles.NOT_FOR_SUPPORT <= roles.ACTIONS.keys()


def test_an_action_that_nobody_knows_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        roles.may("owner", "everything.manage")
