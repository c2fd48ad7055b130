"""Assignment by rule: which members are available, and which of them gets a conversation.

`assignments` assigns from the queue. `member_changes` changes availability and capacity, and returns a leaving member's
conversations to the queue. `departures` removes members. `outlooks` tells who is next.
"""
