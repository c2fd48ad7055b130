"""Pages of the viewer: signing in, passwords, the account, availability, visits of staff."""
