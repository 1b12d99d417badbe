"""Wake-ups between processes of one host: see `dispatcher.py`."""
