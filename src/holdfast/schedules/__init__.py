"""Schedules as they are kept, and how they fire (`recurrence` says when)."""
