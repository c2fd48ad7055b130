"""Settings: read from the environment once, validated and typed. Nothing else reads the environment."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

import pika
import redis
from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn

from app.errors import SettingsError

T = TypeVar("T")
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, typed. `docs/settings.md` describes them."""

    database_url: str
    redis_url: str
    broker_url: str
    secret_keys: tuple[bytes, ...]  # Fernet keys, newest first
    base_url: str
    port: int
    realtime_port: int
    realtime_url: str
    retry_schedule_seconds: tuple[int, ...]
    stop_after_failures: int
    webhook_timeout_seconds: float
    probe_pause_seconds: float
    webhook_allowed_networks: tuple[Network, ...]
    webhook_ca_file: Path | None
    rate_limit_per_minute: int
    body_retention_days: int
    history_retention_days: int
    log_format: str
    listen_host: str
    metrics_host: str
    metrics_port: int
    web_concurrency: int
    trusted_proxies: int
    smtp_url: str | None
    mail_from: str
    media_dir: Path
    telegram_api_url: str
    whatsapp_api_url: str


@cache
def settings() -> Settings:
    """The process's settings. Raises SettingsError naming the first one that is missing or wrong."""
    return read(os.environ)


def read(environment: Mapping[str, str]) -> Settings:
    """The settings in `environment`. Raises SettingsError naming the first one that is missing or wrong."""

    def setting(name: str, parse: Callable[[str], T], default: str | None = None) -> T:
        text = environment.get(name) or default
        if text is None:
            raise SettingsError(f"{name} is not set. Set it in the environment; docs/settings.md describes it.")
        try:
            return parse(text)
        except (ValueError, OSError) as error:
            raise SettingsError(f"{name} is wrong: {error}.") from error

    redis_url = setting("REDIS_URL", _server("redis", "rediss"))
    body_days = setting("BODY_RETENTION_DAYS", _whole(1, 3650), "30")
    # An idempotency key points at its job for a day, so the job must be kept longer.
    history_days = setting("HISTORY_RETENTION_DAYS", _whole(2, 3650), "90")
    if history_days < body_days:
        raise SettingsError(
            f"HISTORY_RETENTION_DAYS is wrong: it must not be less than BODY_RETENTION_DAYS, which is {body_days}."
        )
    base_url = setting("BASE_URL", _base, "http://127.0.0.1:8000").rstrip("/")
    return Settings(
        database_url=setting("DATABASE_URL", _database),
        redis_url=redis_url,
        broker_url=setting("BROKER_URL", _server("redis", "rediss", "amqp", "amqps"), redis_url),
        secret_keys=setting("SECRET_KEY", _keys),
        base_url=base_url,
        port=setting("PORT", _whole(1, 65535), "8000"),
        realtime_port=setting("REALTIME_PORT", _whole(1, 65535), "8001"),
        realtime_url=setting("REALTIME_URL", _base, base_url).rstrip("/"),
        retry_schedule_seconds=setting("RETRY_SCHEDULE", _schedule, "60,300,1800,7200,43200"),
        stop_after_failures=setting("STOP_AFTER_FAILURES", _whole(1, 1_000_000), "50"),
        webhook_timeout_seconds=setting("WEBHOOK_TIMEOUT_SECONDS", _seconds, "10"),
        probe_pause_seconds=setting("PROBE_PAUSE_SECONDS", _pause, "15"),
        webhook_allowed_networks=setting("WEBHOOK_ALLOWED_NETWORKS", _networks, ","),
        webhook_ca_file=setting("WEBHOOK_CA_FILE", _file, " "),
        rate_limit_per_minute=setting("RATE_LIMIT", _whole(0, 100_000_000), "6000"),
        body_retention_days=body_days,
        history_retention_days=history_days,
        log_format=setting("LOG_FORMAT", _one_of("json", "console"), "json"),
        listen_host=setting("LISTEN_HOST", _address, "127.0.0.1"),
        metrics_host=setting("METRICS_HOST", _address, "127.0.0.1"),
        metrics_port=setting("METRICS_PORT", _whole(0, 65_000), "9464"),
        web_concurrency=setting("WEB_CONCURRENCY", _whole(1, 1000), "1"),
        trusted_proxies=setting("TRUSTED_PROXIES", _whole(0, 10), "0"),
        smtp_url=setting("SMTP_URL", _smtp, " "),
        mail_from=setting("MAIL_FROM", _mail_from, f"bellhop@{urlsplit(base_url).hostname}"),
        media_dir=setting("MEDIA_DIR", _directory, ".data/media"),
        telegram_api_url=setting("TELEGRAM_API_URL", _provider, "https://api.telegram.org"),
        whatsapp_api_url=setting("WHATSAPP_API_URL", _provider, "https://graph.facebook.com/v23.0"),
    )


def _url(*schemes: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise ValueError(f"it must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        if not text.isprintable():  # urlsplit ignores line breaks, such as the CR of a file from Windows
            raise ValueError("it must not contain a line break, a tab or another control character")
        return text

    return parse


def _database(text: str) -> str:
    _url("postgresql", "postgres")(text)
    try:
        # There may be several hosts, each with a port.
        ports = parse_dsn(text).get("port", "")
    except ProgrammingError as error:  # its message may contain the password
        raise ValueError("it cannot be read as an address of PostgreSQL") from error
    if not re.fullmatch("[0-9,]*", ports):
        raise ValueError("its port must be a number")
    return text


def _server(*schemes: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        parts = urlsplit(_url(*schemes)(text))
        _check_port(parts)
        if parts.scheme.startswith("redis") and not re.fullmatch("/?[0-9]*", parts.path):
            raise ValueError("its path must be the number of a database, such as /0")
        _check_options(text)
        return text

    return parse


def _check_options(server: str) -> None:
    try:
        if server.startswith("amqp"):
            pika.URLParameters(server)
        else:
            redis.ConnectionPool.from_url(server).make_connection()  # does not connect
    except Exception as error:  # its message may contain a password
        raise ValueError("its options (behind the question mark) cannot be read") from error


def _base(text: str) -> str:
    parts = urlsplit(_url("http", "https")(text))
    _check_port(parts)
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it must have a host, and no user name, query or fragment")
    if not text.isascii() or " " in text:  # it is sent in headers
        raise ValueError("it must be plain ASCII without spaces")
    return text


def _provider(text: str) -> str:
    if not _base(text).startswith("https://"):
        raise ValueError("it must begin with https://")
    return text.rstrip("/")


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
    # Without a domain that others know, as in 'bellhop@127.0.0.1', it still serves a server on the same machine.
    if not re.fullmatch(r"[^\s@<>]{1,64}@[^\s@<>]{1,190}", text) or not text.isascii():
        raise ValueError("it must be an e-mail address, such as bellhop@example.com")
    return text


def _check_port(parts: SplitResult) -> None:
    try:
        _ = parts.port
    except ValueError as error:  # its message may contain a password
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
    # Any text is accepted. Its SHA-256 is the Fernet key, so its strength is up to the operator.
    parts = [part.strip() for part in text.split(",")]
    if any(len(part) < 16 for part in parts):
        raise ValueError("each key must have at least 16 characters; make one with: openssl rand -hex 32")
    return tuple(base64.urlsafe_b64encode(hashlib.sha256(part.encode()).digest()) for part in parts)
