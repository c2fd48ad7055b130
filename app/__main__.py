"""`python -m app`: the commands."""

import sys

from app.commands import health

if sys.argv[1:2] == ["health"]:  # probes run often, and importing the other commands takes a second
    health.health(sys.argv[2:], prog_name="python -m app health")

from app.commands.main import main

main(prog_name="python -m app")
