// The proof of l-infinity balls.
//
// L: the value of rows bent by the radii handed over. U: with a threshold tau for each row, whatever
// it is,
//
//     h(r) = y.u + r sum_{u>tau} (u - tau) + sum_{u<tau} (tau - u) min(r, y)
//
// bounds the row's value at r, with equality at the pivot's u. For order infinity r is the radius.
//
// **Rounding.** A walk takes min(r, y) from every entry and hands it out from the top, r to each and to
// the last what is left. What arrives is what was taken up to (n + steps) e/2, relatively; so after
// division by that no entry has changed by more than r (1 + (n + steps) e), which the radius makes room
// for, and the gain is off by 2 (n + steps) e times the mass. Comparisons u > tau are exact, and the
// terms of h have one sign but y.u.
#pragma once

#include <numeric>

#include "sums.hpp"

namespace drmdp::judge {

// Rows of a state bent by radii.
template <class Real>
class LinfRows {
public:
    LinfRows(const Layout<Real>& layout, const Sight& sight, Index start, Index stop)
        : state(layout, sight, start, stop), layout_(layout), sight_(sight),
          scale_(layout.A * layout.N), own_(scale_.size()), pivot_(scale_.size()), order_(layout.A) {}

    State<Real> state;

    // Open state s and prove its worths under rows bent by what is surely allowed of the radii;
    // `joint`: their mean is bounded, else each of them. False if the state is terminal.
    bool open(Index s, View<const double> radius, bool joint, View<double> share) {
        s_ = s;
        if (!state.open(s)) return false;
        const Index A = layout_.A, N = layout_.N;
        const Index entries = layout_.first((s + 1) * A) - layout_.first(s * A);
        roundings = 2.0 * depth(entries) + double(A) + 16.0;
        allow(layout_.radius[s], radius, double(entries), joint, share);
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            put_in_order(a);
            state.worth[a] = -double(N + 8) * EPSILON;
            for (Index i = 0; i < N; ++i) {
                const SeenRow<Real> seen = state.row(a, i);
                const double more = (depth(seen.K) + 16.0) * EPSILON;
                scale_[a * N + i] = seen.scale, own_[a * N + i] = seen.worth();
                const Bent bent = walk(a, i, share[i] > 0.0 ? share[i] * radius[i] : 0.0);
                pivot_[a * N + i] = bent.pivot;
                state.worth[a] += layout_.weights[i] *
                                  ((1.0 + more) * own_[a * N + i] + bent.gain - bent.margin);
            }
        }
        return true;
    }

    double roundings = 0.0;  // behind the margins of U

    struct Bent {
        double gain, margin, pivot;  // the pivot's u
    };

    double pivot(Index a, Index i) const { return pivot_[a * layout_.N + i]; }
    double own(Index a, Index i) const { return own_[a * layout_.N + i]; }
    SeenRow<Real> row(Index a, Index i) {
        const Row<Real> own = layout_.row(s_ * layout_.A + a, i);
        return {own.y, own.size, scale_[a * layout_.N + i], state.stakes(a), 0.0};
    }

    // The best row within r of the data.
    Bent walk(Index a, Index i, double r) {
        const SeenRow<Real> seen = row(a, i);
        const std::vector<Place>& down = order_[a];
        const Index K = seen.K, states = layout_.unlisted ? sight_.down.size() : K;
        const auto taken = [&](Index j) { return std::min(r, seen[j]); };
        const double mass = block_sum(K, taken);
        const double lost = block_sum(K, [&](Index j) { return taken(j) * seen.u[j]; });
        double supply = mass, total = 0.0, pivot = 0.0;
        Index n = 0, k = 0, steps = 0;
        while (k < states && supply > 0.0) {
            ++steps;
            if (n < K && down[n].place == k) {
                const Index j = down[n].entry;
                pivot = seen.u[j];
                const double got = std::min(taken(j) + r, supply);
                total += got * pivot, supply -= got;
                ++n, ++k;
                continue;
            }
            const Index run = (n < K ? down[n].place : states) - k;
            const Index full = supply / r < double(run) ? Index(supply / r) : run;
            total += r * (sum_of(k + full) - sum_of(k));
            k += full, supply -= double(full) * r;
            if (full > 0) pivot = sight_.down[k - 1];
            if (full < run && supply > 0.0) {
                pivot = sight_.down[k];
                total += supply * pivot, supply = 0.0;
            }
        }
        return {total - lost, 2.0 * (depth(K) + double(steps) + 16.0) * EPSILON * mass, pivot};
    }

    // sum (u - tau)+ over what nature may use, of row i of action a.
    double above(const SeenRow<Real>& seen, double tau) const {
        if (!layout_.unlisted)
            return block_sum(seen.K, [&](Index j) { return std::max(seen.u[j] - tau, 0.0); });
        const Index k = sight_.prefix(1.0, tau, 0.0);
        return k > 0 ? sight_.rise[k] + double(k) * (sight_.down[k - 1] - tau) : 0.0;
    }

private:
    struct Place {
        Index place, entry;  // of a listed state among all by descending u
    };

    // The share of each radius that is surely in the ball, at most 1; 0 where it is no radius.
    void allow(double theta, View<const double> radius, double entries, bool joint,
               View<double> share) const {
        const Index N = layout_.N;
        double mean = 0.0, least = 1.0;
        for (Index i = 0; i < N; ++i) {
            if (!(radius[i] > 0.0)) continue;
            mean += layout_.weights[i] * radius[i], least = std::min(least, radius[i]);
        }
        if (joint && mean > theta) least *= theta / mean;
        const double steps = std::min(entries, 4.0 / std::min(least, theta) + 8.0);
        const double slack = depth(Index(entries)) + steps + double(N) + 32.0;
        const double most = theta * (1.0 - slack * EPSILON);
        for (Index i = 0; i < N; ++i) {
            const double far = joint ? mean : radius[i];
            share[i] = radius[i] > 0.0 ? (far > most ? most / far : 1.0) : 0.0;
        }
    }

    void put_in_order(Index a) {
        const Index pair = s_ * layout_.A + a, first = layout_.first(pair);
        const View<double> u = state.stakes(a);
        std::vector<Place>& down = order_[a];
        down.resize(u.size());
        for (Index j = 0; j < u.size(); ++j)
            down[j] = {layout_.unlisted ? Index(sight_.place[layout_.indices[first + j]]) : 0, j};
        std::stable_sort(down.begin(), down.end(), [&](const Place& p, const Place& q) {
            return layout_.unlisted ? p.place < q.place : u[p.entry] > u[q.entry];
        });
        if (!layout_.unlisted)
            for (Index n = 0; n < u.size(); ++n) down[n].place = n;
    }

    // sum u over the first k states in descending order.
    double sum_of(Index k) const {
        return k > 0 ? sight_.rise[k] + double(k) * sight_.down[k - 1] : 0.0;
    }

    const Layout<Real>& layout_;
    const Sight& sight_;
    std::vector<double> scale_, own_, pivot_;  // (A, N)
    std::vector<std::vector<Place>> order_;
    Index s_ = 0;
};

// Every row bent by the full radius.
template <class Real>
class LinfInf {
public:
    LinfInf(const Layout<Real>& layout, const Sight& sight, const Claim& claim, Index start, Index stop)
        : layout_(layout), claim_(claim), rows_(layout, sight, start, stop) {}

    void prove(Index s, const Proved& proved) {
        if (!rows_.open(s, claim_.by_kernel[s], false, proved.share[s])) return;
        const double more = double(layout_.N + 8) * EPSILON;
        double above = 0.0;
        for (Index i = 0; i < layout_.N; ++i) {
            const double bound = std::min(dual(s, i), 0.0);
            above += layout_.weights[i] * bound + more * layout_.weights[i] * std::fabs(bound);
        }
        rows_.state.close(std::min(above, 0.0), claim_, proved);
    }

private:
    // Upper bound on sum_a x_a h_ia at the full radius.
    double dual(Index s, Index i) {
        const double r = layout_.radius[s];
        double worth = 0.0, more = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = claim_.policy[s][a], tau = rows_.pivot(a, i);
            if (!(x > 0.0)) continue;
            const SeenRow<Real> row = rows_.row(a, i);
            worth += x * rows_.own(a, i);
            more += x * (r * rows_.above(row, tau) + block_sum(row.K, [&](Index j) {
                return std::max(tau - row.u[j], 0.0) * std::min(r, row[j]);
            }));
        }
        return worth + more + rows_.roundings * EPSILON * (more - worth);
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    LinfRows<Real> rows_;
};

}  // namespace drmdp::judge
