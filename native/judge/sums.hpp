// What all proofs share: sums that keep their digits, a state brought to the scale 1, and margins. The
// judge shares data and views with the solvers, nothing else.
//
// Write e = 2^-52, so that a rounded operation is off by at most e/2, relatively.
//
// **Scale.** z_a(t) = base + unit (cost_a + u_a(t)) with u in [-1, 0] and u = 0 at the top of each action,
// from the raw data and without plateaus. What rounding leaves out of this equation is at most `noise`,
// and rows add up to 1, so that is also what it moves any value by: base, (top - base)/unit and the
// value's level, which was taken off before, are each off by an ulp or two of
// |base| + unit (cost_a + 1) + discount span, and bounds are by a few roundings of numbers of size 1 (`mixture.hpp`),
// which is 8 e of that in all. A unit below TINY counts as 0, and so does whatever underflows: `noise` contains TINY.
//
// **Sums.** Numbers are summed in blocks of BLOCK: a sum of n of them is off by at most
// depth(n) e/2 sum|terms|. States that are not listed are summed by tables over the states in descending
// order of u,
//
//     R1(k) = sum_{j<k} (u_j - u_{k-1}),    R2(k) = sum_{j<k} (u_j - u_{k-1})^2,
//
// which grow by terms of one sign and are right up to 8 e, relatively, whatever k is. The sums needed
// follow without cancellation: with d_j = d + t (u_j - u_{k-1}), d >= 0 the last of them,
// sum d_j = t R1 + k d and sum d_j^2 = t^2 R2 + 2 t d R1 + k d^2.
//
// **Data.** Rows and weights stand for what they are after division by their sums, which is done here;
// the mean kernel was made before, from rows and weights that miss 1 by what rounding explains,
// 2 (K + 2) e and 2 (N + 2) e, and is off by at most 4 (K + N + 4) e, relatively. Rows made of events are
// such rows, however many events there are.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "../data.hpp"

namespace drmdp::judge {

// A margin is a line with EPSILON. Tests build with DRMDP_MARGINS, switch off one line of a file, or all of
// them (0), or of all files (*), and see false bounds.
#if defined(DRMDP_MARGINS)
struct Line {
    std::string file;
    int line;
};
inline Line without{"no file", 0};
inline double margin_at(const std::string& path, int line) {
    const bool same = without.file == "*" || path.substr(path.rfind('/') + 1) == without.file;
    return same && (line == without.line || without.line == 0) ? 0.0 : drmdp::EPSILON;
}
#define EPSILON drmdp::judge::margin_at(__FILE__, __LINE__)
#endif

constexpr double TINY = 1e-280;
constexpr double LEAST = 1e-300;  // what is seen has at least this much in a mean (drmdp.core.sums)
constexpr Index BLOCK = 64;

// v as a proof sees it: without its level, and as all actions see it, (v - max v)/span.
struct Sight {
    View<const double> value;        // (S)
    double top = 0.0, span = 0.0;
    View<const double> u;            // (S), or none
    View<const std::int32_t> place;  // (S) of each state in descending order, S if it has none; or none
    View<const double> down;         // u in that order, or its top
    View<const double> rise, rise2;  // R1, R2
    View<std::int64_t> beyond;       // (1) not 0 once somebody counted past the end of the top

    // The place of a state, behind the top if it has none.
    Index place_of(Index state) const {
        const Index own = place[state], n = down.size();
        return 0 <= own && own < n ? own : n;
    }
    // How many u have (t u - tau) - low > 0 as computed, which never rises along the descending u.
    Index prefix(double t, double tau, double low) const {
        Index first = 0, last = down.size();
        while (first < last) {
            const Index middle = (first + last) / 2;
            if ((t * down[middle] - tau) - low > 0.0) first = middle + 1;
            else last = middle;
        }
        if (first == down.size() && first < place.size()) beyond[0] = 1;
        return first;
    }
};

// What is claimed of a sweep, and what it is claimed for.
struct Claim {
    Table<const double> policy;                        // (S, A)
    Table<const double> by_action, by_kernel, by_row;  // see `Memory`
    bool fixed = false;                                // L is for the policy, not for the best action
};

// What is proved.
struct Proved {
    View<double> low, high;  // (S) L and U
    Table<double> share;     // (S, N) of nature's move that is surely allowed
};

// Bounds from what a sweep claims.
template <class Real>
struct Question {
    const Layout<Real>& layout;
    const Sight& sight;
    const Claim& claim;
    const Proved& proved;
    const Extra& extra;
    Index start, stop;
    Index n_mean;  // the kernels behind the mean row that stands for all; 0 where rows are kernels
};

template <class Proof, class Real>
void prove(const Question<Real>& q) {
    Proof proof(q);
    for (Index s = q.start; s < q.stop; ++s) proof.prove(s, q.proved);
}

// Most roundings that a number meets in a sum of n by blocks.
inline double depth(Index n) { return double(std::min(n, BLOCK) + n / BLOCK + 1); }

// sum_{j < n} term(j), by blocks.
template <class Term>
double block_sum(Index n, Term term) {
    double total = 0.0;
    for (Index first = 0; first < n; first += BLOCK) {
        double part = 0.0;
        for (Index j = first; j < std::min(first + BLOCK, n); ++j) part += term(j);
        total += part;
    }
    return total;
}

// A sum, and what its additions lost so far.
struct Kept {
    double total = 0.0, lost = 0.0;

    DRMDP_INLINE void add(double x) {
        const double now = total + x, own = now - total;
        lost += (total - (now - own)) + (x - own);
        total = now;
    }
    DRMDP_INLINE double sum() const { return total + lost; }
};

// R1(k+1) = R1(k) + k g and R2(k+1) = R2(k) + g (2 R1(k) + k g), g = u_{k-1} - u_k >= 0 (`sums.hpp`).
inline void fill_rises(View<const double> down, View<double> rise, View<double> rise2) {
    Kept first, second;
    for (Index k = 0; k < 2 && k < rise.size(); ++k) rise[k] = rise2[k] = 0.0;
    for (Index k = 1; k < down.size(); ++k) {
        const double gap = down[k - 1] - down[k], more = double(k) * gap;
        second.add(gap * (2.0 * first.sum() + more));
        first.add(more);
        rise[k + 1] = first.sum(), rise2[k + 1] = second.sum();
    }
}

// One row of the data at the stakes of its state: y, times `scale`; off by `off` e beyond its sum.
template <class Real>
struct SeenRow {
    const Real* y = nullptr;
    Index K = 0;
    double scale = 1.0;
    View<const double> u;
    double off = 0.0;
    Index first = 0;  // place of its entries

    double raw(Index j) const {
        DRMDP_EXPECT(0 <= j && j < K);
        return double(y[j]);
    }
    double operator[](Index j) const { return scale * raw(j); }
    // The least that an entry can be, and what leaving that out may cost: what is above 0 in a mean may be
    // too large by LEAST.
    double least(Index j) const { return scale * raw(j) - off * LEAST; }
    double lost() const { return 2.0 * off * double(K) * LEAST; }
    double worth() const {
        return scale * block_sum(K, [&](Index j) { return raw(j) * u[j]; });
    }
    double below() const { return worth() * (1.0 + (2.0 * roundings() + 8.0) * EPSILON); }
    // The roundings that margins are made of.
    double roundings() const { return depth(K) + 16.0 + off; }
};

// A state of the layout at v.
template <class Real>
class State {
public:
    std::vector<double> cost;   // (A), infinite where an action is not available
    std::vector<double> worth;  // (A) lower bounds on the values under nature's rows, without cost
    double base = INFINITE, unit = TINY;

    explicit State(const Question<Real>& q)
        : cost(q.layout.A), worth(q.layout.A), layout_(q.layout), sight_(q.sight) {
        Index most = 0;
        for (Index s = q.start; s < q.stop; ++s)
            most = std::max(most, layout_.first((s + 1) * layout_.A) - layout_.first(s * layout_.A));
        u_.resize(most);
    }

    View<double> stakes(Index a) {
        const Index pair = s_ * layout_.A + a;
        return {u_.data() + layout_.first(pair) - layout_.first(s_ * layout_.A), layout_.length(pair)};
    }

    // Bring state s to the scale 1; false if it is terminal.
    bool open(Index s) {
        s_ = s;
        if (!layout_.has_actions(s)) return false;
        base = INFINITE, unit = layout_.common ? layout_.discount(s * layout_.A) * sight_.span : 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const Index pair = s * layout_.A + a;
            cost[a] = INFINITE;
            if (!layout_.available[pair]) continue;
            double highest = layout_.discount(pair) * sight_.top;
            if (!layout_.common) highest = raw(pair, stakes(a));
            cost[a] = layout_.costs[pair] + highest;
            base = std::min(base, cost[a]);
        }
        const bool flat = !(unit > TINY);
        if (flat) {
            for (Index a = 0; a < layout_.A; ++a)
                if (cost[a] < INFINITE) unit = std::max(unit, cost[a] - base);
            unit = std::max(unit, TINY);
        }
        for (Index a = 0; a < layout_.A; ++a) {
            const Index pair = s * layout_.A + a, first = layout_.first(pair);
            if (!layout_.available[pair]) continue;
            cost[a] = (cost[a] - base) / unit;
            const View<double> u = stakes(a);
            for (Index j = 0; j < u.size(); ++j)
                u[j] = layout_.common ? sight_.u[layout_.indices[first + j]] : flat ? 0.0 : u[j] / unit;
        }
        return true;
    }

    // n_mean: the kernels behind a row that is the mean of them; else 0.
    SeenRow<Real> row(Index a, Index i, Index n_mean = 0) {
        const Row<Real> own = layout_.row(s_ * layout_.A + a, i);
        SeenRow<Real> row{own.y, own.size, 1.0, stakes(a), 0.0, layout_.first(s_ * layout_.A + a)};
        const double total = block_sum(row.K, [&](Index j) { return row.raw(j); });
        row.scale = total > 0.0 ? 1.0 / total : 0.0;
        if (n_mean > 0) row.off = 4.0 * double(row.K + n_mean + 4);
        return row;
    }
    SeenRow<double> mean_row(Index a) {
        const Row<double> own = layout_.mean_row(s_ * layout_.A + a);
        return {own.y, own.size, 1.0, stakes(a), 0.0, 0};
    }
    // Lower bound on the value of the mean row of N kernels.
    double mean_worth(Index a, Index N) {
        const SeenRow<double> row = mean_row(a);
        return (1.0 + 4.0 * double(row.K + N + 8) * EPSILON) * row.worth();
    }

    // L and U of the state, noise included, from the actions' worths and the bound `above` on
    // sum_a x_a y_a.u; infinite where nothing is proved.
    void close(double above, const Claim& claim, const Proved& proved) const {
        const View<const double> x = claim.policy[s_];
        const double more = double(layout_.A + 4) * EPSILON;
        double given = 0.0, free = 0.0, noise = 0.0, least = INFINITE, mean = 0.0;
        bool sound = true;
        for (Index a = 0; a < layout_.A; ++a) {
            const Index pair = s_ * layout_.A + a;
            if (!layout_.available[pair]) continue;
            const double reach = layout_.discount(pair) * sight_.span;
            const double off =
                8.0 * EPSILON * (std::fabs(base) + unit * (cost[a] + 1.0) + reach) + TINY;
            const double below = unit * (cost[a] + worth[a]) - off;
            least = std::min(least, below);
            sound = sound && std::isfinite(below);
            if (!(x[a] > 0.0)) continue;
            given += x[a];
            free += x[a] * cost[a];
            noise += x[a] * off;
            mean += x[a] * (below - more * (std::fabs(below) + off));
        }
        const double paid = free + above + more * (free + std::fabs(above));
        const double high = base + (unit * paid + (1.0 + more) * noise) / given;
        const double low = base + (claim.fixed ? mean / given : least);
        proved.high[s_] = std::isfinite(high) ? high : INFINITE;
        proved.low[s_] = sound && std::isfinite(low) ? low : -INFINITE;
    }

private:
    // Costs and discounted values of a pair, less the highest; returns that.
    double raw(Index pair, View<double> z) {
        const Index first = layout_.first(pair);
        double highest = -INFINITE, lowest = INFINITE;
        for (Index j = 0; j < z.size(); ++j) {
            z[j] = layout_.discount(pair) * sight_.value[layout_.indices[first + j]];
            if (!layout_.next_costs.empty()) z[j] += layout_.next_costs[first + j];
            highest = std::max(highest, z[j]), lowest = std::min(lowest, z[j]);
        }
        unit = std::max(unit, highest - lowest);
        for (double& x : z) x -= highest;
        return highest;
    }

    const Layout<Real>& layout_;
    const Sight& sight_;
    std::vector<double> u_;
    Index s_ = 0;
};

}  // namespace drmdp::judge
