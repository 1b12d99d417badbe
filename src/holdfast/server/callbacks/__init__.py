"""Tells whoever asked for it that a task has ended: signed, retried, and never into our own
network.
"""
