"""What the API means: pure, no socket, file, clock, environment or log."""
