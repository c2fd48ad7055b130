"""Talking with contacts: conversations, messages, and their way out through a channel.

`messages` queues and receives; `sendings` claims what is due and `sending_outcomes` records what came of it;
`recipients` finds whom a message is for; `quiet_hours` and `opt_outs` say when nothing is sent.
"""
