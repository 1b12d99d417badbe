"""Work made of work: what a task has to do with other tasks, above gates, records and `commit`.

`starting` looks at a claimed task before it runs, `parents` ends those that have children, `trees`
cancels and starts again what belongs together, and `chores` finishes what takes several steps.
No store knows of any of it, and a task that has to do with no other one never comes here.
"""
