"""The service: REST for callers, a protocol for workers in any language.

It calls `client`, never a store.
"""
