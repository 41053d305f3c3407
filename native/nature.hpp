// Nature's rows from what a sweep leaves behind: mixtures (1 - f) z(t1) + f z(t2) for every action.
//
// The rows of a pair are z_i, one for each kernel, averaged with their weights and the weight x of the
// pair, and pulled towards the data by the share of the move that is surely allowed. What they give
// to the top is one more entry; what they give to states that are not listed are prefix terms,
// slope u + level on the first states in descending order of u.
#pragma once

#include "rows/pair.hpp"
#include "solve/shared_budget.hpp"

namespace drmdp {

// Which rows are asked for, and where they go: pair k owns the entries entry_at[k] ... and the prefix
// terms prefix_at[k] ...
template <class Out>
struct Rows {
    Table<const double> weights;  // (S, A); pairs of weight 0 get none
    Table<const double> share;    // (S, N), or (S, 1) for all kernels
    View<const std::int64_t> entry_at, prefix_at;  // (S A + 1)
    View<std::int32_t> states, length;
    View<Out> mass, slope, level;
};

// The state of the highest stake of a pair: all mass that is moved to the top goes there.
template <class Real>
std::int32_t top_state(const Layout<Real>& layout, const Point& point, Index pair, View<double> u) {
    if (layout.unlisted) return point.order.states[0];
    Index best = 0;
    for (Index j = 1; j < layout.length(pair); ++j) best = u[j] > u[best] ? j : best;
    return layout.indices[layout.first(pair) + best];
}

template <class Model, class Real, class Out>
void write_rows(const Layout<Real>& layout, const Point& point, const Memory& memory,
                const Rows<Out>& rows, Index start, Index stop, const Model& model) {
    Stakes state(layout, start, stop, Model::PADDING);
    std::vector<double> z(to_lanes(layout.longest(start, stop)));
    for (Index s = start; s < stop; ++s) {
        if (!state.open(layout, point, s)) continue;
        for (Index a = 0; a < layout.A; ++a) {
            const double x = rows.weights[s][a];
            if (!(x > 0.0)) continue;
            const Index pair = s * layout.A + a, K = layout.length(pair), at = rows.entry_at[pair];
            const View<double> u = state.of(a), mixture = memory.by_row[s].part(3 * a, 3);
            const View<Out> mass = rows.mass.part(at, rows.entry_at[pair + 1] - at);
            for (Index j = 0; j < K; ++j) rows.states[at + j] = layout.indices[layout.first(pair) + j];
            if (mass.size() > K) rows.states[at + K] = top_state(layout, point, pair, u);
            Index term = rows.prefix_at[pair];
            for (Index i = 0; i < layout.N; ++i) {
                Row<Real> row = layout.row(pair, i);
                if (sizeof(Real) == 4) row.scale = scale_of(row);
                const View<const double> shares = rows.share[s];
                const double moved = shares[i < shares.size() ? i : shares.size() - 1];
                for (int side = 0; side < 2; ++side) {
                    const double t = mixture[side], part = side ? mixture[2] : 1.0 - mixture[2];
                    const double all = x * layout.weights[i] * part, bent = t > 0.0 ? all * moved : 0.0;
                    for (Index j = 0; j < K; ++j) mass[j] += Out((all - bent) * row[j]);
                    if (!(bent > 0.0)) continue;
                    const Beyond rest = model.fill(row, u, t, point.order, {z.data(), K});
                    for (Index j = 0; j < K; ++j) mass[j] += Out(bent * z[j]);
                    if (mass.size() > K) mass[K] += Out(bent * rest.top);
                    if (rest.length == 0) continue;
                    rows.length[term] = std::int32_t(rest.length);
                    rows.slope[term] = Out(bent * rest.slope), rows.level[term] = Out(bent * rest.level);
                    ++term;
                }
            }
        }
    }
}

}  // namespace drmdp
