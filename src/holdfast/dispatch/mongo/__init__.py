"""Wake-ups by change streams: see `dispatcher.py`."""
