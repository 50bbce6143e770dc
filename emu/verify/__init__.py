"""Proof of the arithmetic: the kernels against the independent reference, up to all 2^32 pairs of inputs.

`catalog` lists what can be compared, `samples` makes inputs, `judge` compares one batch, `units` cuts the work into
picklable pieces, `engine` runs them (processes or dask.distributed), `report` shows the outcome, `differences` counts
how products differ.
"""
