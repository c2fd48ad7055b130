"""The worker processes: a file with the actors of each.

A bell says where to look; the domain does the work.
"""
