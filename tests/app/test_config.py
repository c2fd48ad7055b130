from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from app import config
from app.errors import SettingsError
from tests.stack.certificates import Certificates

ROOT = Path(__file__).parents[2]
NEEDED = {
    "DATABASE_URL": "postgresql://bellhop@db.test/bellhop",
    "REDIS_URL": "redis://redis.test:6379/0",
    "SECRET_KEY": "k" * 32,
}


def test_what_is_not_set_has_its_default() -> None:
    settings = config.read(NEEDED)

    assert settings.broker_url == NEEDED["REDIS_URL"]
    assert settings.base_url == "http://127.0.0.1:8000"
    assert settings.port == 8000
    assert settings.retry_schedule_seconds == (60, 300, 1800, 7200, 43200)
    assert settings.stop_after_failures == 50
    assert settings.webhook_timeout_seconds == 10
    assert settings.probe_pause_seconds == 900
    assert settings.webhook_allowed_networks == ()
    assert settings.webhook_ca_file is None
    assert settings.rate_limit_per_minute == 6000
    assert settings.body_retention_days == 30
    assert settings.history_retention_days == 90
    assert settings.log_format == "json"
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.1", 9464)
    assert settings.listen_host == "127.0.0.1"
    assert settings.web_concurrency == 1


def test_what_is_set_is_read(tmp_path: Path) -> None:
    authority = Certificates(tmp_path).ca_file

    settings = config.read(
        NEEDED
        | {
            "BROKER_URL": "amqps://user:password@rabbit.test//",
            "BASE_URL": "https://bellhop.test/",
            "PORT": "1",
            "RETRY_SCHEDULE": "1, 2,3",
            "STOP_AFTER_FAILURES": "3",
            "WEBHOOK_TIMEOUT_SECONDS": "0.5",
            "PROBE_PAUSE_SECONDS": "0",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8, ::1/128",
            "WEBHOOK_CA_FILE": str(authority),
            "RATE_LIMIT": "0",
            "BODY_RETENTION_DAYS": "7",
            "HISTORY_RETENTION_DAYS": "7",
            "LOG_FORMAT": "console",
            "METRICS_HOST": "0.0.0.0",
            "METRICS_PORT": "0",
            "WEB_CONCURRENCY": "4",
        }
    )

    assert settings.broker_url.startswith("amqps://")
    assert settings.base_url == "https://bellhop.test"
    assert settings.port == 1
    assert settings.retry_schedule_seconds == (1, 2, 3)
    assert settings.stop_after_failures == 3
    assert settings.webhook_timeout_seconds == 0.5
    assert settings.probe_pause_seconds == 0
    assert settings.webhook_allowed_networks == (ip_network("127.0.0.0/8"), ip_network("::1/128"))
    assert settings.webhook_ca_file == authority
    assert settings.rate_limit_per_minute == 0
    assert settings.body_retention_days == 7
    assert settings.history_retention_days == 7
    assert settings.log_format == "console"
    assert (settings.metrics_host, settings.metrics_port) == ("0.0.0.0", 0)
    assert settings.web_concurrency == 4


def test_several_secret_keys_are_read_newest_first() -> None:
    both = config.read(NEEDED | {"SECRET_KEY": "n" * 32 + " , " + "o" * 32}).secret_keys

    assert both == (
        *config.read(NEEDED | {"SECRET_KEY": "n" * 32}).secret_keys,
        *config.read(NEEDED | {"SECRET_KEY": "o" * 32}).secret_keys,
    )
    assert [Fernet(key) for key in both]


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("text", [None, ""])
def test_a_setting_without_a_default_has_to_be_there(name: str, text: str | None) -> None:
    environment = {key: value for key, value in (NEEDED | {name: text}).items() if value is not None}

    with pytest.raises(SettingsError, match=f"^{name} is not set") as refused:
        config.read(environment)

    assert "\n" not in refused.value.detail


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATABASE_URL", "mysql://db.test/bellhop"),
        ("DATABASE_URL", "postgresql:bellhop"),
        ("DATABASE_URL", "postgresql://db.test:five/bellhop"),
        ("DATABASE_URL", "postgresql://db.test/bellhop?colour=red"),
        ("DATABASE_URL", "postgresql://db.test/bellhop\r"),
        ("REDIS_URL", "http://redis.test"),
        ("REDIS_URL", " redis://redis.test"),
        ("REDIS_URL", "redis://redis.test/0?socket_timeout=soon"),
        ("REDIS_URL", "redis://redis.test/0?colour=red"),
        ("REDIS_URL", "rediss://redis.test/0?ssl_cert_reqs=perhaps"),
        ("REDIS_URL", "redis://redis.test/0\r"),
        ("REDIS_URL", "redis.test:6379"),
        ("REDIS_URL", "redis://redis.test:five"),
        ("REDIS_URL", "redis://redis.test/first"),
        ("REDIS_URL", "rediss://redis.test/0?ssl_ca_certs=/nowhere/ca.pem"),
        ("REDIS_URL", "redis+sentinel://one.test,two.test"),
        ("REDIS_URL", "redis+sentinel://one.test,two.test/0/bellhop"),
        ("REDIS_URL", "redis+sentinel://one.test,/bellhop"),
        ("REDIS_URL", "redis+sentinel://one.test:five/bellhop"),
        ("REDIS_URL", "redis+sentinel://one.test/bellhop?colour=red"),
        ("REDIS_URL", "redis+sentinel://one.test/bellhop?ssl_ca_certs=/etc/hosts"),
        ("REDIS_URL", "rediss+sentinel://one.test/bellhop?ssl_keyfile=/nowhere/key.pem"),
        ("BROKER_URL", "kafka://broker.test"),
        ("BROKER_URL", "amqp://rabbit.test:65536//"),
        ("BROKER_URL", "amqp://rabbit.test/%2f?heartbeat=often"),
        ("SECRET_KEY", "short"),
        ("SECRET_KEY", "k" * 32 + ",short"),
        ("SECRET_KEY", "k" * 32 + ","),
        ("BASE_URL", "bellhop.test"),
        ("BASE_URL", "ftp://bellhop.test"),
        ("BASE_URL", "https://"),
        ("BASE_URL", "https://bellhop.test:https"),
        ("BASE_URL", "https://bellhop.test/?from=mail"),
        ("BASE_URL", "https://bellhop.test\r"),
        ("BASE_URL", "https://bell hop.test"),
        ("BASE_URL", "https://bellhöp.test"),
        ("BASE_URL", "https://bellhop:hunter2@bellhop.test"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("PORT", "٣"),
        ("RETRY_SCHEDULE", ","),
        ("RETRY_SCHEDULE", "60,0"),
        ("RETRY_SCHEDULE", "60,five"),
        ("RETRY_SCHEDULE", "-1"),
        ("STOP_AFTER_FAILURES", "0"),
        ("STOP_AFTER_FAILURES", "1.5"),
        ("WEBHOOK_TIMEOUT_SECONDS", "0"),
        ("WEBHOOK_TIMEOUT_SECONDS", "61"),
        ("WEBHOOK_TIMEOUT_SECONDS", "soon"),
        ("WEBHOOK_TIMEOUT_SECONDS", "nan"),
        ("PROBE_PAUSE_SECONDS", "-1"),
        ("PROBE_PAUSE_SECONDS", "3601"),
        ("PROBE_PAUSE_SECONDS", "nan"),
        ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.1/8"),
        ("WEBHOOK_ALLOWED_NETWORKS", "loopback"),
        ("WEBHOOK_CA_FILE", "/nowhere/ca.pem"),
        ("WEBHOOK_CA_FILE", "/"),
        ("WEBHOOK_CA_FILE", __file__),
        ("RATE_LIMIT", "-1"),
        ("RATE_LIMIT", "many"),
        ("BODY_RETENTION_DAYS", "0"),
        ("BODY_RETENTION_DAYS", "a month"),
        ("HISTORY_RETENTION_DAYS", "1"),
        ("HISTORY_RETENTION_DAYS", "29"),
        ("LOG_FORMAT", "xml"),
        ("DATABASE_POOLING", "statement"),
        ("METRICS_HOST", "localhost"),
        ("LISTEN_HOST", "localhost"),
        ("METRICS_PORT", "65001"),
        ("WEB_CONCURRENCY", "0"),
        ("WEB_CONCURRENCY", "-1"),
        ("WEB_CONCURRENCY", "four"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} is wrong: ") as refused:
        config.read(NEEDED | {name: text})

    assert "\n" not in refused.value.detail


def test_bodies_are_not_kept_for_longer_than_what_they_belong_to() -> None:
    with pytest.raises(
        SettingsError, match=r"^HISTORY_RETENTION_DAYS is wrong: .* BODY_RETENTION_DAYS, which is 91\.$"
    ):
        config.read(NEEDED | {"BODY_RETENTION_DAYS": "91"})


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://postgres@127.0.0.1:5433/bellhop",
        "postgres://bellhop:hunter2@[::1]/bellhop?sslmode=require",
        "postgresql:///bellhop?host=/var/run/postgresql",
        "postgresql://db1.test:5432,db2.test:5433/bellhop?target_session_attrs=read-write",
    ],
)
def test_an_address_of_postgresql_may_have_any_form_that_it_knows(text: str) -> None:
    assert config.read(NEEDED | {"DATABASE_URL": text}).database_url == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATABASE_URL", "postgresql://bellhop:hunter2@[db.test/bellhop"),
        ("DATABASE_URL", "postgresql://bellhop:hunter2/@db.test/bellhop?x"),
        ("REDIS_URL", "redis://:hunter2/@redis.test:6379"),
        ("REDIS_URL", "redis+sentinel://:hunter2/@one.test/bellhop"),
        ("REDIS_URL", "redis+sentinel://:hunter2@one.test:five/bellhop"),
        ("BROKER_URL", "amqp://:hunter2/@rabbit.test"),
        ("BASE_URL", "https://bellhop:hunter2@bellhop.test"),
    ],
)
def test_the_line_about_a_wrong_address_does_not_show_its_password(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} is wrong") as refused:
        config.read(NEEDED | {name: text})

    assert "hunter2" not in refused.value.detail


def test_the_line_about_a_wrong_secret_does_not_show_it() -> None:
    with pytest.raises(SettingsError) as refused:
        config.read(NEEDED | {"SECRET_KEY": "hunter2"})

    assert "hunter2" not in refused.value.detail


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "app", "db", "upgrade"],
        ["-m", "app", "workspace", "create", "x"],
        ["-m", "scheduler"],
        ["-m", "dramatiq", "workers.broker", "workers.writes", "--queues", "writes", "--processes", "1"],
        ["-m", "app.serving", "--config", "python:app.gunicorn", "app:create_app()"],
        ["-m", "gunicorn", "--config", "python:app.gunicorn", "app:create_app()"],
    ],
    ids=["upgrade", "workspace", "scheduler", "writes", "web", "gunicorn"],
)
def test_every_process_ends_with_one_line_that_names_the_wrong_setting(command: list[str]) -> None:
    said = refused(command, LOG_FORMAT="xml")

    assert len([line for line in said if "LOG_FORMAT" in line]) == 1, said
    assert "Traceback" not in "\n".join(said)


@pytest.mark.parametrize("number", ["0", "four", "1.5"])
def test_a_web_of_no_process_ends_with_one_line_too(number: str) -> None:
    command = ["-m", "app.serving", "--config", "python:app.gunicorn", "app:create_app()"]

    assert refused(command, WEB_CONCURRENCY=number) == [
        "bellhop: WEB_CONCURRENCY is wrong: it must be a whole number from 1 to 1000."
    ]


def refused(command: list[str], **wrong: str) -> list[str]:
    """What a process says that ends because of a setting."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **NEEDED, **wrong},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize(
    ("address", "networks"),
    [
        ("http://10.1.2.3:8081", "10.0.0.0/8"),
        ("http://[fd00::1]:8081", "fd00::/8"),
        ("http://bot-api:8081", "10.0.0.0/8"),
    ],
)
def test_a_bot_api_of_our_own_needs_no_tls(address: str, networks: str) -> None:
    settings = config.read(NEEDED | {"TELEGRAM_API_URL": address, "WEBHOOK_ALLOWED_NETWORKS": networks})

    assert (settings.telegram_api_url, settings.plain_addresses) == (address, (address,))


@pytest.mark.parametrize(
    ("address", "networks"),
    [
        ("http://149.154.167.220", "10.0.0.0/8"),
        ("http://api.telegram.org", ""),
        ("http://10.1.2.3:8081", ""),
        ("http://10.1.2.3:8081", "10.2.0.0/16"),
    ],
)
def test_a_bot_api_elsewhere_needs_tls(address: str, networks: str) -> None:
    with pytest.raises(SettingsError, match=r"^TELEGRAM_API_URL is wrong: .*http://.*WEBHOOK_ALLOWED_NETWORKS\.$"):
        config.read(NEEDED | {"TELEGRAM_API_URL": address, "WEBHOOK_ALLOWED_NETWORKS": networks})
