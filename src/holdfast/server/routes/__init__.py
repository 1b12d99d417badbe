"""The routes, one subject each."""
