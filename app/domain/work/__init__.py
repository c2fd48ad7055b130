"""The foundation of all verbs: units of work, changes, events and the audit log.

A verb takes a `changes.Change` and returns its effect. A `units.Unit` reads and writes the rows of many verbs at once.
`events` records what happened. `schema_checks` checks what callers send, and `secrets` encrypts what must not be
readable. `controlled_batches` has what replays and broadcasts share.
"""
