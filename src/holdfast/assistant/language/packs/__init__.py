"""Language packs: plain data, one file for each language."""
