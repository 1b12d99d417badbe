"""What stands above gates, records and attempts: work made of work, and shares of what is scarce.

It uses the ports alone, so it is the same on every store.
"""
