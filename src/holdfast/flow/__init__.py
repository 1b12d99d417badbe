"""What tasks have to do with each other, above the kernel: plain Python over gates, records and
`commit`, written once for every store.
"""
