// Where the mass of each listed entry can go within its pair, nearest first, itself before all.
#pragma once

#include <cmath>
#include <vector>

#include "chain.hpp"
#include "sorting.hpp"

namespace drmdp {

// What it costs to move from state to state: lists of what is near, a matrix, or places whose distance is
// the sum of the differences of their coordinates.
struct Ground {
    View<const std::int64_t> list_at;      // lists by state, or none
    View<const std::int32_t> list_target;
    View<const double> list_cost;          // ascending
    Table<const double> places;            // (S, S) costs if dense, else (S, k) coordinates
    bool dense = false;

    double cost(Index j, Index k) const {
        if (dense) return places[j][k];
        double total = 0.0, rest = 0.0;
        for (Index d = 0; d < places.columns(); ++d)
            add_to(total, rest, std::fabs(places[j][d] - places[k][d]));
        return total;
    }
};

struct Lists {
    View<std::int64_t> at;       // (entries + 1)
    View<std::int32_t> target;   // entries of the pair
    View<double> cost;
};

// Fills the lists of all entries; `where` (S) holds -1 before and after. How long they are together,
// which may be more than there was room for.
inline Index fill_lists(View<const std::int64_t> indptr, View<const std::int32_t> indices,
                        const Ground& ground, const Lists& out, View<std::int64_t> where) {
    std::vector<double> key;
    std::vector<Index> order;
    Index end = 0;
    const auto put = [&](Index to, double cost) {
        if (end < out.target.size()) out.target[end] = std::int32_t(to), out.cost[end] = cost;
        ++end;
    };
    out.at[0] = 0;
    for (Index pair = 0; pair + 1 < indptr.size(); ++pair) {
        const Index first = indptr[pair], K = indptr[pair + 1] - first;
        key.resize(K);
        for (Index e = 0; e < K; ++e) where[indices[first + e]] = e;
        for (Index e = 0; e < K; ++e) {
            const Index j = indices[first + e];
            if (!ground.list_target.empty()) {
                for (Index k = ground.list_at[j]; k < ground.list_at[j + 1]; ++k) {
                    const Index to = where[ground.list_target[k]];
                    if (to < 0) continue;
                    put(to, ground.list_cost[k]);
                }
            } else {
                for (Index k = 0; k < K; ++k) key[k] = k == e ? -1.0 : ground.cost(j, indices[first + k]);
                rank({key.data(), K}, K, order);
                for (const Index k : order)
                    if (key[k] < INFINITE) put(k, key[k] > 0.0 ? key[k] : 0.0);
            }
            out.at[first + e + 1] = end;
        }
        for (Index e = 0; e < K; ++e) where[indices[first + e]] = -1;
    }
    return end;
}

}  // namespace drmdp
