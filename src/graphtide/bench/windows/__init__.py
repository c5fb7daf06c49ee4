"""Windows over graph streams: the measurements of paper 5, beside re-evaluation and pyoxigraph.

Every event is a report. Incremental evaluation runs through whole windows; evaluating anew at every
event takes so long that only some events are measured, after the window has been filled.
"""
