"""One attempt, from its outcome on: judge it, settle it, save that, wake whoever became ready.

Written once for everybody who ends attempts: workers, workers over HTTP, and the rescuer.
"""
