// What proofs of divergences share: a row at a multiplier, mixed and measured.
//
// A divergence D derives from Mixed<D> and has `point(row, t, z)`, which writes a row near the best one at
// t (infinity included) and returns what a top has that is not listed, and `cost(row, z, top, mass)`, at
// least C(z/mass | y) by definition; and `dual(row, t, A)`, at least max t z.u - C(z | y) over rows z, by any
// threshold; terms lose `row.roundings()` e, relatively (A actions share what some need). exp, log and
// their kin are right up to 2 e, relatively.
//
// **Rounding.** z as computed defines the row z/sum z. The sum is off by depth(K) e/2, relatively, which moves
// the value and every z/mass by as much: margins of C are made of `roundings`, twice that and more.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

// Stakes this near to the top are plateaus, as they are for the response: what they are worth differs by
// no more, and leaving them costs.
constexpr double FLAT = 1e-13;

template <class Real>
double own_top(const SeenRow<Real>& row) {
    double top = -INFINITE;
    for (Index j = 0; j < row.K; ++j)
        if (row.raw(j) > 0.0 && row.u[j] > top) top = row.u[j];
    return top;
}

template <class Divergence>
class Mixed : public Additive {
public:
    Mixed(const Extra&, const Sight&, bool, Index longest) : z_(longest), other_(longest) {}
    void open_state() {}

    template <class Real>
    Measured mixed(const SeenRow<Real>& row, View<const double> mixture) {
        const double f = mixture[2] >= 0.0 && mixture[2] <= 1.0 ? mixture[2] : 0.0;
        const View<double> z(z_.data(), row.K), other(other_.data(), row.K);
        double top = (1.0 - f) * bend(row, f < 1.0 ? mixture[0] : mixture[1], z);
        if (f == 1.0) top = bend(row, mixture[1], z);
        else if (f > 0.0) {
            top += f * bend(row, mixture[1], other);
            for (Index j = 0; j < row.K; ++j) z[j] = (1.0 - f) * z[j] + f * other[j];
        }
        const double mass = top + block_sum(row.K, [&](Index j) { return z[j]; });
        const double value = block_sum(row.K, [&](Index j) { return z[j] * row.u[j]; });
        const double margin = (depth(row.K) + 16.0) * EPSILON * std::fabs(value);
        return {value / mass - margin, self().cost(row, z, top, mass)};
    }

private:
    const Divergence& self() const { return static_cast<const Divergence&>(*this); }

    // A row of mass 1 at t, that of the data if t is no multiplier; returns what the top has.
    template <class Real>
    double bend(const SeenRow<Real>& row, double t, View<double> z) const {
        double top = 0.0, mass = 0.0;
        if (t > 0.0) {
            mass = top = self().point(row, t, z);
            for (double own : z) mass += own;
        }
        if (!(mass > 1e-200 && mass < INFINITE)) {
            for (Index j = 0; j < row.K; ++j) z[j] = row[j];
            return 0.0;
        }
        for (double& own : z) own /= mass;
        return top / mass;
    }

    std::vector<double> z_, other_;
};

}  // namespace drmdp::judge
