"""The loop over states and multipliers that the ℓ1 and the ℓ2 maps share.

A state has one multiplier, or one for each kernel. It is searched from the guess in the memory; without one, or where that leads far off, from a cold
guess. Kernels are samples of one thing: the multiplier and the thresholds of one kernel are a guess for the others.
"""

from __future__ import annotations

from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.prox.displacement import Group, open_state, pass_on


@njit(**INLINE)
def sweep(search, write, cold_guess, start, stop, job, inside):
    """Project the states start … stop − 1, with three functions of a metric.

    * search(group, theta, guess, accuracy, doubt): the multiplier at which the distance is θ, trials, and a last change that `write` makes; −1
      for a guess in doubt that leads far off;
    * write(group, theta, multiplier, change): the rows at that multiplier; returns the multiplier to be remembered;
    * cold_guess(group, theta, each, before): a multiplier to begin with; `before` is that of the kernel before, or 0.

    reads   search, write, cold_guess, start, stop, inside
    fills   job.y, job.memory, job.work
    """
    layout, memory, each, accuracy = job.layout, job.memory, job.how.each, job.how.accuracy
    N = layout.weights.size
    w = job.work.ones if each else layout.weights
    for s in range(start, stop):
        theta = open_state(s, job, inside)
        for g in range((N if each else 1) if theta > 0.0 else 0):
            first, end = (g, g + 1) if each else (0, N)
            group = Group(layout, s, job.y, memory.threshold, job.work, w, first, end)
            guess, tried = memory.multiplier[s, g], 0
            multiplier, change = -1.0, 0.0
            if guess > 0.0:
                multiplier, tried, change = search(group, theta, guess, accuracy, True)
            if multiplier < 0.0:
                before = 0.0
                if each and g > 0:
                    before = memory.multiplier[s, g - 1]
                    pass_on(group, g - 1)
                guess = cold_guess(group, theta, each, before)
                multiplier, again, change = search(group, theta, guess, accuracy, False)
                tried = tried + again if multiplier > 0.0 else 0
            memory.trials[s, g] = tried
            memory.multiplier[s, g] = write(group, theta, multiplier, change)


@njit(**LEAN)
def heaviest(group):
    """The kernel of largest weight, by itself.

    reads   group
    returns group of that kernel
    """
    k = 0
    for i in range(group.w.size):
        if group.w[i] > group.w[k]:
            k = i
    return Group(group.layout, group.s, group.y, group.threshold, group.work, group.w, k, k + 1)
