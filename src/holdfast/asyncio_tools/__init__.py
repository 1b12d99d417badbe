"""Small helpers for asyncio: from sync code, to the end, and surely ended."""
