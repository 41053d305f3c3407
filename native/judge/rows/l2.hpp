// l2:   with d = t u - tau, a row is *active* where y + d > 0. For any tau, and sums over active or idle
// entries,
//
//     h <= Phi = tau sum_idle y + t sum_active y u + 1/2 sum_active d^2 - 1/2 sum_idle y^2.
//
// The row is z = (y + d)/M where active, else 0, with M = 1 + m, m = sum_active d - sum_idle y, as y adds
// up to 1. So
//
//     (z - y).u = [sum_active d u - m sum_active y u]/M - sum_idle y u,
//     |z - y|  <= sqrt(sum_active d^2 + sum_idle y^2) + |m|.
//
// No digits are lost in any of these sums, however many entries are active and however small the radius
// is: all terms are of the size of the move. A mixture is worth the mixture of the values, and costs at
// most that of the costs C = 1/2 |z - y|^2, which is convex.
//
// **Rounding.** d as computed defines z: no error. In Phi it is off by e/2 (t|u| + 2|d|), which moves
// 1/2 sum d^2 by e (t sum|d| + sum d^2). An entry counts as active if y + d > 0 as computed, y being off by
// (depth(K)/2 + 2) e, relatively. Where it is idle in truth, Phi is larger than it need be, and z is 0, not y + d: that
// moves m and (z - y).u by what y is off by, as the y of idle entries does. What is lost of Phi where an entry
// should have been active is of the order e^2. With n = depth(K) + 16
// for the sums, for y, which is data divided by its sum, and for the tables of unlisted states, and with
// spread = sum_active |d| + sum_idle y,
//
//     Phi is off by n e [|tau| (1 + sum_idle y) + t (2|y.u| + sum|d|) + 2 sum d^2 + sum_idle y^2],
//     m by n e spread,    (z - y).u by 4 n e spread for |m| <= 0.1.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

// Sums over a row at a multiplier and a threshold.
struct L2Sums {
    double count = 0.0, mass = 0.0, moved = 0.0, gain = 0.0, squares = 0.0;  // active: 1, d, |d|, d u, d^2
    double idle = 0.0, idle_u = 0.0, idle_squares = 0.0;                     // idle: y, y u, y^2
    double level = 0.0;                                                      // the threshold

    double off() const { return mass - idle; }

    L2Sums& operator+=(const L2Sums& other) {
        count += other.count, mass += other.mass, moved += other.moved, gain += other.gain;
        squares += other.squares, idle += other.idle, idle_u += other.idle_u;
        idle_squares += other.idle_squares;
        return *this;
    }
};

class L2 : public Additive {
public:
    L2(const Extra&, const Sight& sight, bool unlisted, Index longest)
        : sight_(sight), unlisted_(unlisted), u_(longest) {}
    // Of smaller moves doubles keep too little.
    static constexpr double FAINT = 1e-13;
    static double budget(double radius) { return 0.5 * radius * radius; }
    void open_state() { t_ = NOT_A_NUMBER; }

    template <class Real>
    Priced dual(SeenRow<Real> row, double t, double) {
        if (!usable(t)) return {INFINITE};
        const double flat = raise(row, t), nominal = row.worth();
        const L2Sums sums = settle(row, t, flat);
        const double value = sums.level * sums.idle + t * (nominal - sums.idle_u) +
                             0.5 * sums.squares - 0.5 * sums.idle_squares;
        return {value + margin(sums, t, nominal, row.roundings())};
    }

    // For distances of kernels (`L2Orders`); `more` are the roundings of adding up.
    template <class Real>
    Priced priced(SeenRow<Real> row, double t, double more) {
        if (!usable(t)) return {INFINITE, INFINITE};
        const double flat = raise(row, t), nominal = row.worth(), n = row.roundings() + more;
        const L2Sums sums = settle(row, t, flat);
        const double value =
            sums.level * sums.idle + t * (nominal - sums.idle_u) - sums.idle_squares;
        const double square = sums.squares + sums.idle_squares;
        const double edge = 2.0 * square + t * (4.0 + sums.moved) + 4.0 * std::fabs(sums.level);
        const double slack = (n + 64.0) * EPSILON;
        return {value + slack * edge, square * (1.0 + slack)};
    }

    template <class Real>
    Measured mixed(const SeenRow<Real>& row, View<const double> mixture) {
        const double f = mixture[2] >= 0.0 && mixture[2] <= 1.0 ? mixture[2] : 0.0;
        const Measured first = at(row, mixture[0]);
        if (f == 0.0) return first;
        const Measured second = at(row, mixture[1]);
        return {(1.0 - f) * first.worth + f * second.worth, (1.0 - f) * first.cost + f * second.cost};
    }

    // Value and cost of the row at t, infinity included; those of the data if t is none or the row unusable.
    template <class Real>
    Measured at(SeenRow<Real> row, double t) {
        if (t > SATURATED) t = SATURATED;
        const double slack = row.roundings() * EPSILON, nominal = row.worth();
        const Measured still{nominal - slack * std::fabs(nominal), 0.0};
        if (!usable(t)) return still;
        const double flat = raise(row, t), raised = flat > 0.0 ? row.worth() : nominal;
        const L2Sums sums = settle(row, t, flat);
        const double off = sums.off(), spread = sums.moved + sums.idle;
        double far = std::sqrt(sums.squares + sums.idle_squares) + std::fabs(off);
        far += slack * (far + spread);
        if (!(std::fabs(off) <= 0.1 && far < 4.0)) return still;
        const double gain =
            (sums.gain - off * (raised - sums.idle_u)) / (1.0 + off) - sums.idle_u;
        return {still.worth + gain - flat - 4.0 * slack * spread, 0.5 * far * far};
    }

private:
    static constexpr double SETTLED = 1e-14;  // a mass this close to 1, beside what moves, needs no better one
    static constexpr int STEPS = 60;
    static constexpr double LEAST = 1e-150, MOST = 1e150;  // their squares are numbers
    // Beyond the multiplier PLAIN, stakes this near to the top are the top's.
    static constexpr double PLAIN = 1e9, FLAT = 1e-13, SATURATED = 1e14;  // which leaves but the top

    static bool usable(double t) { return t > LEAST && t < MOST; }

    // Raise stakes that are the top's up to rounding to it, where the multiplier is so large that it would
    // tell them apart. U is then of larger stakes, and holds; L is too large by no more than was raised.
    template <class Real>
    double raise(SeenRow<Real>& row, double t) {
        if (!(t > PLAIN)) return 0.0;
        for (Index j = 0; j < row.K; ++j) u_[j] = row.u[j] > -FLAT ? 0.0 : row.u[j];
        row.u = {u_.data(), row.K};
        return FLAT;
    }

    // What Phi is off by.
    static double margin(const L2Sums& sums, double t, double nominal, double n) {
        const double size = std::fabs(sums.level) * (1.0 + sums.idle) +
                            t * (2.0 * std::fabs(nominal) + sums.moved);
        return n * EPSILON * (size + 2.0 * sums.squares + sums.idle_squares);
    }

    // Sums of a row at t and the threshold tau + low.
    template <class Real>
    L2Sums sum(const SeenRow<Real>& row, double t, double tau, double low, double flat) const {
        L2Sums sums;
        for (Index first = 0; first < row.K; first += BLOCK) {
            L2Sums part;
            for (Index j = first; j < std::min(first + BLOCK, row.K); ++j) {
                const double p = row[j], z = row.u[j], d = (t * z - tau) - low;
                if (!(p + d > 0.0)) {
                    part.idle += p, part.idle_u += p * z, part.idle_squares += p * p;
                } else if (!(unlisted_ && d > 0.0)) {  // else it is in the prefix
                    part.count += 1.0, part.mass += d, part.moved += std::fabs(d);
                    part.gain += d * z, part.squares += d * d;
                }
            }
            sums += part;
        }
        const Index k = unlisted_ ? sight_.prefix(t, tau, low) : 0;
        if (k > 0) sums += highest(k, t, tau, low, flat);
        return sums;
    }

    // The k highest states; those above -flat, which are as high as the highest, are all among them. With
    // P1 = -sum u and P2 = sum u^2 over the states above -flat and e = -tau - low, which each of them has
    // for d, raising them to 0 adds t P1 to sum d, e P1 - t P2 to sum d u and t (2 e P1 - t P2) to sum d^2.
    // If states below are active, t flat < e, and none of these exceeds the sum it is added to.
    L2Sums highest(Index k, double t, double tau, double low, double flat) const {
        const Index tops = flat > 0.0 ? sight_.prefix(1.0, -flat, 0.0) : 0;
        const double edge = -tau - low, top = double(tops);
        L2Sums sums;
        if (k <= tops) {
            sums.count = top, sums.mass = sums.moved = top * edge, sums.squares = top * edge * edge;
            return sums;
        }
        const double last = sight_.down[k - 1], d = (t * last - tau) - low, n = double(k);
        const double rise = sight_.rise[k], rise2 = sight_.rise2[k];
        sums.count = n;
        sums.mass = t * rise + n * d;
        sums.gain = t * rise2 + d * rise + last * sums.mass;
        sums.squares = t * t * rise2 + 2.0 * t * d * rise + n * d * d;
        if (tops > 1) {
            const double end = sight_.down[tops - 1], own = sight_.rise[tops];
            const double first = -(own + top * end);
            const double second = sight_.rise2[tops] + 2.0 * end * own + top * end * end;
            sums.mass += t * first;
            sums.gain += edge * first - t * second;
            sums.squares += t * (2.0 * edge * first - t * second);
        }
        sums.moved = sums.mass;
        return sums;
    }

    // Sums at t after Newton steps for the threshold, from that of the row before or from one from which
    // they are monotone. A threshold is a sum of two numbers: of very many active entries, the last digit of
    // one alone would move the mass too much.
    template <class Real>
    L2Sums settle(const SeenRow<Real>& row, double t, double flat) {
        if (t == t_ && row.y == y_) return last_;
        double tau = t_ > 0.0 ? tau_ * (t / t_) : begin(row, t), low = 0.0, last = INFINITE;
        L2Sums sums;
        for (int step = 0; step < STEPS; ++step) {
            sums = sum(row, t, tau, low, flat);
            const double off = std::fabs(sums.off()), spread = std::min(sums.moved + sums.idle, 1.0);
            if (off <= SETTLED * spread || (off < 1e-9 * spread && !(off < 0.5 * last))) break;
            if (!(sums.count > 0.5)) {
                tau = begin(row, t), low = 0.0;
                continue;
            }
            const double by = low + sums.off() / sums.count, next = tau + by;
            low = by - (next - tau);
            tau = next;
            last = off;
        }
        sums.level = tau;
        t_ = t, tau_ = tau, y_ = row.y, last_ = sums;
        return sums;
    }

    // The largest y + t u less 1, or the mean of t u over the listed states and the k highest, whichever is
    // highest.
    template <class Real>
    double begin(const SeenRow<Real>& row, double t) const {
        double highest = unlisted_ ? 0.0 : -INFINITE, total = 0.0;
        for (Index j = 0; j < row.K; ++j) {
            highest = std::max(highest, row[j] + t * row.u[j]);
            total += row.u[j];
        }
        double mean = total / double(row.K);
        if (unlisted_)
            for (Index k = 1; k <= 4 * row.K && k < sight_.down.size(); k *= 2) {
                const double above = sight_.rise[k] + double(k) * sight_.down[k - 1];
                mean = std::max(mean, (total + above) / double(row.K + k));
            }
        return std::max(highest - 1.0, t * mean);
    }

    const Sight& sight_;
    bool unlisted_;
    std::vector<double> u_;
    double t_ = NOT_A_NUMBER, tau_ = 0.0;  // of the last row
    const void* y_ = nullptr;
    L2Sums last_;
};

// A distance d_i for each kernel, within a budget of some order.
//
// d >= e.(z - y)/|e| for every e. With t = kappa_i x_a and thresholds tau_a, e = max((t u - tau)/kappa_i, -y/kappa_i)
// and lambda_i = |e_i|, any kappa_i > 0 and tau give, over active and idle entries,
//
//     B_i = sum_a [max (x_a u - e) + e.y] <= sum_a [tau sum_idle y + t sum_active y u - sum_idle y^2]/kappa_i,
//     lambda_i = sqrt(sum_a [sum_active d^2 + sum_idle y^2])/kappa_i:
//
// x_a u - e is tau/kappa_i where active, and where idle it is less. The rows are z(kappa_i x_a).
//
// **Rounding.** B_i kappa_i is off by the margin of Phi, of which it has the terms: by n e [t (2 + sum|d|) + 2 |tau| + 2 square]
// at most, square = sum_active d^2 + sum_idle y^2. As computed, d defines e, and then
// x_a u - e <= tau/kappa_i is off by 2 e (t + |tau|)/kappa_i. An entry that counts as idle though y + d > 0 has y <= 2 |d|, and
// raises the maximum by n e |d|/kappa_i, |d| <= t + |tau|. Distances and prices are off by 2 n e, relatively.
template <class Real>
class L2Orders : public L2 {
public:
    static constexpr bool SQUARE = true;
    explicit L2Orders(const Question<Real>& q)
        : L2(q.extra, q.sight, q.layout.unlisted, q.layout.longest(q.start, q.stop)), q_(q) {}
    static double budget(double radius) { return radius; }

    void open(Index s) { s_ = s, open_state(); }
    bool bends(Index a) const { return q_.claim.by_action[s_][a] > 0.0; }
    double price(Index i) const { return std::max(q_.claim.by_kernel[s_][i], 0.0); }
    Priced dual(const SeenRow<Real>& row, double t, double more) { return priced(row, t, more); }
    Measured measure(const SeenRow<Real>& row, Index a, Index i) {
        return at(row, q_.claim.by_kernel[s_][i] * q_.claim.by_action[s_][a]);
    }

private:
    const Question<Real>& q_;
    Index s_ = 0;
};

}  // namespace drmdp::judge
