"""Pages of the person who looks: signing in, passwords, the account, visits of support."""
