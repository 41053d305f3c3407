"""Input of the compiled routines: data, point, and warm starts of the last sweep.

    layout = lay_out(model, ambiguity)       # once: arrays by pair (s, a), see `layout`
    point = point_at(layout, v)              # once a sweep: v, its range, its order, see `point`
    memory = empty_memory(S, A, N, keeps)    # warm starts and witnesses of a sweep, see `memory`

States are numbered as in the layout, next states as in v. The two differ where a layout holds a
range of the states only.
"""
