"""Real servers for tests, started from wheels: no root, no Docker, nothing installed beforehand."""
