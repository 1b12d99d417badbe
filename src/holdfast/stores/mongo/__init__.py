"""Keeps tasks in MongoDB (`mongodb://`): one document per task. See `documents.py`."""
