"""`docs/limits.md` lists every bound, with its figure."""

from __future__ import annotations

import re

import pytest

from app import bounds, config, web
from app.api import lists
from app.channels.base import OWN_SETTINGS
from app.channels.kinds import CHANNEL_KINDS
from app.domain.assignment import member_changes
from app.domain.automations import automations, http_requests, interpreter
from app.domain.automations.definitions import json_schemas, validation
from app.domain.automations.steps import fetched_files
from app.domain.bodies import objects
from app.domain.broadcasts import broadcasts
from app.domain.channels import buttons, channels, chats, media
from app.domain.contacts import contacts
from app.domain.conversations import conversation_changes, conversation_counts, notes, scheduled_messages, snoozes
from app.domain.inbox import saved_views, selections
from app.domain.insight import refused_requests
from app.domain.lifecycle import import_lines
from app.domain.macros import drafts, macros, saved_replies
from app.domain.people import links, members, sessions, sign_ins
from app.domain.reports import counting, periods
from app.domain.segments import scans, segments
from app.domain.triggers import awaited_events, run_states, start_scans, triggers
from app.domain.webhooks import endpoints
from app.domain.work import controlled_batches
from app.lib import liquids, templates
from app.models import message_searches
from tests.docs.pages import PAGES
from tests.docs.test_operating import NEEDED
from workers import pacing

LIMITS = (PAGES.parent / "limits.md").read_text()
ROWS = re.findall(r"^\| `([a-z_]+)` \| ([\d,]+) \| ([^|]+) \| \S[^|]* \|$", LIMITS, re.MULTILINE)
OTHERS = dict(re.findall(r"^\| ([a-z][^|]*) \| ([\d,]+) \| \S[^|]* \|$", LIMITS, re.MULTILINE))
CONSTANTS = {
    "requests a minute for each token (`RATE_LIMIT`)": config.read(NEEDED).rate_limit_per_minute,
    "bytes of a request's body": objects.MAX_BODY_BYTES,
    "bytes of an upload": media.MOST_BYTES,
    "bytes of an import": import_lines.MOST_BYTES,
    "bytes of a form of the pages without files": web.MOST_FORM_BYTES,
    "lines of an import": import_lines.MOST_LINES,
    "rows on a page of a list": lists.MOST,
    "endpoints": endpoints.QUOTA.most,
    "channels": channels.QUOTA.most,
    "automations": automations.QUOTA.most,
    "segments": segments.QUOTA.most,
    "broadcasts that have not ended": broadcasts.MOST_UNFINISHED,
    "contacts of a broadcast that are reached in a second (`per_second`)": controlled_batches.MOST_PER_SECOND,
    "days ahead that a broadcast can be scheduled": broadcasts.MOST_DAYS,
    "contacts that the count of a filter shows": scans.SAMPLE,
    "members": members.MOST_MEMBERS,
    "members that a channel names for assignment": OWN_SETTINGS["member_ids"]["maxItems"],
    "open conversations that a `capacity` allows": member_changes.MOST_CAPACITY,
    "invitations that a workspace makes in a day": links.MOST_INVITATIONS,
    "invitations of a person to a workspace in a day": links.MOST_TO_ONE,
    "workspaces of a person": sessions.MOST_MEMBERSHIPS,
    "sessions of an account": sessions.MOST_SESSIONS,
    "saved views of a member, and of a workspace": saved_views.MOST_VIEWS,
    "drafts of a member": drafts.MOST_OF_MEMBER,
    "tags of a contact": contacts.MOST_TAGS,
    "custom fields of a contact": contacts.MOST_FIELDS,
    "labels of a conversation": conversation_changes.MOST_LABELS,
    "labels that counts of conversations show": conversation_counts.MOST_LABELS,
    "days of a report": periods.MOST_DAYS,
    "channels, members and labels, each, with figures of their own in a month": counting.MOST_VALUES,
    "notes of a conversation": notes.MOST_NOTES,
    "characters of a note": notes.MOST_CHARACTERS,
    "mentions of a note": notes.MOST_MENTIONS,
    "saved replies": saved_replies.QUOTA.most,
    "characters of a saved reply's shortcut": saved_replies.LONGEST_SHORTCUT,
    "characters of a saved reply": saved_replies.LONGEST_TEXT,
    "macros": macros.QUOTA.most,
    "actions of a macro": macros.MOST_ACTIONS,
    "days for which a conversation can be snoozed": snoozes.MOST_DAYS,
    "characters of a search in messages": message_searches.LONGEST_SEARCH,
    "words of a search in messages": message_searches.MOST_WORDS,
    "days ahead that a message can be scheduled": scheduled_messages.MOST_DAYS,
    "scheduled messages of a conversation": scheduled_messages.MOST_OF_CONVERSATION,
    "scheduled messages of a workspace": scheduled_messages.MOST_OF_WORKSPACE,
    "unfinished changes of many conversations of a workspace": selections.MOST_UNFINISHED,
    "refused requests that a `web` process keeps in a minute, for each problem": refused_requests.MOST_A_MINUTE,
    "refused requests that are kept, for each problem": refused_requests.MOST_KEPT,
    "bytes of a template": templates.LONGEST_TEMPLATE,
    "steps of a definition": json_schemas.MOST_STEPS,
    "triggers of an automation": json_schemas.MOST_TRIGGERS,
    "triggers by time of published automations": start_scans.MOST_TIMED,
    "days before a booking that a trigger may start a run": json_schemas.LONGEST_BEFORE_SECONDS // 86_400,
    "days before or after a date that a trigger may start a run": json_schemas.MOST_OFFSET_DAYS,
    "exits of an automation": validation.MOST_EXITS,
    "runs of a contact and an automation that an event is compared with": triggers.MOST_COMPARED,
    "events before the first step of a run that a wait for one looks through": awaited_events.MOST_MISSED,
    "steps of a run without a wait": interpreter.MOST_UNBROKEN,
    "steps of a run": interpreter.MOST_STEPS,
    "automations that start one another in a chain": run_states.MOST_DEPTH,
    "steps of a template's rendering": liquids.MOST_STEPS,
    "bytes that a template may print": liquids.MOST_OUTPUT_BYTES,
    "characters of a message": max(kind.most_characters for kind in CHANNEL_KINDS.values()),
    "files of a message": media.MOST_FILES,
    "buttons of a message": buttons.MOST,
    "seconds that a run waits for the files of its message": fetched_files.MOST_SECONDS,
    "characters of a button's label": buttons.MOST_LABEL,
    "latest messages of a web chat whose buttons can be pressed": chats.MOST_OFFERING,
    "requests of runs under way to other servers, of a workspace and process": http_requests.MOST_EACH,
    "deliveries under way to an endpoint, of a process": pacing.MOST,
    "failed attempts to sign in to an account from an address, in 15 minutes": sign_ins.PAIR.failures,
    "failed attempts to sign in from an address, in 15 minutes": sign_ins.ADDRESS.failures,
    "failed attempts to sign in to an account, in an hour": sign_ins.ACCOUNT.failures,
}


def test_the_page_has_each_bound_with_its_figure() -> None:
    assert [(bound.name, f"{bound.most:,}", bound.unit) for bound in bounds.ALL] == ROWS


def test_no_two_bounds_have_one_name() -> None:
    assert len({bound.name for bound in bounds.ALL}) == len(bounds.ALL)


@pytest.mark.parametrize("what", sorted(CONSTANTS.keys() | OTHERS.keys()))
def test_other_bounds_have_the_figures_of_the_code(what: str) -> None:
    assert OTHERS[what] == f"{CONSTANTS[what]:,}"
