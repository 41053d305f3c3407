// The rows of one pair (state, action), and what a row model must provide.
//
// A row model knows one cost C(z | y), convex in the distribution z and 0 at y. On stakes
// -1 <= u <= 0 it answers a multiplier t > 0 with the row z(t) that maximises t z.u - C(z | y). Nature
// always has a next state of stake 0, the top, listed or not. It is an object with
//
//     response(pair, t)    sum_i w_i of value z.u, cost C and slope dV/dt at 0 < t < LARGEST
//     saturated(pair)      the same at the cheapest rows of greatest value
//     fill(row, u, t, order, z)   the listed part of one row at t, or at infinity; returns the rest
//     KNOWN                how many numbers it keeps of each row while a state is solved
//     PADDING              the stake of entries behind a row, whose mass is 0
//     POLYGON              whether its curves may be polygons; then `neighbours(pair, answer)` are the
//                          vertices on both sides of an answer, if VERTICES says that they are known
//     ROOM                 work space in rows as long as the stakes and in rows as long as the weights
#pragma once

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
};

struct Room {
    Index stakes, rows;
};

// What a row gives to states beside its entries: to one of the highest stake, and
// slope u + level to each of the first states in descending order of u.
struct Beyond {
    double top = 0.0;
    Index length = 0;
    double slope = 0.0, level = 0.0;
};

struct Highest {
    Part top = all(-INFINITE);
};

// The largest stake that a row has seen.
template <class Real>
double own_top(const Row<Real>& row, View<const double> u) {
    const auto found = row.template over<Highest>(
        [&](Highest& highest, Part y, Index j) __attribute__((always_inline)) {
            const Part stake = load(u.at(j, WIDTH));
            highest.top = greater(y > 0.0 ? stake : all(-INFINITE), highest.top);
        });
    return found.greatest(&Highest::top);
}

}  // namespace drmdp
