"""Settings: validated, typed, and read once. No other module reads them from the environment."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import pika
from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn

from app.errors import SettingsError
from app.lib import redis_servers

# How similar a misspelt name must be, as difflib's ratio. At this value, REDIS_TLS_URL, which other programs use, is
# not taken for REDIS_URL.
NEAR = 0.85

Network = IPv4Network | IPv6Network


def _url(*schemes: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise ValueError(f"it must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        if not text.isprintable():  # urlsplit ignores line breaks, such as a CR from Windows
            raise ValueError("it must not contain a line break, a tab or another control character")
        return text

    return parse


def _database(text: str) -> str:
    _url("postgresql", "postgres")(text)
    try:
        # The address may name several hosts, each with a port.
        ports = parse_dsn(text).get("port", "")
    except ProgrammingError as error:  # the message of the error may contain the password
        raise ValueError("it cannot be read as an address of PostgreSQL") from error
    if not re.fullmatch("[0-9,]*", ports):
        raise ValueError("its port must be a number")
    return text


def _replica(text: str) -> str | None:
    return _database(text) if text.strip() else None


def _server(*schemes: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if _url(*redis_servers.SCHEMES, *schemes)(text).startswith("redis"):
            redis_servers.check(text)
        else:
            _check_rabbitmq(text)
        return text

    return parse


def _check_rabbitmq(server: str) -> None:
    _check_port(urlsplit(server))
    try:
        pika.URLParameters(server)
    except Exception as error:  # the message of the error may contain a password
        raise ValueError("its options (behind the question mark) cannot be read") from error


def _base(text: str) -> str:
    parts = urlsplit(_url("http", "https")(text))
    _check_port(parts)
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it must have a host, and no user name, query or fragment")
    if not text.isascii() or " " in text:  # this address is sent in headers
        raise ValueError("it must be plain ASCII without spaces")
    return text.rstrip("/")


def _provider(text: str) -> str:
    base = _base(text)
    if not base.startswith("https://"):
        raise ValueError("it must begin with https://")
    return base


def _directory(text: str) -> Path:
    path = Path(text).absolute()
    if path.exists() and not path.is_dir():
        raise ValueError(f"{text} is not a directory")
    return path


def _smtp(text: str) -> str | None:
    if not text.strip():
        return None
    parts = urlsplit(_url("smtp", "smtps")(text))
    _check_port(parts)
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("it must be smtp:// or smtps://, then user:password@ if the server asks for it, host and port")
    if (parts.username is None) != (parts.password is None):
        raise ValueError("it must have both a user name and a password, or neither")
    return text


def _mail_from(text: str) -> str:
    # A domain that is only known locally, as in 'bellhop@127.0.0.1', still works with a server on the same machine.
    if not re.fullmatch(r"[^\s@<>]{1,64}@[^\s@<>]{1,190}", text) or not text.isascii():
        raise ValueError("it must be an e-mail address, such as bellhop@example.com")
    return text


def _check_port(parts: SplitResult) -> None:
    try:
        _ = parts.port
    except ValueError as error:  # the message of the error may contain a password
        raise ValueError("its port must be a number from 0 to 65535") from error


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ValueError(f"it must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 60:
        raise ValueError("it must be more than 0 and at most 60 seconds")
    return seconds


def _pause(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 3600:
        raise ValueError("it must be a number of seconds from 0 to 3600")
    return seconds


def _schedule(text: str) -> tuple[int, ...]:
    return tuple(_whole(1, 604_800)(part.strip()) for part in text.split(","))


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def _address(text: str) -> str:
    return str(ip_address(text))


def _file(text: str) -> Path | None:
    if not text.strip():
        return None
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"there is no file {text}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise ValueError(f"there is no certificate in {text}") from error
    return path


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it must be {' or '.join(words)}")
        return text

    return parse


def _keys(text: str) -> tuple[bytes, ...]:
    # Accepts any text: its SHA-256 becomes the Fernet key, so its strength is up to the operator.
    parts = [part.strip() for part in text.split(",")]
    if any(len(part) < 16 for part in parts):
        raise ValueError("each key must have at least 16 characters; make one with: openssl rand -hex 32")
    return tuple(base64.urlsafe_b64encode(hashlib.sha256(part.encode()).digest()) for part in parts)


def _setting(
    name: str, parse: Callable[[str], Any], default: str | Callable[[Mapping[str, Any]], str] | None = None
) -> Any:
    """Declares a setting. `default`: None if required; a function computes it from earlier settings."""
    return field(metadata={"name": name, "parse": parse, "default": default})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, typed. `docs/settings.md` describes them."""

    database_url: str = _setting("DATABASE_URL", _database)
    database_replica_url: str | None = _setting("DATABASE_REPLICA_URL", _replica, " ")
    database_pooling: str = _setting("DATABASE_POOLING", _one_of("session", "transaction"), "session")
    redis_url: str = _setting("REDIS_URL", _server())
    broker_url: str = _setting("BROKER_URL", _server("amqp", "amqps"), lambda known: known["redis_url"])
    secret_keys: tuple[bytes, ...] = _setting("SECRET_KEY", _keys)  # Fernet keys, newest first
    base_url: str = _setting("BASE_URL", _base, "http://127.0.0.1:8000")
    port: int = _setting("PORT", _whole(1, 65535), "8000")
    realtime_port: int = _setting("REALTIME_PORT", _whole(1, 65535), "8001")
    realtime_url: str = _setting("REALTIME_URL", _base, lambda known: known["base_url"])
    retry_schedule_seconds: tuple[int, ...] = _setting("RETRY_SCHEDULE", _schedule, "60,300,1800,7200,43200")
    stop_after_failures: int = _setting("STOP_AFTER_FAILURES", _whole(1, 1_000_000), "50")
    webhook_timeout_seconds: float = _setting("WEBHOOK_TIMEOUT_SECONDS", _seconds, "10")
    probe_pause_seconds: float = _setting("PROBE_PAUSE_SECONDS", _pause, "900")
    webhook_allowed_networks: tuple[Network, ...] = _setting("WEBHOOK_ALLOWED_NETWORKS", _networks, ",")
    webhook_ca_file: Path | None = _setting("WEBHOOK_CA_FILE", _file, " ")
    rate_limit_per_minute: int = _setting("RATE_LIMIT", _whole(0, 100_000_000), "6000")
    body_retention_days: int = _setting("BODY_RETENTION_DAYS", _whole(1, 3650), "30")
    # An idempotency key refers to its job for a day, so the job must be kept longer than that.
    history_retention_days: int = _setting("HISTORY_RETENTION_DAYS", _whole(2, 3650), "90")
    log_format: str = _setting("LOG_FORMAT", _one_of("json", "console"), "json")
    listen_host: str = _setting("LISTEN_HOST", _address, "127.0.0.1")
    metrics_host: str = _setting("METRICS_HOST", _address, "127.0.0.1")
    metrics_port: int = _setting("METRICS_PORT", _whole(0, 65_000), "9464")
    web_concurrency: int = _setting("WEB_CONCURRENCY", _whole(1, 1000), "1")
    trusted_proxies: int = _setting("TRUSTED_PROXIES", _whole(0, 10), "0")
    smtp_url: str | None = _setting("SMTP_URL", _smtp, " ")
    mail_from: str = _setting("MAIL_FROM", _mail_from, lambda known: f"bellhop@{urlsplit(known['base_url']).hostname}")
    media_dir: Path = _setting("MEDIA_DIR", _directory, ".data/media")
    telegram_api_url: str = _setting("TELEGRAM_API_URL", _base, "https://api.telegram.org")
    whatsapp_api_url: str = _setting("WHATSAPP_API_URL", _provider, "https://graph.facebook.com/v23.0")
    # Not validated here: a mistake in the endpoint may cost traces, but nothing else.
    otlp_endpoint: str | None = _setting("OTEL_EXPORTER_OTLP_ENDPOINT", lambda text: text.strip() or None, " ")

    @property
    def plain_addresses(self) -> tuple[str, ...]:
        """The base addresses of providers that are called over plain HTTP."""
        return (self.telegram_api_url,) if self.telegram_api_url.startswith("http://") else ()


@cache
def settings() -> Settings:
    """The settings of this process. Raises SettingsError naming the first missing or wrong one."""
    return read(os.environ)


def settings_or_exit() -> Settings:
    """Returns the settings of this process. If one is missing or wrong, prints its name and exits."""
    try:
        return settings()
    except SettingsError as error:
        sys.exit(f"bellhop: {error.detail}")


def read(environment: Mapping[str, str]) -> Settings:
    """Parses `environment`. Raises SettingsError naming the first setting that is missing or wrong."""
    known: dict[str, Any] = {}
    for each in fields(Settings):
        name, default = each.metadata["name"], each.metadata["default"]
        text = environment.get(name) or (default(known) if callable(default) else default)
        if text is None:
            raise SettingsError(f"{name} is not set. Set it in the environment; docs/settings.md describes it.")
        try:
            known[each.name] = each.metadata["parse"](text)
        except (ValueError, OSError) as error:
            raise SettingsError(f"{name} is wrong: {error}.") from error
    if known["history_retention_days"] < (body_days := known["body_retention_days"]):
        raise SettingsError(
            f"HISTORY_RETENTION_DAYS is wrong: it must not be less than BODY_RETENTION_DAYS, which is {body_days}."
        )
    if not _is_safe(known["telegram_api_url"], known["webhook_allowed_networks"]):
        raise SettingsError(
            "TELEGRAM_API_URL is wrong: it must begin with https://, or with http:// and have a host in one of"
            " WEBHOOK_ALLOWED_NETWORKS."
        )
    return Settings(**known)


def misspelt(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Maps each misspelt name in the environment to the unset setting that it probably means."""
    missing = {each.metadata["name"] for each in fields(Settings)} - environment.keys()
    near = {name: get_close_matches(name.upper(), missing, 1, NEAR) for name in environment if len(name) > 5}
    return {name: found[0] for name, found in near.items() if found}


def manager() -> str | None:
    """Returns the manager that ends all its processes when this one ends: honcho, nf or None."""
    named = {"HONCHO_PROCESS_NAME": "honcho", "FOREMAN_WORKER_NAME": "nf"}
    return next((manager for name, manager in named.items() if name in os.environ), None)


def _is_safe(base: str, allowed: Sequence[Network]) -> bool:
    """Whether the provider's address uses TLS, or its host may be in an `allowed` network.

    For a host name, the answer is yes if there is such a network: its IP address is checked when it is dialled.
    """
    if base.startswith("https://"):
        return True
    try:
        ip = ip_address(urlsplit(base).hostname or "")
    except ValueError:
        return bool(allowed)
    return any(ip in network for network in allowed)
