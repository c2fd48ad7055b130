"""What happens around the actors: one middleware a file."""
