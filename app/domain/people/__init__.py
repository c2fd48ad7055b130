"""People who sign in, their permissions and their notifications: accounts, members, roles, tokens.

Pages and the API call `sessions` and `tokens` to find out who asks, `roles` what that person may do, `message_access`
who may read messages, and `members`, `links` and `visits` to change it. `rate_limits` counts the requests of tokens;
`notifications` tells members what they should know, and `emails` sends it to owners.
"""
