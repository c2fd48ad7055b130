"""Editing definitions: changes of one, also while it is incomplete, and the working copies that editors share."""
