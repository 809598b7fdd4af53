"""What answers: the session with its models, the server, limits and checks."""
