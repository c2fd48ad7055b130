"""`python -m app`: the commands."""

from app.commands.main import main

main(prog_name="python -m app")
