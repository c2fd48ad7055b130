"""Conversations with contacts: their messages, and how these are sent through a channel.

`messages` queues and receives messages. `sendings` claims due messages, and `sending_outcomes` records their outcomes.
`message_statuses` defines the changes of status, and when a message is `unknown`. `recipients` finds the recipient of a
message. `quiet_hours` and `opt_outs` decide when nothing is sent.
"""
