"""Wake-ups through Redis: see `dispatcher.py`."""
