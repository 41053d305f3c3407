// l1 of the mean row:   h = sum y max(t u, -2),     C = 2 (mass moved to the top, where u is 0).
//
// The row at t has the mass of all stakes below -2/t moved, whatever the solver's was.
//
// **Rounding.** t u as computed is what another stake, off by e/2, would give: h is off by n e sum|terms|.
// Value and cost are off by n e, relatively, as their terms have one sign.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

class L1 : public Additive {
public:
    L1(const Extra&, const Sight&, bool, Index) {}
    void open_state() {}
    static double budget(double radius) { return radius; }

    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) const {
        const double total = row.scale * block_sum(row.K, [&](Index j) {
            return row.raw(j) * std::max(t * row.u[j], -2.0);
        });
        return {total * (1.0 - (row.roundings() + 4.0) * EPSILON)};
    }

    template <class Real>
    Measured mixed(const SeenRow<Real>& row, View<const double> mixture) const {
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

// A distance for each kernel, d_i = 2 sum_a m_ia: nature takes masses m_ia from the lowest stakes on, to the top.
//
// **Rounding.** Of an entry with y as computed the part take/y is moved: no entry becomes negative, and the masses
// moved, as well as their gains, are off by (n + K) e, relatively.
template <class Real>
class Masses : public L1 {
public:
    explicit Masses(const Question<Real>& q) : L1(q.extra, q.sight, false, 0), q_(q) {}
    void open(Index s) { s_ = s; }
    bool bends(Index a) const {
        for (Index i = 0; i < q_.layout.N; ++i)
            if (mass(a, i) > 0.0) return true;
        return false;
    }
    double price(Index i) const {
        const double own = q_.claim.by_kernel[s_][i];
        return own > 0.0 && own < 1e100 ? 1.0 / own : 0.0;
    }
    Measured measure(const SeenRow<Real>& row, Index a, Index i) {
        if (i == 0) {
            ascending_.resize(row.K);
            std::iota(ascending_.begin(), ascending_.end(), Index(0));
            std::stable_sort(ascending_.begin(), ascending_.end(),
                             [&](Index j, Index k) { return row.u[j] < row.u[k]; });
        }
        const double more = (2.0 * row.roundings() + double(2 * row.K)) * EPSILON;
        double left = mass(a, i), gain = 0.0, moved = 0.0;
        for (Index k = 0; k < row.K && left > 0.0; ++k) {
            const double take = std::min(left, row[ascending_[k]]);
            gain -= take * row.u[ascending_[k]], left -= take, moved += take;
        }
        return {(1.0 + more) * row.worth() + (1.0 - more) * gain, 2.0 * moved * (1.0 + more)};
    }

private:
    double mass(Index a, Index i) const { return std::max(q_.claim.by_row[s_][a * q_.layout.N + i], 0.0); }

    const Question<Real>& q_;
    Index s_ = 0;
    std::vector<Index> ascending_;
};

// Total variation: half the l1 distance.
class Tv : public L1 {
public:
    using L1::L1;
    static double budget(double radius) { return 2.0 * radius; }
};

}  // namespace drmdp::judge
