"""What compiled code reads: the data, the point, and what the last sweep left.

    layout = lay_out(model, ball)                      # once: arrays by pair (s, a), see `layout`
    point = point_at(layout, v)                        # once a sweep: v, its range, its order, see `point`
    memory = empty_memory(S, A, N, keeps)              # what a sweep leaves behind for the next one, see `memory`

States are numbered as in the layout, next states as in v. The two differ where a layout holds a range of the states only.
"""
