// The l-infinity row: what nature gains when every probability of a row may change by at most r,
//
//     g(r) = max { (z - y).u : z a distribution, |z - y| <= r },     concave and increasing, g(0) = 0.
//
// Every entry may lose p = min(r, y) and receive r. In descending order of u there is a pivot: entries
// above it receive r, entries below it lose p, and it takes the balance. One pass in any order sums
// sum p and -sum p u, as if all entries lost; a walk from the top then undoes the loss of each entry on
// its way and hands out r, until what is left is at most r. As sum p <= min(1, r #{y > 0}), the walk has
// at most min(K, 1/r) + 1 steps. A state that is not listed has p = 0 and is met on the walk like others.
//
// With n entries above the pivot and b entries below it that have y > r, the right slope is
// g'(r) = sum_above u - sum_{below, y>r} u + u_pivot (b - n).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../nature.hpp"
#include "../sorting.hpp"

namespace drmdp {

// A pair with its entries in descending order of u, as far as walks go.
template <class Real>
class LinfPair {
public:
    LinfPair(const Layout<Real>& layout, const Point& point, const Extra&, Index start, Index stop)
        : layout_(layout), point_(point) {
        const Index longest = layout.longest(start, stop);
        entry_.resize(longest + 1), level_.resize(longest + 1), listed_.reserve(longest);
    }

    // Look at a pair with stakes u, for radii from `least` on.
    void open(Index pair, View<const double> u, double least) {
        const Index K = layout_.length(pair);
        u_ = u, first_ = layout_.first(pair);
        const Index most = layout_.unlisted ? std::min(K + 1, point_.order.u.size()) : K;
        length_ = double(most - 2) * least > 1.0 ? Index(1.0 / least) + 2 : most;
        if (layout_.unlisted) merge(K);
        else sort(K);
    }

    struct Bent {
        double gain, slope;
    };

    // A row bent by r > 0: its gain and, if asked for, the right slope there.
    template <bool SLOPE, class Own>
    Bent bend(const Row<Own>& row, double r) const {
        auto [mass, gain, more, slope] = row_sums<4>(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part own = y * row.scale, p = lesser(own, all(r)), u = load(u_, j);
            if (!SLOPE) return Terms<4>{p, -p * u};
            return Terms<4>{p, -p * u, where(own > r, all(1.0)), -where(own > r, u)};
        });
        Index n = 0;
        for (;; ++n) {
            if (entry_[n] >= 0) {
                const double own = row[entry_[n]], p = std::min(own, r);
                mass -= p, gain += p * level_[n];
                if (SLOPE && own > r) more -= 1.0, slope += level_[n];
            }
            if (mass <= r || n == length_ - 1) break;
            mass -= r, gain += r * level_[n];
            if (SLOPE) slope += level_[n];
        }
        return {std::max(gain + mass * level_[n], 0.0), slope + level_[n] * (more - double(n))};
    }

    // sum_i w_i g_i(r_i) added to a value, until it is `enough`.
    template <class RowOf, class Radius>
    double add_gains(RowOf row, Radius radius, double value, double enough) const {
        for (Index i = 0; i < layout_.N && value < enough; ++i)
            if (radius(i) > 0.0) value += layout_.weights[i] * bend<false>(row(i), radius(i)).gain;
        return value;
    }

    static double least(const Stakes& state, Index a) { return state.value(a); }

    // What an action is worth with all its rows bent by the radius, or anything from `enough` on.
    double bent(Stakes& state, Index s, Index a, double enough, double&) {
        const double r = layout_.radius[s];
        const Index pair = s * layout_.A + a;
        if (r >= 1.0) return INFINITE;
        if (r > 0.0) open(pair, state.of(a), r);
        return add_gains([&](Index i) { return row_of(layout_, pair, i); }, [r](Index) { return r; },
                         state.value(a), enough);
    }

private:
    void sort(Index K) {
        const bool whole = layout_.common && K == layout_.S;
        if (whole && !whole_.empty()) {
            std::copy(whole_.begin(), whole_.begin() + length_, entry_.begin());
        } else {
            const auto before = [&](Index j, Index k) {
                return u_[j] > u_[k] || (u_[j] == u_[k] && j < k);
            };
            listed_.resize(K);
            for (Index j = 0; j < K; ++j) listed_[j] = j;
            if (4 * length_ < K && !whole)
                std::partial_sort(listed_.begin(), listed_.begin() + length_, listed_.end(), before);
            else std::sort(listed_.begin(), listed_.end(), before);
            if (whole) whole_ = listed_;
            std::copy(listed_.begin(), listed_.begin() + length_, entry_.begin());
        }
        for (Index n = 0; n < length_; ++n) level_[n] = u_[entry_[n]];
    }

    // Of all states the best ones, listed or not.
    void merge(Index K) {
        const auto place = [&](Index j) { return point_.order.place_of(layout_.indices[first_ + j]); };
        listed_.clear();
        for (Index j = 0; j < K; ++j)
            if (place(j) < length_) listed_.push_back(j);
        for (Index n = 0; n < length_; ++n) entry_[n] = -1, level_[n] = point_.order.u[n];
        for (Index j : listed_) entry_[place(j)] = j, level_[place(j)] = u_[j];
    }

    const Layout<Real>& layout_;
    const Point& point_;
    View<const double> u_;
    Index first_ = 0, length_ = 0;
    std::vector<Index> entry_, listed_, whole_;
    std::vector<double> level_;
};

// Nature's rows: every row of a pair bent by a radius of its kernel. An unlisted pivot is an entry of
// its own, K + i, and what the states above it receive is a prefix term.
template <class Real>
class LinfNature {
public:
    explicit LinfNature(const Response<Real>& asked) : asked_(asked) {}

    void open(const Written& to) {
        const Layout<Real>& layout = asked_.layout;
        const Index K = layout.length(to.pair), first = layout.first(to.pair);
        const auto key = [&](Index j) {
            return layout.unlisted ? double(asked_.point.order.place_of(layout.indices[first + j])) : -to.u[j];
        };
        key_.resize(K), place_.resize(K);
        for (Index j = 0; j < K; ++j) key_[j] = key(j);
        rank({key_.data(), K}, K, down_);
        for (Index n = 0; n < K; ++n) place_[down_[n]] = layout.unlisted ? Index(key_[down_[n]]) : n;
    }

    void add(const Written& to, Index i, const Row<Real>& row, double c, double share) {
        const bool unlisted = asked_.layout.unlisted;
        const Index K = row.size, states = unlisted ? asked_.point.order.u.size() : K;
        const double r = share * asked_.memory.by_kernel[to.s][i];
        double supply = 0.0;
        for (Index j = 0; j < K; ++j) {
            const double p = r > 0.0 ? std::min(r, row[j]) : 0.0;
            to.mass[j] += c * (row[j] - p), supply += p;
        }
        if (!(r > 0.0)) return;
        Index n = 0, k = 0;  // listed entries and states that were served, from the top
        while (k < states && supply > 0.0) {
            if (n < K && place_[down_[n]] == k) {
                const Index j = down_[n];
                const double kept = std::min(std::min(r, row[j]), supply);
                const double take = std::min(r, supply - kept);
                to.mass[j] += c * (kept + take), supply -= kept + take;
                ++n, ++k;
                continue;
            }
            const Index run = (n < K ? place_[down_[n]] : states) - k;
            const Index full = supply / r < double(run) ? Index(supply / r) : run;
            k += full, supply -= double(full) * r;
            if (full < run) {
                asked_.rows.states[to.at + K + i] = asked_.point.order.states[k];
                to.mass[K + i] += c * std::max(supply, 0.0);
                break;
            }
        }
        if (!unlisted) return;
        const Index term = asked_.rows.prefix_at[to.pair] + i;
        asked_.rows.length[term] = std::int32_t(k), asked_.rows.level.set(term, c * r);
        for (Index j = 0; j < K; ++j)
            if (place_[j] < k) to.mass[j] -= c * r;  // served above
    }

private:
    const Response<Real>& asked_;
    std::vector<double> key_;
    std::vector<Index> down_, place_;
};

}  // namespace drmdp
