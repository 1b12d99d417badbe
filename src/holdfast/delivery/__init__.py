"""Brings the results of runs to the people they are for: channels, recipients, templates, inbox."""
