"""The service as its callers see it: over HTTP, from one client process."""
