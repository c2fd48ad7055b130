"""`python -m tests.doors [name …]`: makes the attacks of these modules, or of all, and prints what a victim felt."""

from __future__ import annotations

import argparse
import pkgutil
import sys
import traceback
from functools import partial
from importlib import import_module

from tests import doors

SHARED = {"__main__", "services", "victims"}


def main() -> int:
    """Runs one attack after the other; 1 if one could not be made, or hurt its victim more than it may."""
    every = sorted(module.name for module in pkgutil.iter_modules(doors.__path__) if module.name not in SHARED)
    parser = argparse.ArgumentParser(prog="python -m tests.doors")
    parser.add_argument("names", nargs="*", metavar="name", choices=[[], *every], help=", ".join(every))
    broken = []
    for name in parser.parse_args().names or every:
        print(f"{name}:", flush=True)
        try:
            import_module(f"tests.doors.{name}").measure(partial(print, "   ", flush=True))
        except Exception as error:  # one that could not be made keeps none of the others from being made
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            print(f"    FAILED: {error!r}", flush=True)
            broken.append(name)
    if broken:
        print(f"FAILED: {', '.join(broken)}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
