"""Billing: what workspaces use, under which plan, and what it costs. Plans refuse nothing.

Pages and the API read `billing` and `invoices`. The scheduler runs `usage`, `usage_warnings` and `invoices`.
"""
