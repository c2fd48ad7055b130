"""What automations do, in plain Python over dicts: a second implementation, to compare the first one with.

It does not choose what happens when. It is told which runs a transaction carried on, and in which order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

UNFINISHED = ("queued", "running", "waiting", "held")
PLAIN = ("first_name", "email", "phone", "opted_out")


class StepFails(Exception):
    """The run fails with this code."""


class Waits(NamedTuple):
    """The run waits for this, for that many hours at most."""

    what: str
    hours: int | None = None


class World:
    """Contacts, automations and runs of one workspace. A method that is not private is (part of) a transaction."""

    def __init__(
        self, channels: Sequence[str], member_id: str, *, most_at_once: int, most_identical: int, most_depth: int
    ) -> None:
        self.channels, self.member_id = channels, member_id
        self.most_at_once, self.most_identical, self.most_depth = most_at_once, most_identical, most_depth
        self.contacts: dict[str, Any] = {}
        self.automations: dict[str, Any] = {}
        self.runs: list[Any] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.passed: Counter[tuple[str, int, str, str]] = Counter()  # by automation, version, step and count
        self._happened: list[Any] = []
        self._latest: dict[str, Any] = {}  # conversations used last in this transaction, by contact
        self._numbers, self._transaction = count(), 0

    def add_contact(self, contact_id: str, **fields: Any) -> None:
        named: dict[str, list[Any]] = {name: [] for name in ("conversations", "messages", "events")}
        self.contacts[contact_id] = {"id": contact_id, "tags": set(), "fields": fields, **named}

    def commit(self) -> None:
        """What follows from the events of the transaction, in their order; then it ends."""
        for event in self._happened:  # grows meanwhile
            for _, automation in sorted(self.automations.items()):
                self._reach(automation, event)
                for run in self._unfinished(event["contact"], automation):
                    if run["triggered"] or run["number"] < event["number"]:
                        named = {"steps": run["saved"], "run": {"variables": run["variables"] | run["own"]}}
                        if any(_is_of(each, event, named) for each in automation["exits"]):
                            self.finish(run, "cancelled", "exit")
                for run in self._unfinished(event["contact"], automation):
                    if self._awaits(run, event):
                        self.wake(run, answer={"event": event})
                definition = automation["definitions"].get(automation["version"], {"triggers": []})
                if any(_starts_on(each, event) for each in definition["triggers"]):
                    self._trigger(automation, event)
        self._happened, self._latest = [], {}
        self._transaction += 1

    def _reach(self, automation: Any, event: Any) -> None:
        """Those runs reach their goal whose goal the event is."""
        for run in self.runs:
            is_its = run["contact"] is event["contact"] and run["automation"] is automation
            is_before = run["triggered"] or run["number"] < event["number"]
            if automation["goal"] and is_its and is_before and run["entered"] and not run["has_reached"]:
                named = {"steps": run["saved"], "run": {"variables": run["variables"] | run["own"]}}
                if _is_of(automation["goal"], event, named):
                    run["has_reached"] = True
                    self.counts[automation["id"], "goals"] += 1

    def start(self, automation: Any, contact: Any, run_id: str, variables: Mapping[str, Any]) -> None:
        if automation["version"] is None:
            return
        if self._keeps_out(contact, automation, automation["reentry"] or "every"):
            run = self.begin(contact, automation, id=run_id, variables=variables)
            run.update(status="cancelled", reason="reentry", due=False, entered=False)
        else:
            self.begin(contact, automation, id=run_id, variables=variables)

    def begin(self, contact: Any, automation: Any, **fields: Any) -> Any:
        run = {"contact": contact, "automation": automation, "version": automation["version"], "id": None}
        run |= {"status": "queued", "reason": None, "failure": None, "due": True, "entered": True, "started": False}
        run |= {"has_reached": False}
        run |= {"waits_for": None, "answer": None, "hours": None, "tries": 0, "conversation": None, "prompted": None}
        run |= {
            "released": False,
            "variables": {},
            "event": None,
            "triggered": False,
            "depth": 0,
            "saved": {},
            "own": {},
            "result": None,
            "starter": None,
            "files": {},
            "log": [],
        }
        run |= {"number": next(self._numbers), "transaction": self._transaction, **fields}
        run["todo"] = automation["definitions"][run["version"]]["steps"]
        self.runs.append(run)
        return run

    def finish(self, run: Any, status: str, reason: str | None = None, failure: str | None = None) -> None:
        awaited = run["awaits"] if reason and run["waits_for"] == "run" and run["takes_along"] else None
        run.update(status=status, reason=reason, failure=failure, due=False, waits_for=None, answer=None, hours=None)
        self._record(run["contact"], f"automation.{status}", run=run)
        if (starter := run["starter"]) and starter["waits_for"] == "run" and starter["awaits"] is run:
            self.wake(starter, answer={"status": status, "result": run["result"]})
        if awaited and awaited["status"] in UNFINISHED:
            self.finish(awaited, "cancelled", reason)

    def wake(self, run: Any, **fields: Any) -> None:
        run.update(due=True, hours=None, **fields)

    def tag(self, contact: Any, tag: str, is_added: bool, run: Any = None) -> None:
        if is_added != (tag in contact["tags"]):
            contact["tags"] ^= {tag}
            self._record(contact, "tag.added" if is_added else "tag.removed", tag, run)

    def resume(self, run: Any) -> None:
        """Ends the hold of a member's message."""
        if run["status"] == "held" and run["waits_for"] == "member":
            self.wake(run, status="running", reason=None, released=True)

    def release(self, automation: Any) -> None:
        """Ends a pause."""
        for run in self.runs:
            if run["automation"] is automation and run["status"] == "held" and run["reason"] == "pause":
                self.wake(run)

    def receive(self, contact: Any, channel: str, text: str, button_id: str | None = None) -> None:
        latest = self.most_recent(contact)
        on_channel = [each for each in contact["conversations"] if each["channel"] == channel]
        conversation = latest if latest and latest["channel"] == channel else max(on_channel, key=_age, default=None)
        conversation = self._opened(contact, conversation, channel)
        if conversation["snoozed"]:
            conversation["snoozed"] = None
            self._record(contact, "conversation.woken")
        message = self._write(conversation, "in", text, None, button_id=button_id)
        if self._is_waiting(run := conversation["waiting"], conversation):
            self.wake(run, answer={"text": text, "button_id": button_id})
            conversation["waiting"], message["run"] = None, run
        self._record(contact, "message.received", is_reply=message["run"] is not None)

    def write_as_member(self, contact: Any, text: str) -> None:
        conversation = self._opened(contact, self.most_recent(contact), "")
        conversation["held"] = True
        for run in self.runs:
            if run["contact"] is contact and run["status"] in UNFINISHED:
                run["released"] = False
        self._write(conversation, "out", text, None)
        if contact["fields"].get("opted_out"):
            self._record(contact, "message.failed")

    def close(self, conversation: Any, run: Any = None) -> None:
        if conversation["status"] == "open":
            for each in self.runs if conversation["held"] else ():
                if each["waits_for"] == "member" and each["conversation"] is conversation:
                    self.wake(each)
            conversation.update(status="closed", held=False, snoozed=None)
            self._record(conversation["contact"], "conversation.closed", run=run)

    def most_recent(self, contact: Any) -> Any:
        return self._latest.get(contact["id"]) or max(contact["conversations"], key=_age, default=None)

    def carry_on(self, run: Any) -> None:
        """Takes steps of the run until it waits, ends or has taken enough."""
        assert run["due"], "It is not due."
        if run["automation"]["status"] == "paused":
            run.update(status="held", reason="pause", due=False)
            return
        if not run["started"]:
            run["started"] = True
            self._record(run["contact"], "automation.started", run=run)
        taken = 0
        while taken < self.most_at_once or not run["todo"] or run["todo"][0]["kind"] == "wait_for_event":
            if not run["todo"]:
                self.finish(run, "completed")
            if run["status"] not in UNFINISHED or not self._take(run, run["todo"][0]):
                return
            taken += 1
        run.update(status="running", due=True)

    def _take(self, run: Any, step: Any) -> bool:
        waited, answer = run["waits_for"], run["answer"]
        run.update(waits_for=None, answer=None, reason=None, due=False, hours=None)
        if waited is None:
            self._pass(run, step, "entered")
        verb = "_begin_" if waited in (None, "member", "file") else "_resume_"
        take: Callable[..., Any] = getattr(self, verb + step["kind"])
        try:
            outcome = take(run, step) if verb == "_begin_" else take(run, step, answer)
        except StepFails as failure:
            self._log(run, step, "failed")
            self._pass(run, step, "failed")
            self.finish(run, "failed", failure=str(failure))
            return False
        if isinstance(outcome, Waits):
            self._log(run, step, "waiting")
            status = {"response": "running", "member": "held"}.get(outcome.what, "waiting")
            run.update(waits_for=outcome.what, hours=outcome.hours, status=status)
            return False
        status, inner = outcome
        self._log(run, step, status)
        self._pass(run, step, "left")
        if inner is None:
            self.finish(run, "completed")
            return False
        run["todo"] = [*inner, *run["todo"][1:]]
        return True

    def _pass(self, run: Any, step: Any, count: str) -> None:
        self.passed[run["automation"]["id"], run["version"], step["id"], count] += 1

    def _begin_add_tag(self, run: Any, step: Any) -> Any:
        tag = self._render(run, step["tag"]).strip()
        if not tag:
            raise StepFails("error")
        self.tag(run["contact"], tag, step["kind"] == "add_tag", run)
        return "succeeded", []

    _begin_remove_tag = _begin_add_tag

    def _begin_set_field(self, run: Any, step: Any) -> Any:
        field, value, contact = step["field"], step["value"], run["contact"]
        value = self._render(run, value) if isinstance(value, str) else value
        if field == "opted_out":
            value = value == "true" or None
        others = [each for each in self.contacts.values() if each is not contact]
        if field == "email" and any(each["fields"].get("email") == value for each in others):
            raise StepFails("error")
        changed = {name: each for name, each in {**contact["fields"], field: value}.items() if each is not None}
        if changed != contact["fields"]:
            contact["fields"] = changed
            self._record(contact, "contact.updated", run=run)
        return "succeeded", []

    def _begin_wait(self, run: Any, step: Any) -> Any:
        return Waits("time", step["seconds"] // 3600) if step["seconds"] else ("succeeded", [])

    def _resume_wait(self, run: Any, step: Any, answer: Any) -> Any:
        return "succeeded", []

    def _begin_branch(self, run: Any, step: Any) -> Any:
        return "succeeded", step.get("then" if _holds(step["if"], self._variables(run)) else "else", [])

    def _begin_split(self, run: Any, step: Any) -> Any:
        drawn = f"{run['automation']['id']}/{step['id']}/{run['contact']['id']}"
        share = int(hashlib.sha256(drawn.encode()).hexdigest()[:16], 16) / 16**16
        arm = step["arms"][share * 100 >= step["arms"][0]["percent"]]
        run["saved"] = run["saved"] | {step["id"]: {"arm": arm["name"]}}
        return "succeeded", arm["steps"]

    def _begin_repeat(self, run: Any, step: Any) -> Any:
        state, over = run["saved"].get(step["id"], {}), step.get("over")
        number = state["index"] + 1 if "index" in state else 0
        if (over is not None and number == len(over)) or number == step.get("times", 100):
            run["saved"] = run["saved"] | {step["id"]: {"rounds": number}}
            return "succeeded", []
        if "while" in step and not _holds(step["while"], self._variables(run)):
            run["saved"] = run["saved"] | {step["id"]: {"rounds": number}}
            return "succeeded", []
        run["saved"] = run["saved"] | {step["id"]: {"index": number, "item": over and over[number]}}
        return "succeeded", [*step["steps"], step]

    def _begin_set_variable(self, run: Any, step: Any) -> Any:
        run["own"] = run["own"] | {step["name"]: self._render(run, step["value"])}
        return "succeeded", []

    def _begin_stop(self, run: Any, step: Any) -> Any:
        if (result := step.get("result")) is not None:
            run["result"] = {name: self._render(run, text) for name, text in result.items()}
        return "succeeded", None

    def _begin_send_message(self, run: Any, step: Any) -> Any:
        return self._send(run, step, step["text"], step.get("attachments", ())) or ("succeeded", [])

    def _send(self, run: Any, step: Any, template: str, files: Any) -> Any:
        """What the run waits for before it sends; None once it has sent."""
        contact = run["contact"]
        if contact["fields"].get("opted_out"):
            raise StepFails("opted_out")
        conversation = run["conversation"] or self.most_recent(contact)
        if conversation and conversation["held"] and not run["released"]:
            run["conversation"] = conversation
            return Waits("member")
        if conversation is None and "phone" not in contact["fields"]:
            raise StepFails("no_channel")
        if files and not self._are_here(run, step):
            run["conversation"] = conversation or self._opened(contact, None, max(self.channels), run)
            return Waits("file", 0)
        text = self._render(run, template)
        buttons = [
            {"id": each["id"], "label": _label(self._render(run, each["label"]))} for each in step.get("buttons", ())
        ]
        if not text.strip() or len({each["label"] for each in buttons} - {""}) < len(buttons):
            raise StepFails("template")
        if sum(1 for each in contact["messages"] if (each["direction"], each["text"]) == ("out", text)) >= (
            self.most_identical
        ):
            raise StepFails("limit")
        run["conversation"] = conversation or self._opened(contact, None, max(self.channels), run)
        sent = {"buttons": buttons or None, "file": run["files"].pop(step["id"], None)}
        run["prompted"] = self._write(run["conversation"], "out", text, run, **sent)
        return None

    def _are_here(self, run: Any, step: Any) -> bool:
        """Whether the files of the step have come; asks for them the first time."""
        if (file := run["files"].get(step["id"])) is None:
            if not all(self._render(run, each["address"]).startswith("https://") for each in step["attachments"]):
                raise StepFails("error")
            run["files"][step["id"]] = {"state": "coming", "tries": 0, "is_late": False}
            return False
        if file["state"] == "gone" or (file["state"] == "coming" and file["is_late"]):
            raise StepFails("error")
        return bool(file["state"] == "here")

    def fetch(self, run: Any, outcome: str) -> None:
        """The file that the run asked for has come (`here`), never will (`gone`), or did not this time (`coming`)."""
        [file] = [each for each in run["files"].values() if each["state"] == "coming"]
        file["tries"] += 1
        file["state"] = "gone" if file["tries"] == 3 and outcome == "coming" else outcome
        if file["state"] != "coming":
            self.look(run)

    def look(self, run: Any) -> None:
        """A run that waits for its file looks whether it has come."""
        if run["waits_for"] == "file" and run["hours"] is not None:
            self.wake(run)

    def _begin_ask(self, run: Any, step: Any, attempts: int = 1) -> Any:
        text, files = (step["text"], step.get("attachments")) if attempts == 1 else (step["retry_text"], ())
        if (waits := self._send(run, step, text, files)) is not None:
            return waits
        labels = run["prompted"]["buttons"]
        run["saved"] = run["saved"] | {step["id"]: {"attempts": attempts} | ({"buttons": labels} if labels else {})}
        return self._expect(run, step)

    def _resume_ask(self, run: Any, step: Any, answer: Any) -> Any:
        asked = run["saved"][step["id"]]
        attempts, value = asked["attempts"], _read(asked.get("buttons"), answer) if answer else None
        if answer and value is None and attempts < step["attempts"]:
            return self._begin_ask(run, step, attempts + 1)
        result = {} if value is None else {"text": answer["text"], **value}
        run["saved"] = run["saved"] | {step["id"]: {"attempts": attempts, "timed_out": answer is None, **result}}
        return "succeeded", step["otherwise"] if value is None else []

    def _begin_wait_for_reply(self, run: Any, step: Any) -> Any:
        messages = run["contact"]["messages"]
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            raise StepFails("no_channel")
        run["conversation"] = conversation
        for each in messages[messages.index(run["prompted"]) :] if run["prompted"] else ():
            if (each["direction"], each["run"]) == ("in", None) and each["conversation"] is conversation:
                each["run"] = run
                return self._resume_wait_for_reply(run, step, {name: each[name] for name in ("text", "button_id")})
        return self._expect(run, step)

    def _expect(self, run: Any, step: Any) -> Any:
        conversation = run["conversation"]
        if self._is_waiting(older := conversation["waiting"], conversation) and older is not run:
            self.wake(older, answer={})
        conversation["waiting"] = run
        return Waits("reply", step["timeout_seconds"] // 3600)

    def _resume_wait_for_reply(self, run: Any, step: Any, answer: Any) -> Any:
        is_answered = bool(answer)
        run["saved"] = run["saved"] | {step["id"]: {**(answer or {}), "timed_out": answer is None}}
        return "succeeded", [] if is_answered else step.get("otherwise", [])

    def _begin_wait_for_event(self, run: Any, step: Any) -> Any:
        for event in [] if run["log"] else run["contact"]["events"]:
            if self._is_since(run, event) and self._is_for(run, step, event):
                return self._resume_wait_for_event(run, step, {"event": event})
        run["since"] = next(self._numbers)
        return Waits("event", step["timeout_seconds"] // 3600)

    def _resume_wait_for_event(self, run: Any, step: Any, answer: Any) -> Any:
        run["saved"] = run["saved"] | {step["id"]: {"timed_out": answer is None}}
        return "succeeded", [] if answer else step["otherwise"]

    def _awaits(self, run: Any, event: Any) -> bool:
        if run["waits_for"] != "event" or run["answer"] is not None or event["number"] < run["since"]:
            return False
        return self._is_for(run, run["todo"][0], event)

    def _is_for(self, run: Any, step: Any, event: Any) -> bool:
        named = {"steps": run["saved"], "run": {"variables": run["variables"] | run["own"]}}
        return event["run"] is not run and _is_of(step, event, named)

    def _is_since(self, run: Any, event: Any) -> bool:
        """Whether it happened after the trigger, or since the start, which may be accepted before the transaction."""
        if run["triggered"]:
            return bool(event["number"] > run["event"]["number"])
        by_job = run["starter"] is None and run["depth"] == 0
        return bool(event["transaction"] >= run["transaction"] if by_job else event["number"] > run["number"])

    def _begin_http_request(self, run: Any, step: Any) -> Any:
        run["tries"] = 0
        return Waits("response")

    def _resume_http_request(self, run: Any, step: Any, answer: Any) -> Any:
        run["saved"] = run["saved"] | {step["id"]: answer}
        return "failed" if answer["error"] else "succeeded", []

    def _begin_close_conversation(self, run: Any, step: Any) -> Any:
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            return "failed", []
        run["conversation"] = conversation
        self.close(conversation, run)
        return "succeeded", []

    def _begin_label_conversation(self, run: Any, step: Any) -> Any:
        label = self._render(run, step["label"]).strip()
        if not label:
            raise StepFails("error")
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            return "failed", []
        run["conversation"] = conversation
        if label not in conversation["labels"]:
            conversation["labels"].add(label)
            self._record(run["contact"], "conversation.labelled", run=run)
        return "succeeded", []

    def _begin_add_note(self, run: Any, step: Any) -> Any:
        text = self._render(run, step["text"])
        if not text.strip():
            raise StepFails("error")
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            return "failed", []
        run["conversation"] = conversation
        conversation["notes"].append(text)
        return "succeeded", []

    def _begin_assign_conversation(self, run: Any, step: Any) -> Any:
        assignee = step["assignee_id"]
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            return "failed", []
        if assignee not in (None, self.member_id):
            raise StepFails("gone")
        run["conversation"] = conversation
        if conversation["assignee"] != assignee:
            conversation["assignee"] = assignee
            self._record(run["contact"], "conversation.assigned", run=run)
        return "succeeded", []

    def _begin_snooze_conversation(self, run: Any, step: Any) -> Any:
        conversation = run["conversation"] or self.most_recent(run["contact"])
        if conversation is None:
            return "failed", []
        run["conversation"] = conversation
        if conversation["status"] == "closed":
            return "failed", []
        if conversation["snoozed"] != step["until"]:
            conversation["snoozed"] = step["until"]
            self._record(run["contact"], "conversation.snoozed", run=run)
        return "succeeded", []

    def _begin_start_automation(self, run: Any, step: Any) -> Any:
        other, variables = self.automations[step["automation_id"]], step.get("variables", {})
        if other["version"] is None:
            raise StepFails("gone")
        rendered = {name: self._render(run, value) for name, value in variables.items()}
        if run["depth"] >= self.most_depth:
            raise StepFails("limit")
        if self._keeps_out(run["contact"], other, other["reentry"] or "every"):
            self.counts[other["id"], "refused:reentry"] += 1
            return "failed", []
        started = self.begin(run["contact"], other, variables=rendered, depth=run["depth"] + 1)
        if step.get("wait"):
            started["starter"], run["awaits"] = run, started
            run["takes_along"] = step.get("cancel_together", False)
            return Waits("run")
        return "succeeded", []

    def _resume_start_automation(self, run: Any, step: Any, answer: Any) -> Any:
        run["saved"] = run["saved"] | {step["id"]: answer}
        return "succeeded" if answer["status"] == "completed" else "failed", []

    def _trigger(self, automation: Any, event: Any) -> None:
        if event["depth"] + 1 > self.most_depth:
            self.counts[automation["id"], "refused:depth"] += 1
        elif self._keeps_out(event["contact"], automation, automation["reentry"] or "after_finish"):
            self.counts[automation["id"], "refused:reentry"] += 1
        else:
            self.begin(event["contact"], automation, event=event, triggered=True, depth=event["depth"] + 1)

    def _keeps_out(self, contact: Any, automation: Any, reentry: str) -> bool:
        if reentry == "after_finish":
            return bool(self._unfinished(contact, automation))
        entered = [run for run in self.runs if run["automation"] is automation and run["entered"]]
        return reentry == "once" and any(run["contact"] is contact for run in entered)

    def _unfinished(self, contact: Any, automation: Any) -> list[Any]:
        own = [run for run in self.runs if run["contact"] is contact and run["automation"] is automation]
        return [run for run in own if run["status"] in UNFINISHED]

    def _is_waiting(self, run: Any, conversation: Any) -> bool:
        is_waiting = run is not None and run["waits_for"] == "reply" and run["answer"] is None
        return is_waiting and run["conversation"] is conversation

    def _opened(self, contact: Any, conversation: Any, channel: str, run: Any = None) -> Any:
        if conversation is None:
            conversation = {"contact": contact, "channel": channel, "status": "closed", "held": False, "waiting": None}
            conversation |= {"number": len(contact["conversations"]), "labels": set(), "snoozed": None, "notes": []}
            conversation["assignee"] = None
            contact["conversations"].append(conversation)
            self._touch(conversation)
        if conversation["status"] == "closed":
            conversation["status"] = "open"
            self._record(contact, "conversation.opened", run=run)
        return conversation

    def _write(self, conversation: Any, direction: str, text: str, run: Any, **further: Any) -> Any:
        message = {"conversation": conversation, "direction": direction, "text": text, "run": run}
        message |= {"buttons": None, "button_id": None, "file": None} | further
        conversation["contact"]["messages"].append(message)
        self._touch(conversation)
        return message

    def _touch(self, conversation: Any) -> None:
        conversation["at"] = float(self._transaction)
        self._latest[conversation["contact"]["id"]] = conversation

    def _record(self, contact: Any, kind: str, tag: str | None = None, run: Any = None, is_reply: bool = False) -> None:
        event = {
            "is_reply": is_reply,
            "kind": kind,
            "tag": tag,
            "contact": contact,
            "run": run,
            "number": next(self._numbers),
            "transaction": self._transaction,
        }
        event |= {"depth": run["depth"] if run else 0, "known": _named(contact), "is_reply": is_reply}
        contact["events"].append(event)
        self._happened.append(event)

    def _log(self, run: Any, step: Any, status: str) -> None:
        run["log"].append((len(run["log"]) + 1, step["id"], step["kind"], status))

    def _variables(self, run: Any) -> dict[str, Any]:
        event = run["event"] and {"kind": run["event"]["kind"], "data": {"tag": run["event"]["tag"]}}
        trigger = {"event": event, "variables": run["variables"]}
        named = {"contact": _named(run["contact"]), "trigger": trigger, "steps": run["saved"]}
        return named | {"run": {"id": run["id"], "variables": run["variables"] | run["own"]}}

    def _render(self, run: Any, template: str) -> str:
        def found(match: re.Match[str]) -> str:
            value = _at(match[1], self._variables(run))
            return "" if value is None else str(value)

        return re.sub(r"\{\{ ([\w.]+) \}\}", found, template)


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 20 else f"{line[:19].rstrip()}…"


def _read(offered: Any, answer: Any) -> Any:
    if not offered:
        return {"value": int(answer["text"])} if answer["text"].isdigit() else None
    labels = {each["id"]: each["label"] for each in offered}
    told = {"1": "x", "2": "y", "x": "x", "y": "y"} | {label: button_id for button_id, label in labels.items()}
    pressed = answer["button_id"] if answer["button_id"] in ("x", "y") else told.get(answer["text"])
    return {"value": labels[pressed], "button_id": pressed} if pressed else None


def _age(conversation: Any) -> tuple[float, int]:
    return conversation["at"], conversation["number"]


def _named(contact: Any) -> dict[str, Any]:
    fields, custom = contact["fields"], {name: v for name, v in contact["fields"].items() if name not in PLAIN}
    return {"tags": sorted(contact["tags"]), "custom_fields": custom, **{name: fields.get(name) for name in PLAIN}}


def _starts_on(trigger: Any, event: Any) -> bool:
    return _is_of(trigger, event) and (not event["is_reply"] or trigger.get("also_replies", False))


def _is_of(trigger: Any, event: Any, of_run: Mapping[str, Any] | None = None) -> bool:
    if trigger["event"] != event["kind"] or trigger.get("tag") not in (None, event["tag"]):
        return False
    return "if" not in trigger or _holds(trigger["if"], {"contact": event["known"], **(of_run or {})})


def _at(path: str, found: Any) -> Any:
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _holds(condition: Any, variables: Mapping[str, Any]) -> bool:
    for name, quantifier in (("all", all), ("any", any)):
        if name in condition:
            return quantifier(_holds(each, variables) for each in condition[name])
    if "not" in condition:
        return not _holds(condition["not"], variables)
    found = _at(condition["field"], variables)
    if condition["is"] == "contains":
        return condition["value"] in (found or "")
    if condition["is"] == "exists":
        return found not in (None, "", [], {})
    return found not in (None, "") and str(found).lower() == str(condition["value"]).lower()
