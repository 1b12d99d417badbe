"""Wake-ups by LISTEN/NOTIFY: see `dispatcher.py`."""
