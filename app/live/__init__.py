"""Live updates: the `realtime` process streams changes to members, API tokens and visitors."""
