"""Sets in one frame: a row model (`drmdp.bellman.rows`), which rows share a budget, and who solves that.

* `curves` keeps for each action what was found of its cost as a function of its value, and `additive` finds the level that one budget for all actions
  of a state buys: exact for every row model, and the evaluation of a policy besides;
* `pairs` makes of any set with a budget for each state one with a budget for each state and action.
"""
