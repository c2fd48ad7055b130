"""What members prepare for their work in the inbox: saved replies, macros, and drafts of what they write."""
