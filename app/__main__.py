"""`python -m app`: the commands."""

from app.commands import main

main(prog_name="python -m app")
