"""Conversations with contacts, and the sending of their messages.

`messages` queues and receives messages. `sendings` claims due messages; `sending_outcomes` records the outcomes.
`message_statuses` defines the changes of status, and when a message is `unknown`. `recipients` finds or opens the
conversation of an outgoing message. `sending_checks` refuses what must not be sent, now or ever. `opt_outs` recognizes
the words by which contacts opt out or in.
"""
