"""What stands above gates, records and attempts: work made of work, and shares of what is scarce.

It uses the ports alone, so it is the same on every store, and a task that needs none of it never
comes here. `starting` looks at a claimed task before it runs, `parents` ends those that have
children, `trees` cancels and starts again what belongs together, `submitting` stores compositions,
`coalescing` makes one task of several submits, `limits` and `breakers` bound what runs, `events`
and `stored_steps` keep what handlers wait for and have done, and `chores` finishes what takes
several steps.
"""
