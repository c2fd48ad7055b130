"""Templates: what they can name and do, and what strangers cannot do with them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from app.lib import templates
from app.lib.liquids import MOST_STEPS
from app.lib.templates import LONGEST_TEMPLATE, Budget, TemplateError, check, render

VARIABLES: dict[str, Any] = {
    "contact": {
        "first_name": "Ada",
        "tags": ["b", "vip", "a"],
        "custom_fields": {"plan": "gold", "orders": 3, "favourite color": "red"},
        "timezone": "Europe/Berlin",
        "opted_out": False,
    },
    "trigger": {
        "event": {"data": {"booking": {"starts_at": "2026-11-24T23:30:00.000Z"}}},
        "variables": {"html": "<b>&</b>", "items": [{"name": "Hat", "price": 5}, {"name": "Shoe", "price": 60}]},
    },
    "steps": {"ask": {"text": "Yes"}, "big": list(range(2000)), "long": "a" * 60_000},
}


def rendered(template: str) -> str:
    check(template)
    return render(template, VARIABLES)


# What templates can do


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hello!", "Hello!"),
        ("Hello {{ contact.first_name }}!", "Hello Ada!"),
        ("{{ contact.custom_fields['favourite color'] }}", "red"),
        ("{{ contact.tags | sort | join: ', ' }}", "a, b, vip"),
        ("{{ contact.tags.size }} {{ contact.tags.first }} {{ contact.tags[1] }}", "3 b vip"),
        ("{% if contact.tags contains 'vip' and contact.custom_fields.orders > 2 %}yes{% else %}no{% endif %}", "yes"),
        (
            "{% for item in trigger.variables.items %}{{ item.name }}: {{ item.price }}; {% endfor %}",
            "Hat: 5; Shoe: 60; ",
        ),
        ("{% case contact.custom_fields.plan %}{% when 'gold' %}1{% when 'tin' %}2{% endcase %}", "1"),
        ("{% assign total = trigger.variables.items | map: 'price' | sum %}{{ total | times: 1.5 }}", "97.5"),
        ("{{ contact.custom_fields.orders | plus: 1 }}", "4"),
        ("{% for i in (1..3) %}*{% endfor %}", "***"),
        ("{% raw %}{{ contact }}{% endraw %}", "{{ contact }}"),
        ('{"name": {{ contact.first_name | json }}, "tags": {{ contact.tags | json }}}', None),
        ("{{ 'abc👨\u200d👩\u200d👧' | truncate: 8 }}|{{ 'abc👨\u200d👩' | truncate: 4, '' }}", "abc...|abc"),
        ("{{ '👨\u200d👩\u200d👧e\u0301x' | slice: 0 }}|{{ 'e\u0301🇦🇹' | slice: -1 }}", "👨\u200d👩\u200d👧|🇦🇹"),
        (
            "{{ 'Ada' | slice: 1, 2 }}|{{ contact.tags | slice: 1, 2 | join: '-' }}|{{ nothing | slice: 0 }}",
            "da|vip-a|",
        ),
        ("{{ 'a🇦🇹e\u0301' | split: '' | join: '-' }}|{{ 'a,b' | split: ',' | join: '-' }}", "a-🇦🇹-e\u0301|a-b"),
        ("{{ steps.ask }} {{ contact.opted_out }}", '{"text":"Yes"} false'),
        ("{ } }} %}", "{ } }} %}"),
    ],
)
def test_a_template_renders(template: str, text: str | None) -> None:
    assert rendered(template) == (text or '{"name": "Ada", "tags": ["b","vip","a"]}')


def test_a_name_that_is_not_there_renders_as_nothing() -> None:
    template = "[{{ nothing }}{{ contact.nothing.at.all }}{{ steps.ask.text.more }}{{ contact.tags[99] }}{{ now }}]"

    assert rendered(template) == "[]"
    assert rendered("{{ contact.last_name | default: 'friend' }}") == "friend"


def test_a_name_after_a_dot_may_be_any_word() -> None:
    template = "{{ steps.limit }}{% if steps.for.contains > 1 %}{{ steps.for.contains | plus: steps.empty }}{% endif %}"

    check(template)
    assert render(template, {"steps": {"limit": "a", "for": {"contains": 2}, "empty": 1}}) == "a3"


def test_times_are_shown_in_a_time_zone_and_moved() -> None:
    starts = "trigger.event.data.booking.starts_at"

    assert rendered(f"{{{{ {starts} | date: '%d.%m. %H:%M', 'UTC' }}}}") == "24.11. 23:30"
    assert rendered(f"{{{{ {starts} | date: '%d.%m. %H:%M' }}}}") == "25.11. 00:30"
    assert rendered(f"{{{{ {starts} | date: '%d.%m. %H:%M', contact.timezone }}}}") == "25.11. 00:30"
    assert rendered(f"{{{{ {starts} | add_hours: -24 | add_minutes: 30 }}}}") == "2026-11-24T00:00:00.000Z"
    assert rendered("{{ 0 | date: '%Y' }} {{ 'someday' | date: '%Y' }}") == "1970 someday"


@pytest.mark.parametrize(
    ("contact", "workspace", "printed"),
    [
        ("America/New_York", "Europe/Berlin", "24.11. 18:30"),
        (None, "Europe/Berlin", "25.11. 00:30"),
        ("Mars", "Asia/Tokyo", "25.11. 08:30"),
        (None, None, "24.11. 23:30"),
    ],
)
def test_a_time_is_in_the_zone_of_the_contact_else_of_the_workspace(
    contact: str | None, workspace: str | None, printed: str
) -> None:
    names = {"contact": {"timezone": contact}, "workspace": {"timezone": workspace}}

    for form in ("'%d.%m. %H:%M'", "'%d.%m. %H:%M', nothing", "'%d.%m. %H:%M', trigger.zone"):
        assert render(f"{{{{ '2026-11-24T23:30:00Z' | date: {form} }}}}", names) == printed


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("{{ '1990-11-21' | date: '%d.%m. %H:%M' }}", "21.11. 00:00"),
        ("{{ '1990-11-21' | date: '%d.%m.', 'America/New_York' }}", "21.11."),
        ("{{ '1990-11-21 09:00' | date: '%d.%m. %H:%M' }}", "21.11. 09:00"),
        ("{{ '1990-11-21 09:00' | date: '%d.%m. %H:%M', 'Asia/Tokyo' }}", "21.11. 18:00"),
    ],
)
def test_a_day_is_the_same_in_every_zone(template: str, printed: str) -> None:
    assert render(template, {"contact": {"timezone": "America/New_York"}}) == printed


def test_the_result_is_text_and_not_html() -> None:
    assert rendered("{{ trigger.variables.html }}") == "<b>&</b>"
    assert rendered("{{ trigger.variables.html | escape }}") == "&lt;b&gt;&amp;&lt;/b&gt;"
    assert rendered("{{ trigger.variables.html | strip_html }}") == "&"


def test_no_text_has_a_character_that_cannot_be_stored() -> None:
    assert render("a\x00b", {}) == "ab"
    assert render("{{ '%00' | url_decode }}{{ x }}", {"x": "\x00c"}) == "c"


# What is refused when it is written


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("Hi {{ contact.first_name", "the tag at line 1, column 4 is not closed with '}}'"),
        ("a\nb {% if x %}", "expected tag endif"),
        ("{{ contact.first_name | upcas }}", "line 1, column 25: there is no filter 'upcas'; there are abs, add_days"),
        ("{{ contact.first_name | append }}", "the number of arguments of 'append' must be 1"),
        ("{{ 'a' | append: 'b', context: 1 }}", "the filter 'append' has no argument 'context'"),
        ("{{ 'a' | escape: environment: 1 }}", "the filter 'escape' has no argument 'environment'"),
        ("{{ }}", "expected a primitive expression"),
        ("{{ contact..name }}", "line 1"),
        ("{% unless %}{% endunless %}", "missing expression"),
        ("{% break %}", "it is not in a loop"),
        ("{% raw %}", "is not closed with '{% endraw %}'"),
        ("{% if contact %}" * 40 + "{% endif %}" * 40, "block nesting limit reached"),
        ("x" * (LONGEST_TEMPLATE + 1), "at most 16,384 characters"),
    ],
)
def test_a_broken_template_is_refused_with_its_place_and_reason(template: str, reason: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        check(template)

    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    "tag", ["include 'x'", "render 'x'", "extends 'x'", "block x", "liquid", "tablerow a in b", "import"]
)
def test_there_is_no_tag_that_reads_other_templates_or_makes_html(tag: str) -> None:
    with pytest.raises(TemplateError, match=f"There is no tag '{tag.split()[0]}'.*The tags are assign, break"):
        check(f"{{% {tag} %}}")


# Attributes and methods


@pytest.mark.parametrize(
    "path",
    [
        "contact.__class__",
        "contact.__class__.__mro__[1].__subclasses__",
        "contact['__class__']",
        "contact.first_name.__class__",
        "contact.first_name.upper",
        "contact.tags.append",
        "contact.tags.pop",
        "contact.keys",
        "contact.items",
        "contact.custom_fields.orders.__add__",
        "contact.tags | map: '__class__' | first",
        "thing.secret",
        "thing.method",
        "env",
        "context",
        "template",
    ],
)
def test_nothing_but_members_of_plain_values_can_be_reached(path: str) -> None:
    class Thing:
        secret = "secret"

        def method(self) -> str:
            return "secret"

    assert render(f"[{{{{ {path} }}}}]", {**VARIABLES, "thing": Thing()}) == "[]"


def test_a_loop_shows_only_where_it_is() -> None:
    template = "{% for tag in contact.tags %}{{ forloop.index }}{{ forloop.__class__ }}{{ forloop.it }}{% endfor %}"

    assert rendered(template) == "123"


# Limits: they count steps, characters and elements, so no test depends on the time that something takes.


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in (1..1000000000) %}x{% endfor %}",
        "{% for i in (1..1000000000) reversed %}x{% endfor %}",
        "{% for i in (1..99999999999999999999999999) %}x{% endfor %}",
        "{% assign n = 1000000000 %}{% for i in (1..n) %}{% endfor %}",
        "{{ (1..1000000000) | join }}",
        "{{ (1..1000000000) | reverse }}",
        "{% assign all = (1..1000000000) %}{{ all.size }}",
    ],
)
def test_long_ranges_are_refused(template: str) -> None:
    with pytest.raises(TemplateError, match="a range has more than 10,000 elements"):
        rendered(template)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in (1..9000) %}{% for j in (1..9000) %}{% endfor %}{% endfor %}",
        "{% for i in (1..9000) %}{% if i > 0 and i > 0 and i > 0 and i > 0 %}{% endif %}{% endfor %}",
        "{% for i in (1..200) %}{% for j in (1..200) %}{% for k in (1..2) %}{% break %}" + "{% endfor %}" * 3,
        "{% for i in (1..9000) %}{% assign x = steps.big | sort | reverse | uniq %}{% endfor %}",
        "{% for i in (1..9000) %}{% if steps.big contains -1 %}{% endif %}{% endfor %}",
        "{% for i in (1..9000) %}{% if steps.big == steps.big %}{% endif %}{% endfor %}",
        "{% for i in (1..9000) %}{% capture x %}{{ steps.long }}{% endcapture %}{% endfor %}",
        "{% for i in (1..9000) %}{% assign x = steps.long | url_encode | size %}{% endfor %}",
    ],
)
def test_a_template_that_takes_too_many_steps_is_cut_off(template: str) -> None:
    with pytest.raises(TemplateError, match="it takes too many steps"):
        rendered(template)


def test_the_branches_of_a_case_that_match_several_times_do_not_multiply() -> None:
    once = "{% case 1 %}{% when 1, 1 %}"

    assert rendered(once * 3 + "x" + "{% endcase %}" * 3) == "x" * 8
    with pytest.raises(TemplateError, match="takes too many steps"):
        check(once * 29 + "{% endcase %}" * 29)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for i in (1..2000) %}01234567890123456789012345678901234567{% endfor %}", "more than 65,536 bytes"),
        ("{{ steps.long }}{{ steps.long }}", "more than 65,536 bytes"),
        ("{% capture x %}{{ steps.long }}{{ steps.long }}{% endcapture %}", "more than 65,536 bytes"),
        (
            "{% assign a = 'aaaaaaaa' %}" + "{% assign a = a | append: a %}" * 30,
            "a text has more than 65,536 characters",
        ),
        ("{{ steps.long | replace: '', steps.long | size }}", "a text has more than 65,536 characters"),
        ("{{ steps.long | replace: 'a', steps.long | size }}", "a text has more than 65,536 characters"),
        ("{{ steps.big | join: steps.long | size }}", "a text has more than 65,536 characters"),
        ("{{ steps.long | split: '' | size }}", "a list has more than 10,000 elements"),
        ("{% assign a = steps.big %}" + "{% assign a = a | concat: a %}" * 30, "it takes too many steps"),
        ("{% assign a = 99999 %}" + "{% assign a = a | times: a %}" * 30, "a number is out of range"),
        ("{{ 5 | times: 99999999999999999999 }}", "a number is out of range"),
        ("{{ '1e999999999' | plus: 1 }}", "a number is out of range"),
        ("{{ 'x' | truncate: 99999999999999999999 }}", "a number is out of range"),
        ("{{ 1 | divided_by: 0 }}", "can't divide by 0"),
        ("{{ 'now' | date: '" + "%Y" * 60 + "' }}", "the form of a date has more than 100 characters"),
        ("{{ 'now' | date: '%Y', 'Mars' }}", "time zone of the IANA database"),
        ("{{ 'now' | add_days: 999999999999 }}", "a filter failed"),
        ("{{ '/w==' | base64_decode }}", "a filter failed"),
        ("".join(f"{{% assign a{i} = 1 %}}" for i in range(101)), "it assigns more than 100 names"),
    ],
)
def test_huge_results_and_arguments_are_refused(template: str, reason: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        rendered(template)

    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{" * 8000,
        "{{ " * 5000,
        "{{" + " " * 16_000,
        "{%" * 8000,
        "{% raw %}" * 1800,
        ("{{" + " " * 994 + "}}") * 16,
        ("{%if" + " " * 990 + "%}") * 16,
        "{{ 'x" + "x" * 2000 + "' }}",
        "{% if " + "a and " * 160 + "%}{% endif %}",
        "{{ " + "a[" * 400 + "1" + "]" * 400 + " }}",
        "{% if x %}" * 1000,
    ],
)
def test_a_template_made_to_be_slow_to_read_is_refused_at_once(template: str) -> None:
    began = time.process_time()
    with pytest.raises(TemplateError):
        check(template)

    # The library alone takes from ten seconds to minutes.
    assert time.process_time() - began < 5


def test_what_a_template_costs_does_not_depend_on_earlier_ones() -> None:
    hostile = "{% for i in (1..9000) %}{% for j in (1..9000) %}{% endfor %}{% endfor %}"

    for _ in range(3):
        with pytest.raises(TemplateError):
            render(hostile, VARIABLES)
        assert render("{{ contact.first_name }}", VARIABLES) == "Ada"


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        ("Hello {{ contact.first_name }}", []),
        ("Hello {{ contact.nickname }}, {{ contact.nickname | upcase }}", ["contact.nickname"]),
        ("{% echo contact.nickname %}", ["contact.nickname"]),
        ("{{ contact['nick name'] }} {{ nobody }}", ["contact['nick name']", "nobody"]),
        ("{{ contact.nickname | default: 'there' }}{{ contact.nickname | default: '' }}", []),
        ("{% assign end = '' %}apple{{ end }}", []),
        ("{% if contact.nickname %}{{ contact.nickname }}{% endif %}", []),
        ("{% for each in (1..3) %}{{ contact.nickname }}{% endfor %}", ["contact.nickname"]),
        ("{{ '' }}", []),
    ],
)
def test_a_given_name_that_prints_nothing_is_noted_once(template: str, missing: list[str]) -> None:
    budget = Budget(MOST_STEPS)
    render(template, VARIABLES, budget)

    assert list(budget.missing) == missing


# Parsed templates


def test_a_template_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{{ contact.first_name }} was parsed once"
    render(template, VARIABLES)
    monkeypatch.setattr(templates, "_parsed", None)

    assert render(template, VARIABLES) == "Ada was parsed once"


def test_a_text_without_a_brace_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_parsed", None)
    monkeypatch.setattr(templates, "_PARSED", None)

    check("Hello!")
    assert render("Hello!", VARIABLES) == "Hello!"
