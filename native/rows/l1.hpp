// l1 of the mean row: C = |z - y|_1, twice the mass that is moved to the top.
//
// To take the same share of every y_i(t) costs as much as to take it of the mean, and no choice costs
// less: one row stands for all kernels. At t the mass of every stake below -2/t is moved:
//
//     V = sum y u over the others,    E = 2 sum y over the moved.
//
// Both are steps in t. An answer holds between the ties t = -2/u of the moved stake next to the cut
// and of the next one to be moved; the answers beyond these are its neighbours.
#pragma once

#include <utility>

#include "pair.hpp"

namespace drmdp {

struct L1 : RowModel {
    static constexpr bool POLYGON = true, VERTICES = true;

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        const double cut = -2.0 / t;
        const Row<Real> row = pair.row(0);
        const auto [taken, value] = row_sums<2>(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part u = load(pair.u, j), moved = where(u < cut, y);
            return Terms<2>{moved, (y - moved) * u};
        });
        return {t, 2.0 * row.scale * taken, row.scale * value, 0.0};
    }

    template <class Real>
    std::pair<Answer, Answer> neighbours(const Pair<Real>& pair, const Answer& at) const {
        struct Edges {
            Part moved = all(-INFINITE), stays = all(0.0);
        };
        const double cut = -2.0 / at.t;
        const Row<Real> row = pair.row(0);
        const auto edges = row.template over<Edges>([&](Edges& e, Part y, Index j) DRMDP_LAMBDA {
            const Part u = load(pair.u, j);
            const Mask seen = y > 0.0, low = u < cut;
            e.moved = greater((seen & low) ? u : all(-INFINITE), e.moved);
            e.stays = lesser((seen & ~low) ? u : Part{}, e.stays);
        });
        const double moved = edges.greatest(&Edges::moved), stays = edges.least(&Edges::stays);
        const auto [back, more] = row_sums<2>(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part u = load(pair.u, j);
            return Terms<2>{where(u == moved, y) * row.scale, where(u == stays, y) * row.scale};
        });
        Answer before{}, after{};
        if (moved > -INFINITE)
            before = {-2.0 / moved, at.cost - 2.0 * back, at.value + back * moved, 0.0};
        if (stays < 0.0) after = {-2.0 / stays, at.cost + 2.0 * more, at.value - more * stays, 0.0};
        return {before, after};
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        const double cut = -2.0 / t;
        Beyond beyond;
        for (Index j = 0; j < row.size; ++j) {
            const bool moved = u[j] < cut;
            z[j] = moved ? 0.0 : row[j];
            beyond.top += moved ? row[j] : 0.0;
        }
        return beyond;
    }
};

// Total variation: half the l1 distance.
struct Tv : L1 {
    static double budget(double radius) { return 2.0 * radius; }
};

}  // namespace drmdp
