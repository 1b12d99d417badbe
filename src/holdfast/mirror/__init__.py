"""A copy of the owners' schedules and executions in Firestore, for clients that listen there.

It is never the truth: nothing here reads it back. A task of its own (`companion`) is stored with
every change and every run, in the same commit, and says only *what* to bring up to date. When it
runs (`writing`) it reads the truth and writes that (`documents` says how). So tasks may come late,
twice or in another order, and the copy ends up right.
"""
