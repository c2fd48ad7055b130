"""Assignment by rule: which members are available, and which of them gets a conversation.

`assignments` assigns from the queue, and tells who is next. `member_changes` changes availability and capacity, removes
members, and returns their conversations to the queue.
"""
