"""Agents: handlers that do what people asked for in words, what they use, and what they may use."""
