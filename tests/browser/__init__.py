"""Stories, pictures and checks of the pages in a real browser (`make browser`)."""

import sys
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".browser"
# Last, so that nothing of .venv is shadowed.
sys.path += [str(path) for path in TOOLS.glob("venv/lib/python3*/site-packages")]
