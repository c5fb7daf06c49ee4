"""The Train Benchmark: railway models of any size, six well-formedness queries, and their repair.

A match of a query is a violation of a rule of the railway. The benchmark reads a model, checks it,
and then transforms and rechecks it in rounds. Models, selections and match counts equal those of
the public benchmark: the same random numbers are drawn in the same order.
"""
