"""Pages of the viewer: signing in, passwords, the account, visits of support staff."""
