"""Pages that set up a workspace: channels, endpoints, members, tokens and billing."""
