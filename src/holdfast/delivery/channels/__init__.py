"""The ways by which something is delivered; one file each."""
