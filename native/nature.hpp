// Nature's rows from what a sweep leaves behind.
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

// Nature's rows after a sweep.
template <class Real>
struct Response {
    const Layout<Real>& layout;
    const Point& point;
    const Memory& memory;
    const Rows& rows;
    const Extra& extra;
    Index start, stop;
};

// A pair that is written: its stakes, and the mass of its listed states and of what comes behind them.
struct Written {
    Index s, a, pair, at;  // its entries begin at `at`
    View<const double> u;
    View<double> mass;
};

// Write all rows. Nature is asked to open(pair) each pair, and to add(pair, i, row, x, share) the row of kernel
// i, times x, moved by a share of what she did.
template <class Nature, class Real>
void write_rows(const Response<Real>& asked, Nature nature, double padding = 0.0) {
    const Layout<Real>& layout = asked.layout;
    const Rows& rows = asked.rows;
    Stakes state(layout, asked.start, asked.stop, padding);
    std::vector<double> mass;
    for (Index s = asked.start; s < asked.stop; ++s) {
        if (!state.open(layout, asked.point, s)) continue;
        for (Index a = 0; a < layout.A; ++a) {
            if (!(rows.weights[s][a] > 0.0)) continue;
            const Index pair = s * layout.A + a, at = rows.entry_at[pair];
            mass.assign(rows.entry_at[pair + 1] - at, 0.0);
            const Written written{s, a, pair, at, state.of(a), {mass.data(), Index(mass.size())}};
            for (Index j = 0; j < layout.length(pair); ++j)
                rows.states[at + j] = layout.indices[layout.first(pair) + j];
            nature.open(written);
            for (Index i = 0; i < layout.N; ++i)
                nature.add(written, i, row_of(layout, pair, i), rows.weights[s][a] * layout.weights[i],
                           rows.share_of(s, i));
            for (Index j = 0; j < Index(mass.size()); ++j) rows.mass.set(at + j, mass[j]);
        }
    }
}

// The state of the highest stake of a pair: all mass that is moved to the top goes there.
template <class Real>
std::int32_t top_state(const Response<Real>& asked, const Written& to) {
    if (asked.layout.unlisted) return asked.point.order.states[0];
    const Index K = asked.layout.length(to.pair);
    const Index best = std::max_element(to.u.begin(), to.u.begin() + K) - to.u.begin();
    return asked.layout.indices[asked.layout.first(to.pair) + best];
}

// Rows of one model: mixtures (1 - f) z(t1) + f z(t2), of which mixture(s, a, i) tells.
template <class Model, class Real, class Mixtures>
class Mixing {
public:
    Mixing(const Response<Real>& asked, Mixtures mixture)
        : asked_(asked), mixture_(mixture), model_(made<Model>(asked.extra)) {}

    void open(const Written& to) {
        const Index K = asked_.layout.length(to.pair);
        z_.resize(K);
        model_ = made<Model>(asked_.extra);
        term_ = asked_.rows.prefix_at[to.pair];
        if (to.mass.size() > K) asked_.rows.states[to.at + K] = top_state(asked_, to);
    }

    void add(const Written& to, Index i, const Row<Real>& row, double x, double share) {
        const Rows& rows = asked_.rows;
        const Mixture mixture = mixture_(to.s, to.a, i);
        for (int side = 0; side < 2; ++side) {
            const double t = side ? mixture.t2 : mixture.t1;
            const double part = side ? mixture.share : 1.0 - mixture.share;
            if (side && !(part > 0.0)) break;
            const double moved = t > 0.0 ? x * part * share : 0.0, stays = x * part - moved;
            for (Index j = 0; j < row.size; ++j) to.mass[j] += stays * row[j];
            if (!(moved > 0.0)) continue;
            const Beyond rest = model_.fill(row, to.u, t, asked_.point.order, {z_.data(), row.size});
            for (Index j = 0; j < row.size; ++j) to.mass[j] += moved * z_[j];
            if (row.size < to.mass.size()) to.mass[row.size] += moved * rest.top;
            if (rest.length == 0) continue;
            rows.length[term_] = std::int32_t(rest.length);
            rows.slope.set(term_, moved * rest.slope), rows.level.set(term_, moved * rest.level);
            ++term_;
        }
    }

private:
    const Response<Real>& asked_;
    const Mixtures mixture_;
    Model model_;
    std::vector<double> z_;
    Index term_ = 0;
};

template <class Model, class Real, class Mixtures>
void write_mixtures(const Response<Real>& asked, Mixtures mixture) {
    write_rows(asked, Mixing<Model, Real, Mixtures>(asked, mixture), Model::PADDING);
}

}  // namespace drmdp
