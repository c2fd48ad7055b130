"""Events on their way to endpoints: fan-out, attempts, retries, stops, resends and replays.

`fan_out.write` makes deliveries with their events; senders call `attempts`. `resends`, `sweeps` and `replays` send
deliveries again; `discards` cancels deliveries that need not be sent. `backlogs`, `causes`, `explanations` and
`reproductions` explain deliveries to people.
"""
