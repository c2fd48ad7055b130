"""Assignment by rule: who is available for conversations, who gets the next one, and what those who leave give back.

`assignments` assigns from the queue; `member_changes` changes availability and capacity; `departures` removes members;
`outlooks` says who is next.
"""
