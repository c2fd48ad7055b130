"""Makes a worker visible to operators under the process types that it runs."""

from __future__ import annotations

from collections.abc import Sequence

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import metrics, process_registry
from app.config import settings
from app.logs import tracing
from workers.middleware.beside import Beside

# A queue belongs to the process type of the same name, except for these.
_TYPE_OF = {
    "fan-outs": "writes",
    **dict.fromkeys(("runs", "run-requests", "broadcasts"), "automations"),
    **dict.fromkeys(("sweeps", "replays", "channel-requests"), "retries"),
    **dict.fromkeys(("read-receipts", "arrivals", "fetches"), "messages"),
}


class Registration(Middleware):
    """Announces the worker's process types, serves its metrics, and starts tracing if it is configured."""

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        types = process_types(broker)
        tracing.start(types.pop() if len(types) == 1 else "worker")

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        types = sorted(process_types(broker))
        for process_type in types:
            process_registry.announce(process_type)
        metrics.serve(settings().metrics_host, settings().metrics_port, "+".join(types))


def process_types(broker: Broker) -> set[str]:
    """Returns the process types of the Procfile that a worker with this broker runs."""
    beside = {each.process_type for each in broker.middleware if isinstance(each, Beside)}
    types = {_TYPE_OF.get(queue, queue) for queue in broker.get_declared_queues()} | beside
    return types & set(process_registry.TYPES)


def process_name(arguments: Sequence[str]) -> str:
    """Returns the process types of the command's modules, joined by "+"; "worker" for `all` or none."""
    modules = [each.partition(".")[2] for each in arguments if each.startswith("workers.") and each != "workers.broker"]
    return "+".join(module.replace("_", "-") for module in modules if module != "all") or "worker"
