"""What a workspace used, under which plan, and what that costs. Nothing is refused because of a plan.

Pages and the API read `billing` and `invoices`; the scheduler runs `usage`, `usage_warnings` and `invoices`.
"""
