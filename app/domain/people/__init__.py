"""People who sign in, their permissions and their notifications: accounts, members, roles, tokens.

Pages and the API call `sessions` and `tokens` to find out who asks, `roles` what that person may do, `message_access`
who may read messages, and `members`, `links` and `visits` to change it. `rate_limits` counts the requests of tokens;
`news` and `notifications` tell members what they should know, as `notification_kinds` says that they want it; `emails`
sends it, of which `digests` chooses what is still news.
"""
