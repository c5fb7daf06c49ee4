"""Bodies before a camera, and the gesture that turns a slide: the case study of paper 4.

A recorded turn of the right arm is played for many bodies at once, out of step with each other.
Queries find postures; that a posture comes or goes is an event; four of these make a gesture.
"""
