"""People who sign in, their permissions and notifications: accounts, members, roles and tokens.

Pages and the API call `sessions` and `tokens` to find out who makes a request, `roles` to check what that person may
do, and `message_access` to check who may read messages. `members`, `links` and `support_accounts` change memberships
and accounts. `rate_limits` counts the requests of tokens. `conversation_notifications` and `notifications` notify
members, according to their settings. `emails` sends notifications, invitations and links.
"""
