// Norms of numbers of the kernels, as budgets of order p have them, rounded up.
//
// A norm is taken of v/max v. A power x^q is off by (2 + 3 |q log x|) e, relatively, and by |q log x| e as
// its exponent is off by e; that is added up with the terms, and the root divides it by q. The base is off
// by e, which the root turns back into e. It is off itself by (4 + 4 |log s|/q) e, s the sum.
#pragma once

#include "../elementary.hpp"
#include "sums.hpp"

namespace drmdp::judge {

// (sum_i w_i each_i^q)^(1/q), rounded up; max each_i for q = infinity.
inline double norm_above(double q, View<const double> weights, const std::vector<double>& each) {
    double most = 0.0, total = 0.0, off = 0.0;
    for (double own : each) {
        if (!(own >= 0.0 && own < INFINITE)) return INFINITE;
        most = std::max(most, own);
    }
    if (!(most > 0.0 && q < INFINITE)) return most;
    for (Index i = 0; i < weights.size(); ++i) {
        const double part = each[i] / most, term = part > 0.0 ? weights[i] * pow(part, q) : 0.0;
        total += term;
        if (term > 0.0) off += term * (4.0 - 4.0 * q * log(part));
    }
    if (!(total > 0.0)) return most;
    const double slack = double(weights.size()) + 16.0 + (off / total + 4.0 * std::fabs(log(total))) / q;
    return most * pow(total, 1.0 / q) * (1.0 + slack * EPSILON);
}

// q with 1/p + 1/q = 1.
inline double conjugate(double p) { return p > 1.0 ? (p < INFINITE ? p / (p - 1.0) : 1.0) : INFINITE; }

}  // namespace drmdp::judge
