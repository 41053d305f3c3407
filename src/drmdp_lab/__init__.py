"""Experiments with drmdp: measurements (`bench`) and the paper (`paper`). Nothing in `drmdp`
imports this but two verbs.
"""
