"""The worker processes: a module for each, which declares its actors.

A bell names the mailboxes to look into; the domain does the work.
"""
