"""The Train Benchmark: railway models of any size, six well-formedness queries, and their repair.

A match of a query is a violation of a rule of the railway. The benchmark reads a model, checks it,
and then changes and rechecks it round by round. Models, selections and match counts are those of
the public benchmark, draw by draw of its random numbers.
"""
