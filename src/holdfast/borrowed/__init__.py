"""Connections that belong to the caller, whatever library they come from, seen in one way.

A submit inside somebody's own transaction goes through their connection. They are recognised by the
module of their type, so nothing is imported that the caller has not imported before.
"""

from holdfast.borrowed.adapters import Borrowed, BorrowedAsync, borrow, borrow_async

__all__ = ["Borrowed", "BorrowedAsync", "borrow", "borrow_async"]
