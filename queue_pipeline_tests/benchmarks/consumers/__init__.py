"""What a team would use instead, each in processes of its own: the same rows in, the same invoices out.

A consumer is a class with `install`, `fill` and `drain`; `__main__` runs one, `crew` starts several and times them.
"""
