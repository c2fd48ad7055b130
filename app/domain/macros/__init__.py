"""Saved replies, macros and drafts: what members prepare for their work in the inbox."""
