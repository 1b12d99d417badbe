"""A prototype, not a part of the product: Redis hands out the ids of ready tasks, and a claim takes
them from PostgreSQL by id. Measured against the product's claim, which finds them itself.
"""
