// Nature's rows from what a sweep leaves behind: mixtures (1 - f) z(t1) + f z(t2) for every row.
//
// The rows of a pair are z_i, one for each kernel, averaged with their weights and the weight x of the
// pair, and pulled towards the data by the share of the move that is surely allowed. What they give
// to the top is one more entry; what they give to states that are not listed are prefix terms,
// slope u + level on the first states in descending order of u.
#pragma once

#include "rows/pair.hpp"
#include "solve/shared_budget.hpp"

namespace drmdp {

// Numbers of one precision or the other.
struct Numbers {
    View<double> wide;
    View<float> single;

    void set(Index k, double x) const {
        if (single.empty()) wide[k] = x;
        else single[k] = float(x);
    }
};

// Which rows are asked for, and where they go: pair k owns the entries entry_at[k] ... and the prefix
// terms prefix_at[k] ...
struct Rows {
    Table<const double> weights;  // (S, A); pairs of weight 0 get none
    Table<const double> share;    // (S, N), or (S, 1) for all kernels
    View<const std::int64_t> entry_at, prefix_at;  // (S A + 1)
    View<std::int32_t> states, length;
    Numbers mass, slope, level;

    double share_of(Index s, Index i) const {
        const View<const double> shares = share[s];
        return shares[i < shares.size() ? i : shares.size() - 1];
    }
};

// The state of the highest stake of a pair: all mass that is moved to the top goes there.
template <class Real>
std::int32_t top_state(const Layout<Real>& layout, const Point& point, Index pair, View<double> u) {
    if (layout.unlisted) return point.order.states[0];
    Index best = 0;
    for (Index j = 1; j < layout.length(pair); ++j) best = u[j] > u[best] ? j : best;
    return layout.indices[layout.first(pair) + best];
}

// Writes the rows of one model, pair by pair; mixture(s, a, i) tells what row i is made of.
template <class Model, class Real, class Mixtures>
class RowWriter {
public:
    RowWriter(const Layout<Real>& layout, const Point& point, const Extra& extra, Mixtures mixture,
              const Rows& rows, Index start, Index stop)
        : layout_(layout), point_(point), extra_(extra), mixture_(mixture), rows_(rows),
          model_(made<Model>(extra)),
          state_(layout, start, stop, Model::PADDING), z_(to_lanes(layout.longest(start, stop))),
          mass_(z_.size() + 1) {}

    void write(Index s) {
        if (!state_.open(layout_, point_, s)) return;
        for (Index a = 0; a < layout_.A; ++a)
            if (rows_.weights[s][a] > 0.0) write(s, a);
    }

private:
    void write(Index s, Index a) {
        const Index pair = s * layout_.A + a, K = layout_.length(pair), at = rows_.entry_at[pair];
        const Index entries = rows_.entry_at[pair + 1] - at;
        const View<double> u = state_.of(a);
        std::fill(mass_.begin(), mass_.end(), 0.0);
        model_ = made<Model>(extra_);
        term_ = rows_.prefix_at[pair];
        for (Index i = 0; i < layout_.N; ++i) add(s, a, i, u);
        for (Index j = 0; j < K; ++j) rows_.states[at + j] = layout_.indices[layout_.first(pair) + j];
        if (entries > K) rows_.states[at + K] = top_state(layout_, point_, pair, u);
        for (Index j = 0; j < entries; ++j) rows_.mass.set(at + j, mass_[j]);
    }

    void add(Index s, Index a, Index i, View<const double> u) {
        Row<Real> row = layout_.row(s * layout_.A + a, i);
        if (sizeof(Real) == 4) row.scale = scale_of(row);
        const Mixture mixture = mixture_(s, a, i);
        const double share = rows_.share_of(s, i), x = rows_.weights[s][a] * layout_.weights[i];
        for (int side = 0; side < 2; ++side) {
            const double t = side ? mixture.t2 : mixture.t1;
            const double part = side ? mixture.share : 1.0 - mixture.share;
            if (side && !(part > 0.0)) break;
            const double moved = t > 0.0 ? x * part * share : 0.0, stays = x * part - moved;
            for (Index j = 0; j < row.size; ++j) mass_[j] += stays * row[j];
            if (!(moved > 0.0)) continue;
            const View<double> z(z_.data(), row.size);
            const Beyond rest = model_.fill(row, u, t, point_.order, z);
            for (Index j = 0; j < row.size; ++j) mass_[j] += moved * z[j];
            mass_[row.size] += moved * rest.top;
            if (rest.length == 0) continue;
            rows_.length[term_] = std::int32_t(rest.length);
            rows_.slope.set(term_, moved * rest.slope), rows_.level.set(term_, moved * rest.level);
            ++term_;
        }
    }

    const Layout<Real>& layout_;
    const Point& point_;
    const Extra& extra_;
    const Mixtures mixture_;
    const Rows& rows_;
    Model model_;
    Stakes state_;
    std::vector<double> z_, mass_;  // of a row, and of a pair; the last number is that of the top
    Index term_ = 0;
};

template <class Model, class Real, class Mixtures>
void write_rows(const Layout<Real>& layout, const Point& point, const Extra& extra, Mixtures mixture,
                const Rows& rows, Index start, Index stop) {
    RowWriter<Model, Real, Mixtures> writer(layout, point, extra, mixture, rows, start, stop);
    for (Index s = start; s < stop; ++s) writer.write(s);
}

}  // namespace drmdp
