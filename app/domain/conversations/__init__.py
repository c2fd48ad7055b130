"""Talking with contacts: conversations, messages, and their way out through a channel.

`messages` queues and receives; `sendings` claims due messages and `sending_outcomes` records their outcomes;
`message_statuses` says what a message can become, and when it is `unknown`; `recipients` finds whom one is for;
`quiet_hours` and `opt_outs` say when nothing is sent.
"""
