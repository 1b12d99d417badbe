"""Holdfast: a task queue that holds on to every task, and is fast."""
