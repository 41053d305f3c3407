// The proof of a row model from outside (`../../outside.hpp`): its own functions bound and measure, and must
// agree with each other. A bound is no proof if a row that they measure has more.
#pragma once

#include "../../outside.hpp"
#include "row_proof.hpp"

namespace drmdp::judge {

class OutsideRow : public Mixed<OutsideRow> {
public:
    OutsideRow(const Extra& extra, const Sight& sight, bool unlisted, Index longest)
        : Mixed(extra, sight, unlisted, longest), outside_(extra.outside), y_(longest), u_(longest), z_(longest) {}
    static double budget(double radius) { return radius; }

    // At a price.
    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) {
        const Measured tried = attempt(row, t);
        return {bound(row, t, t * tried.worth - tried.cost, t)};
    }

    // Of the values at a radius.
    template <class Real>
    Priced most(const SeenRow<Real>& row, double radius) {
        const Measured tried = attempt(row, radius);
        return {bound(row, radius, tried.cost <= radius ? tried.worth : -INFINITE, 1.0)};
    }
    template <class Real>
    Measured attempt(const SeenRow<Real>& row, double size) {
        const double mixture[] = {size, 0.0, 0.0};
        return mixed(row, {mixture, 3});
    }

    template <class Real>
    double point(const SeenRow<Real>& row, double size, View<double> z) const {
        const View<double> u(u_.data(), row.K);
        for (Index j = 0; j < row.K; ++j) u[j] = row.u[j] < -FLAT ? row.u[j] : 0.0;
        return outside_.bend(size, read(row), u, z).top;
    }

    template <class Real>
    double cost(const SeenRow<Real>& row, View<const double> z, double top, double mass) const {
        const View<double> divided(z_.data(), row.K);
        for (Index j = 0; j < row.K; ++j) divided[j] = z[j] / mass;
        return outside_.measure(read(row), divided, top / mass, off(row));
    }

private:
    template <class Real>
    double bound(const SeenRow<Real>& row, double size, double gain, double scale) const {
        if (outside_.fault.function) return INFINITE;
        const double found = outside_.bound(size, read(row).data(), row.u.data(), row.K, off(row));
        if (!(found >= gain - Outside::SURE * (std::fabs(gain) + scale)))
            outside_.refuse({"bound", "at least what the row has that `row` writes", size, found}, read(row), row.u);
        return found;
    }

    // Of y and of z, which were divided by sums of K numbers.
    template <class Real>
    static double off(const SeenRow<Real>& row) { return row.roundings() + double(row.K); }

    template <class Real>
    View<const double> read(const SeenRow<Real>& row) const {
        for (Index j = 0; j < row.K; ++j) y_[j] = row[j];
        return {y_.data(), row.K};
    }

    const Outside& outside_;
    mutable std::vector<double> y_, u_, z_;
};

// Every row has the radius of the set for itself, and a claim has one for each kernel.
template <class Real>
class OutsideRadius : public OutsideRow {
public:
    static constexpr bool ALONE = true;
    explicit OutsideRadius(const Question<Real>& q)
        : OutsideRow(q.extra, q.sight, q.layout.unlisted, q.layout.longest(q.start, q.stop)), q_(q) {}
    static double order(const Question<Real>&) { return INFINITE; }

    void open(Index s) { s_ = s; }
    bool bends(Index) const { return true; }
    double price(Index) const { return 1.0; }
    Priced dual(const SeenRow<Real>& row, double radius, double) { return most(row, radius); }
    Measured measure(const SeenRow<Real>& row, Index, Index i) {
        const double radius = q_.claim.by_kernel[s_][i];
        return radius > 0.0 ? attempt(row, radius) : Measured{row.below(), 0.0};
    }

private:
    const Question<Real>& q_;
    Index s_ = 0;
};

}  // namespace drmdp::judge
