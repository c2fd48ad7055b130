"""Saved replies, macros and drafts, which members prepare for their work in the inbox."""
