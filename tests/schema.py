"""The schema of the database in words, to be compared with what the migrations make."""

from __future__ import annotations

from pathlib import Path

from app.database import rows

FILE = Path(__file__).with_suffix(".txt")


def described() -> str:
    """Each table with its columns and indexes, without partitions."""
    found = rows(
        "SELECT c.relname, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)"
        "  || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END"
        "  || CASE a.attgenerated WHEN '' THEN '' ELSE ' generated' END"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " UNION ALL SELECT t.relname, regexp_replace(pg_get_indexdef(i.indexrelid), ' ON (ONLY )?\\S+', '')"
        " FROM pg_class t JOIN pg_index i ON i.indrelid = t.oid"
        " WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition"
        " ORDER BY 1, 2"
    )
    lines: list[str] = []
    for table, line in found:
        if table not in lines:
            lines += ["", table]
        lines.append(f"  {line}")
    return "\n".join(lines[1:]) + "\n"
