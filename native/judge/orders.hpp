// Balls of order p around N kernels, sum_i w_i d_i^p <= theta^p: what a price of each distance buys, and how far
// a move is.
//
// Hoelder's inequality gives sum_i w_i lambda_i d_i <= theta |lambda|, |lambda| = (sum_i w_i lambda_i^q)^(1/q),
// 1/p + 1/q = 1. A move of distances d is pulled towards the data by theta/D, D = (sum_i w_i d_i^p)^(1/p), if
// D > theta: D is a norm of it. For p = infinity each kernel is pulled by theta/d_i.
//
// **Rounding.** A norm is taken of v/max v. A power x^q is off by (2 + 3 |q log x|) e, relatively, and by
// |q log x| e as its exponent is off by e; that is added up with the terms, and the root divides it by q. The
// base is off by e, which the root turns back into e. It is off itself by (4 + 4 |log s|/q) e, s the sum.
#pragma once

#include "../elementary.hpp"
#include "sums.hpp"

namespace drmdp::judge {

inline double conjugate(double p) { return p < INFINITE ? p > 1.0 ? p / (p - 1.0) : INFINITE : 1.0; }

// (sum_i w_i each_i^q)^(1/q), rounded up.
inline double norm(double q, View<const double> w, const std::vector<double>& each) {
    double most = 0.0, total = 0.0, off = 0.0;
    for (double own : each) {
        if (!(own >= 0.0 && own < INFINITE)) return INFINITE;
        most = std::max(most, own);
    }
    if (!(most > 0.0 && q < INFINITE)) return most;
    for (Index i = 0; i < w.size(); ++i) {
        const double part = each[i] / most, term = part > 0.0 ? w[i] * pow(part, q) : 0.0;
        total += term;
        if (term > 0.0) off += term * (4.0 - 4.0 * q * log(part));
    }
    if (!(total > 0.0)) return most;
    const double slack = double(w.size()) + 16.0 + (off / total + 4.0 * std::fabs(log(total))) / q;
    return most * pow(total, 1.0 / q) * (1.0 + slack * EPSILON);
}

// Share of the move of each kernel that is surely within `most`.
inline void pull(double p, double most, View<const double> w, const std::vector<double>& far, View<double> shares) {
    const double all = p < INFINITE ? norm(p, w, far) : 0.0;
    for (Index i = 0; i < shares.size(); ++i) {
        const double own = p < INFINITE ? all : far[i];
        shares[i] = own <= most ? 1.0 : own < INFINITE && most > 0.0 ? most / own : 0.0;
    }
}

}  // namespace drmdp::judge
