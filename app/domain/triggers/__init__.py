"""Runs that follow from events or begin at a time: which runs begin, end or wake.

`batches` commits many tasks, with everything that follows from their events. `run_states` begins and changes runs, and
decides whether a contact may enter again. `run_endings` ends runs, also after a contact is deleted or merged.
`triggers` finds the runs that an event concerns, among the automations that `automation_listeners` knows.
"""
