// v in descending order, and at a sweep, read from the fields of drmdp.layout.point.Order and Point.
#pragma once

#include "arguments.hpp"

namespace drmdp {

template <>
struct Reader<Order> {
    static Order read(const Fields& at) {
        Order to;
        to.states = at(1, "states[K]");
        const Index n = to.states.size();
        Arguments& from = at.from;
        from.size('L') = n + (n > 0), from.size('R') = n > 0 ? from.size('T') : 0, from.size('B') = 1;
        to.u = at(2, "u[K]"), to.sum1 = at(3, "sum1[L]"), to.sum2 = at(4, "sum2[L]");
        to.rank = at(5, "rank[R]"), to.below = at(6, "below[K]");
        to.second = at(7, "second"), to.level = at(8, "level"), to.beyond = at(9, "beyond[B]");
        return to;
    }
};

}  // namespace drmdp
