"""Reports of the inbox: figures of messages and conversations, counted in the background.

Reports cover days of a time zone.
"""
