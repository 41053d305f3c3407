"""What compiled code reads: the data, the point, and one state at a time.

    layout = lay_out(model, ball)                      # once: arrays by pair (s, a), see `layout`
    point = point_at(layout, v)                        # once a sweep: v, its range, its order, see `point`
    memory = empty_memory(S, A, N, keeps, dtype)       # what a sweep leaves behind for the next one, see `memory`
    work = family.workspace(layout, point, lo, hi)     # once a range; work.state is a `Scratch`
    base, unit = normalise(layout, point, s, work.state)

After the last line work.state holds u ∈ [−1, 0], cost ≥ 0 and the nominal values of state s, in which every family does its arithmetic;
F(v)(s) is base + unit times its result. `sorting` brings the entries of a state in order without allocating anything.

States are numbered as in the layout, next states as in v. The two differ where a layout holds a range of the states only.
"""
