"""`holdfast demo`: a storm of tasks, a worker killed half way, and the proof that nothing was lost.

`tasks` is what runs, `journal` what the tasks write down themselves, `proof` compares that with the
store's history, `show` puts it on the screen, `run` goes through it all.
"""
