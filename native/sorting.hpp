// Orders of a few numbers. Ties stay in the order of their places, so that bits do not depend on who sorts.
#pragma once

#include <algorithm>
#include <vector>

#include "views.hpp"

namespace drmdp {

// Places of the first n keys in ascending order.
inline void rank(View<const double> keys, Index n, std::vector<Index>& order) {
    order.resize(n);
    for (Index k = 0; k < n; ++k) order[k] = k;
    std::sort(order.begin(), order.end(), [&](Index a, Index b) {
        return keys[a] < keys[b] || (keys[a] == keys[b] && a < b);
    });
}

}  // namespace drmdp
