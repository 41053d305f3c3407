// Intervals; nothing that is handed over is needed.
//
// l <= z <= h are the bounds in force of a row. U: for any threshold eta weak duality gives
//
//     max { z.u : l <= z <= h, sum z = 1 } <= eta + sum_{u>eta} h (u - eta) + sum_{u<eta} l (u - eta),
//
// with equality at the stake of the last state that is filled. L: the value of the row that has its lower
// bounds and fills the rest from the top, built here.
//
// **Rounding.** The bounds in force and the sum of a row are off by (K + 8) e, relatively, K being its
// entries. So U is off by (K + 16) e times the sum of the sizes of its terms. The row built is that near to
// one which is exactly allowed, its value takes K + 8 further roundings, and it has no part above 1: L is off
// by 4 (K + 16) e.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

class Intervals : public Additive {
public:
    static constexpr bool FREE = true, ALONE = true;
    explicit Intervals(const Question<double>& q) : layout_(q.layout) {}
    static double budget(double radius) { return radius; }
    static double order(const Question<double>&) { return INFINITE; }

    void open(Index s) { radius_ = layout_.radius[s]; }
    bool bends(Index) const { return true; }
    double price(Index) const { return 1.0; }

    Measured measure(const SeenRow<double>& row, Index, Index) {
        order_.resize(row.K);
        std::iota(order_.begin(), order_.end(), Index(0));
        std::stable_sort(order_.begin(), order_.end(), [&](Index j, Index k) { return row.u[j] > row.u[k]; });
        double left = 1.0, worth = 0.0;
        eta_ = -1.0;
        for (Index j = 0; j < row.K; ++j) left -= least(row, j), worth += least(row, j) * row.u[j];
        for (Index k = 0; k < row.K && (k == 0 || left > 0.0); ++k) {
            const Index j = order_[k];
            const double take = std::min(std::max(left, 0.0), most(row, j) - least(row, j));
            eta_ = row.u[j], worth += take * eta_, left -= take;
        }
        return {worth - 4.0 * double(row.K + 16) * EPSILON, 0.0};
    }

    // Of the row that was measured last.
    Priced dual(const SeenRow<double>& row, double, double) const {
        double above = eta_, size = -eta_;
        for (Index j = 0; j < row.K; ++j) {
            const double by = row.u[j] - eta_, z = by > 0.0 ? most(row, j) : least(row, j);
            above += z * by, size += z * std::fabs(by);
        }
        return {above + double(row.K + 16) * EPSILON * (size + 1.0)};
    }

private:
    double least(const SeenRow<double>& row, Index j) const {
        return std::max(layout_.mean[row.first + j] - radius_, 0.0);
    }
    double most(const SeenRow<double>& row, Index j) const { return std::min(row.raw(j) + radius_, 1.0); }

    const Layout<double>& layout_;
    double radius_ = 0.0, eta_ = 0.0;
    std::vector<Index> order_;
};

}  // namespace drmdp::judge
