// l1 of the mean row:   h = sum y max(t u, -2),     C = 2 (mass moved to the top, where u is 0).
//
// The row at t has the mass of all stakes below -2/t moved, whatever the solver's was.
//
// **Rounding.** t u as computed is what another stake, off by e/2, would give: h is off by n e sum|terms|.
// Value and cost are off by n e, relatively, as their terms have one sign.
#pragma once

#include "../shared_budget.hpp"

namespace drmdp::judge {

class L1 {
public:
    L1(const Sight&, bool, Index) {}
    void open_state() {}
    static constexpr double FAINT = 0.0;
    static double budget(double radius) { return radius; }

    template <class Real>
    double dual(const SeenRow<Real>& row, double t) const {
        const double total = row.scale * block_sum(row.K, [&](Index j) {
            return row.raw(j) * std::max(t * row.u[j], -2.0);
        });
        return total * (1.0 - (row.roundings() + 4.0) * EPSILON);
    }

    template <class Real>
    Measured measure(const SeenRow<Real>& row, View<const double> mixture) const {
        const double f = mixture[2] >= 0.0 && mixture[2] <= 1.0 ? mixture[2] : 0.0;
        const Measured first = at(row, mixture[0]), second = at(row, mixture[1]);
        return {(1.0 - f) * first.worth + f * second.worth, (1.0 - f) * first.cost + f * second.cost};
    }

private:
    template <class Real>
    static Measured at(const SeenRow<Real>& row, double t) {
        const double cut = t > 0.0 ? -2.0 / t : -INFINITE, more = (row.roundings() + 8.0) * EPSILON;
        const double value = row.scale * block_sum(row.K, [&](Index j) {
            return row.u[j] < cut ? 0.0 : row.raw(j) * row.u[j];
        });
        const double moved = row.scale * block_sum(row.K, [&](Index j) {
            return row.u[j] < cut ? row.raw(j) : 0.0;
        });
        return {value * (1.0 + more), 2.0 * moved * (1.0 + more)};
    }
};

// Total variation: half the l1 distance.
class Tv : public L1 {
public:
    using L1::L1;
    static double budget(double radius) { return 2.0 * radius; }
};

}  // namespace drmdp::judge
