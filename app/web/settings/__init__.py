"""Pages on which a workspace is set up: channels, endpoints, members, tokens and billing."""
