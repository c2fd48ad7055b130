"""The alert rules, tried by promtool (`make test-alerts`): each fires in a fault, and none in ordinary hours."""
