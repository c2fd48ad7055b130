"""The ground that every verb stands on: units of work, what they change, events, and the audit log.

A verb takes a `changes.Change` and says what it did; a `units.Unit` reads and writes the rows of many verbs at once;
`events` says what happened. `schema_checks` checks what callers send, and `secrets` keeps what must not be read.
"""
