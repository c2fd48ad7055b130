"""The foundation of all verbs: units of work, changes, events and the audit log.

A verb takes a `changes.Change` and returns its effect. A `units.Unit` reads and writes the rows of many verbs at once;
`triggers.batches` has the loop that runs tasks in a unit, and begins what follows from their events. `events` records
what happened. `schema_checks` checks what callers send, and `secrets` re-encrypts what is stored. `controlled_batches`
has what replays and broadcasts share.
"""
