"""Reads sentences: tokens, words of a language pack, phrases of time, and what belongs to what."""
