"""Signed POSTs to URLs that others gave: callbacks and deliveries make them alike."""
