"""Assignment by rule: who is available, who gets the next conversation, and what is given back.

`assignments` assigns from the queue. `member_changes` changes availability and capacity, and returns a leaving member's
conversations to the queue. `departures` removes members. `outlooks` tells who is next.
"""
