"""Those who sign in, what they may do, and what they are told: accounts, members, roles, tokens, notifications.

Pages and the API call `sessions` and `tokens` to find out who asks, `roles` what that person may do, and `members`,
`links` and `visits` to change it. `notifications` tells members what they should know; `emails` sends it to owners.
"""
