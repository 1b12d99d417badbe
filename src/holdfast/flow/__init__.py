"""Work made of work: what tasks have to do with each other and with what happens outside of them.
Plain Python above the kernel, the same on every store.
"""
