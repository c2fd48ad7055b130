"""Checks whether this installation has everything that it needs to work.

Each check returns a few words about what it found, or raises SettingsError or the error of the server that it asked.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit

import redis

from app import bells, bounds, config, database, migrations, process_registry
from app.config import settings
from app.database import DatabaseAway, DatabaseRefuses, replica, room, servers
from app.domain.channels import media
from app.domain.jobs import jobs
from app.domain.work import secrets
from app.errors import BellhopError, SettingsError, first_line
from app.lib import clock, versions
from app.logs import tracing
from app.outbound import own_address, smtp

# Schedules, leases and tokens use either clock. With NTP, both agree within milliseconds.
MOST_APART = timedelta(seconds=5)

FAILURES = (BellhopError, *DatabaseAway, *DatabaseRefuses, redis.RedisError, OSError)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check, in one line."""

    name: str
    is_good: bool
    text: str


def check_settings() -> str:
    """Checks that all settings are present and valid; later checks may use the database."""
    settings()
    database.connect()
    return "complete"


def check_version() -> str:
    """Returns this code's version. The checks of processes report processes of other versions."""
    return versions.running()


def check_database() -> str:
    """Checks PostgreSQL: writable, with a right clock, and with our settings in a pooler's sessions."""
    [(version,)] = database.rows("SHOW server_version")
    found = dict(database.rows("SELECT name, current_setting(name) FROM unnest(%s) AS name", (list(database.SESSION),)))
    if found != database.SESSION:
        wanted = "; ".join(f"SET {name} TO ''{value}''" for name, value in database.SESSION.items())
        raise SettingsError(f"the sessions of the pooler lack settings: give its database connect_query='{wanted}'")
    servers.check()
    asked_at = clock.now()
    [(their_time,)] = database.rows("SELECT clock_timestamp()")
    if (apart := max(asked_at - their_time, their_time - clock.now())) > MOST_APART:
        raise SettingsError(
            f"the clocks of this machine and of PostgreSQL are {apart.total_seconds():.0f} s apart: let NTP set both"
        )
    try:
        room.check()
    except DatabaseAway as error:
        if database.is_full(error):
            raise SettingsError(f"PostgreSQL's disk is full, so writes get 503: {first_line(error)}") from error
        raise
    return f"PostgreSQL {version}"


def check_replica() -> str:
    """Checks that the replica responds, if one is configured."""
    try:
        seconds = replica.seconds_behind()
    except replica.Unfit as error:
        raise SettingsError("DATABASE_REPLICA_URL leads to a server that is no replica") from error
    return "none" if seconds is None else f"{seconds:.1f} s behind"


def check_redis() -> str:
    """Checks that Redis responds and accepts writes."""
    for client in bells.clients():
        try:
            client.set("check", "", ex=1)
        except redis.OutOfMemoryError as error:
            raise SettingsError("full: raise its maxmemory, or find what fills it; bells need a few MiB") from error
    return f"Redis {bells.flags().info('server')['redis_version']}"


def check_eviction() -> str:
    """Checks that Redis keeps bells and limits until they expire."""
    for client in bells.clients():
        memory = client.info("memory")
        if memory["maxmemory"] and (policy := memory["maxmemory_policy"]) != "noeviction":
            raise SettingsError(
                f"Redis forgets keys when it is full (maxmemory-policy is {policy}), so work may start seconds late"
                " and rate limits begin anew: set maxmemory-policy to noeviction"
            )
    return "Redis keeps what it is given"


def check_rabbitmq() -> str:
    """Checks that RabbitMQ accepts connections, if it carries the bells."""
    bells.brokers.ping()
    return "connected" if settings().broker_url.startswith("amqp") else "none"


def check_migrations() -> str:
    """Checks that no migration is pending."""
    if names := migrations.pending():
        raise SettingsError(f"{len(names)} pending ({names[0]} first): python -m app db upgrade")
    return "up to date"


def check_secrets() -> str:
    """Checks that SECRET_KEY decrypts all stored secrets."""
    if migrations.pending():
        raise SettingsError("run the migrations first")
    if row_id := secrets.unreadable():
        raise SettingsError(
            f"that of {row_id} cannot be read: append the key that encrypted it to SECRET_KEY,"
            " or give the endpoint a new secret (rotate-secret), the channel new credentials (reauthorize)"
        )
    return "readable"


def check_jobs() -> str:
    """Checks that a worker knows the kind of every accepted write."""
    if migrations.pending():
        raise SettingsError("run the migrations first")
    if kinds := jobs.unknown():
        waiting = ", ".join(f"{kind} ({number:,})" for kind, number in kinds.items())
        raise SettingsError(f"no worker knows {waiting}: run the version of `writes` that does")
    return "of known kinds"


def check_files() -> str:
    """Checks that files can be written under MEDIA_DIR, and that there is room for them."""
    media.try_writing()
    free = media.free_bytes()
    if free < bounds.LEAST_FREE.most:
        raise SettingsError(f"only {free // 1024**2:,} MiB are free under MEDIA_DIR or TMPDIR: uploads are refused")
    return f"{free // 1024**3:,} GiB are free under {settings().media_dir.absolute()}"


def check_sharing() -> str:
    """Checks that all processes that report a MEDIA_DIR use the same directory as this one."""
    here = media.mark()
    apart = {
        each.host for each in process_registry.processes() if here and each.facts.get("files") not in (None, "", here)
    }
    if apart:
        raise SettingsError(
            f"MEDIA_DIR ({settings().media_dir.absolute()}) is another directory on {', '.join(sorted(apart))}:"
            " mount one file system on all machines, then restart the processes there"
        )
    return "no process keeps files elsewhere"


def check_proxy() -> str:
    """Checks the settings LISTEN_HOST, TRUSTED_PROXIES and BASE_URL against one another."""
    host, proxies = settings().listen_host, settings().trusted_proxies
    _check_base()
    if ip_address(host).is_loopback:
        return f"LISTEN_HOST is {host}"
    if not proxies:
        raise SettingsError(
            f"LISTEN_HOST is {host} and TRUSTED_PROXIES is 0: only a proxy that buffers requests may reach web and"
            " realtime; set TRUSTED_PROXIES to the number of proxies in front"
        )
    return f"LISTEN_HOST is {host}: only the proxy may reach it"


def _check_base() -> None:
    base, port = urlsplit(settings().base_url), settings().port
    try:
        is_here = base.hostname == "localhost" or ip_address(base.hostname or "").is_loopback
    except ValueError:
        is_here = False
    if base.scheme != "https" and not is_here:
        raise SettingsError("BASE_URL begins with http://, so passwords and tokens travel in the clear: use https://")
    if is_here and not settings().trusted_proxies and (base.port or (443 if base.scheme == "https" else 80)) != port:
        raise SettingsError(f"BASE_URL is {settings().base_url}, but web listens on PORT {port}, without a proxy")


def check_address() -> str:
    """Checks that `web` can be reached at BASE_URL from here."""
    try:
        own_address.ask(timeout_seconds=2.0)  # short, because the leading scheduler waits for it
    except own_address.Unreachable as error:
        raise SettingsError(f"BASE_URL ({settings().base_url}) does not lead to web from here: {error}") from error
    return f"BASE_URL is {settings().base_url}"


def check_forwarded() -> str:
    """Checks that TRUSTED_PROXIES is the number of proxies of requests, if any process knows it."""
    told = [each.facts["forwarded"] for each in process_registry.processes() if "forwarded" in each.facts]
    proxies = settings().trusted_proxies
    for number in told:
        # 0 proves nothing: the request came from this machine, or through a proxy that sends no header.
        if 0 < number < proxies or number > proxies == 0:
            raise SettingsError(
                f"X-Forwarded-For of most requests names {number}, but TRUSTED_PROXIES is {proxies},"
                " so everybody seems to come from the proxy: have each proxy append to it, and set TRUSTED_PROXIES to"
                " their number"
            )
    return f"TRUSTED_PROXIES is {proxies}" if told else "no process has had enough requests yet to tell"


def check_traces() -> str:
    """Checks that traces, if configured, have their packages and a server that accepts connections."""
    if (endpoint := settings().otlp_endpoint) is None:
        return "off"
    if find_spec("opentelemetry") is None:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but packages are missing: {tracing.REMEDY}")
    try:
        target = urlsplit(endpoint)
        if target.scheme not in ("http", "https") or not target.hostname:
            raise ValueError("it must be an address such as http://127.0.0.1:4318")
        port = target.port or (443 if target.scheme == "https" else 80)
        with socket.create_connection((target.hostname, port), timeout=1):
            return f"to {target.hostname}, port {port}"
    except (OSError, ValueError) as error:
        raise SettingsError(f"nothing can be sent to OTEL_EXPORTER_OTLP_ENDPOINT: {error}") from error


def check_mail() -> str:
    """Checks that the server in SMTP_URL accepts connections, and our password if there is one."""
    if (url := settings().smtp_url) is None:
        return "SMTP_URL is not set, so no e-mail is sent"
    try:
        with smtp.connected(timeout_seconds=2.0):  # short, because the leading scheduler waits for it
            return f"to {urlsplit(url).hostname}"
    except smtp.Away as error:
        raise SettingsError(f"nothing can be sent to SMTP_URL: {first_line(error)}") from error


def check_names() -> str:
    """Checks that no setting looks misspelt. A misspelt one would silently keep its default."""
    if found := config.misspelt():
        raise SettingsError("; ".join(f"there is no setting {name}: is it {near}?" for name, near in found.items()))
    return "no setting looks misspelt"


def check_process(process_type: str) -> Callable[[], str]:
    """Returns the check that a process of that type is running."""

    def look() -> str:
        if not (found := [each for each in process_registry.processes() if each.type == process_type]):
            seconds = process_registry.FORGOTTEN_AFTER_SECONDS
            raise SettingsError(f"none reported in the last {seconds} seconds; start one as the Procfile says")
        others = Counter(each.version or "an unknown version" for each in found if each.version != versions.running())
        return ", ".join([f"{len(found)} running", *(f"{number} of them {other}" for other, number in others.items())])

    return look


# In the order in which they run, after `check_settings`.
_OF_INSTALLATION = (
    *(check_version, check_database, check_replica, check_redis, check_eviction, check_rabbitmq, check_migrations),
    *(check_secrets, check_jobs, check_files, check_sharing, check_proxy, check_address, check_forwarded),
    *(check_traces, check_mail, check_names),
)
CHECKS: dict[str, Callable[[], str]] = {
    **{check.__name__.removeprefix("check_"): check for check in _OF_INSTALLATION},
    **{process_type: check_process(process_type) for process_type in process_registry.TYPES},
}


def look(name: str) -> Result:
    """Runs the check of that name, or `settings`, which comes before all others."""
    check = check_settings if name == "settings" else CHECKS[name]
    try:
        return Result(name, True, check())
    except FAILURES as error:
        return Result(name, False, first_line(error))


def look_at_all() -> list[Result]:
    """Runs all checks except `settings`. Without Redis, only one check waits for its timeout."""
    results: dict[str, Result] = {}
    for name in CHECKS:
        is_unknown = (
            name in ("eviction", "sharing", "forwarded", *process_registry.TYPES) and not results["redis"].is_good
        )
        results[name] = Result(name, False, "not known without Redis") if is_unknown else look(name)
    return list(results.values())
