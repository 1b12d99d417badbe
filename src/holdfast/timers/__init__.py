"""Wake-ups from outside, for deployments in which no process of ours is always there.

A schedule or a task is due at an instant in the store. A resident worker sleeps until then; a
serverless one does not exist then. So a timer of somebody else's (Google Cloud Tasks) is armed to
call the server. Such timers reach only so far ahead (30 days), are delivered at least once, and may
be lost: `hops` makes several of them reach any distance, `arming` keeps in the store what should be
armed and arms again what was lost, `signing` lets the server know its own calls from others'.
"""
