// The rows of one pair (state, action), and what a row model must provide.
//
// A row model knows one cost C(z | y), convex in the distribution z and 0 at y. On stakes
// -1 <= u <= 0 it answers a multiplier t > 0 with the row z(t) that maximises t z.u - C(z | y). Nature
// always has a next state of stake 0, the top, listed or not. It is an object with
//
//     response(pair, t)    sum_i w_i of value z.u, cost C and slope dV/dt at 0 < t <= LARGEST
//     fill(row, u, t, order, z)   the listed part of one row at t, or at infinity; returns the rest
//     budget(radius)       what C may be
//     KNOWN                how many numbers it keeps of each row while a state is solved
//     PADDING              the stake of entries behind a row, whose mass is 0
//     POLYGON              whether its curves may be polygons; then `neighbours(pair, answer)` are the
//                          vertices on both sides of an answer, if VERTICES says that they are known
//     ROOM                 work space in rows as long as the stakes and in rows as long as the weights
#pragma once

#include <vector>

#include "../data.hpp"
#include "../solve/curves.hpp"

namespace drmdp {

constexpr double LARGEST = 1e14;  // from here on a row counts as saturated: within 1e-13 of its value

template <class Real>
struct Pair {
    const Layout<Real>* layout = nullptr;
    const Order* order = nullptr;
    Index number = 0;           // s A + a
    View<const double> weights; // (N), and zeros up to a multiple of eight
    View<const double> scale;   // (N) of float32 rows, or none
    View<double> u;             // stakes, padded
    View<double> room;          // see ROOM
    View<double> known;         // (KNOWN, size of weights)
    bool fresh = true;          // nothing is known

    Index n_rows() const { return layout->N; }
    Row<Real> row(Index i) const {
        Row<Real> row = layout->row(number, i);
        if (!scale.empty()) row.scale = scale[i];
        return row;
    }
    // Work space as long as the stakes, and as long as the weights behind `stakes` of those.
    View<double> by_entry(Index k) const { return room.part(k * u.size(), u.size()); }
    View<double> by_row(Index stakes, Index k) const {
        return room.part(stakes * u.size() + k * weights.size(), weights.size());
    }
    // sum_i w_i of what each row answers.
    template <class One>
    Answer sum(double t, One one) const {
        Answer total{t};
        for (Index i = 0; i < n_rows(); ++i) {
            const Answer own = one(row(i));
            total.value += weights[i] * own.value;
            total.cost += weights[i] * own.cost;
            total.slope += weights[i] * own.slope;
        }
        return total;
    }
};

struct Room {
    Index stakes, rows;
};

// The pairs of a state, and the work space of a row model.
template <class Model, class Real>
class Pairs {
public:
    Pairs(const Layout<Real>& layout, const Order& order, Index start, Index stop)
        : layout_(layout), order_(order), weights_(to_lanes(layout.N)),
          scale_(sizeof(Real) == 4 ? layout.A * layout.N : 0),
          room_(Model::ROOM.stakes * to_lanes(layout.longest(start, stop)) + Model::ROOM.rows * weights_.size()),
          known_(layout.A * Model::KNOWN * weights_.size()), asked_(layout.A) {
        std::copy(layout.weights.begin(), layout.weights.end(), weights_.begin());
    }

    void open(Index s) {
        s_ = s;
        forget();
        for (Index k = 0; k < Index(scale_.size()); ++k)
            scale_[k] = scale_of(layout_.row(s * layout_.A + k / layout_.N, k % layout_.N));
    }
    void forget() { std::fill(asked_.begin(), asked_.end(), char(0)); }
    void forget(Index a) { asked_[a] = 0; }
    // The weights of the kernels, and zeros up to a multiple of eight.
    View<const double> weights() const { return {weights_.data(), Index(weights_.size())}; }

    // The pair of an action with stakes u, which will be asked.
    Pair<Real> of(Index a, View<double> u) {
        const Index known = Model::KNOWN * Index(weights_.size());
        Pair<Real> pair;
        pair.layout = &layout_, pair.order = &order_, pair.number = s_ * layout_.A + a;
        pair.weights = weights(), pair.u = u;
        if constexpr (sizeof(Real) == 4) pair.scale = {scale_.data() + a * layout_.N, layout_.N};
        pair.room = {room_.data(), Index(room_.size())};
        pair.known = {known_.data() + a * known, known}, pair.fresh = !asked_[a];
        asked_[a] = 1;
        return pair;
    }

private:
    const Layout<Real>& layout_;
    const Order& order_;
    std::vector<double> weights_, scale_, room_, known_;
    std::vector<char> asked_;  // (A) whether `known_` holds anything of an action
    Index s_ = 0;
};

// What most row models have in common.
struct RowModel {
    static constexpr bool POLYGON = false, VERTICES = false;
    static constexpr double PADDING = 0.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{0, 0};

    static double budget(double radius) { return radius; }
};

// What a row gives to states beside its entries: to one of the highest stake, and
// slope u + level to each of the first states in descending order of u.
struct Beyond {
    double top = 0.0;
    Index length = 0;
    double slope = 0.0, level = 0.0;
};

// n sums over a row as it is stored, or one: what the part y of its numbers at j adds to them.
template <int n, class Real, class Body>
DRMDP_INLINE std::array<double, n> row_sums(const Row<Real>& row, Body terms) {
    return totals<n>(row.template over<Terms<n>>(
        [&](Terms<n>& sums, Part y, Index j) DRMDP_LAMBDA { sums.add(terms(y, j)); }));
}
template <class Real, class Body>
DRMDP_INLINE double row_sum(const Row<Real>& row, Body term) {
    return row_sums<1>(row, [&](Part y, Index j) DRMDP_LAMBDA { return Terms<1>{term(y, j)}; })[0];
}

// Divide a row that has no mass elsewhere by its sum.
inline Beyond normalised(View<double> z) {
    double mass = 0.0;
    for (double own : z) mass += own;
    for (double& own : z) own /= mass;
    return {};
}

}  // namespace drmdp
