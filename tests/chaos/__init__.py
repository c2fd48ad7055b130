"""`make chaos`: a long run under load in which one thing after another fails at random, and then the count."""
