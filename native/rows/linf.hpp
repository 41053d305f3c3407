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

#include "../routines.hpp"
#include "../sorting.hpp"
#include "../stakes.hpp"

namespace drmdp {

// A pair with its entries in descending order of u, as far as walks go.
template <class Real>
class LinfPair {
public:
    LinfPair(const Layout<Real>& layout, const Point& point, const Extra&, Index start, Index stop)
        : LinfPair(layout, point, start, stop) {}
    LinfPair(const Layout<Real>& layout, const Point& point, Index start, Index stop)
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
        struct Sums {
            Part mass{}, gain{}, more{}, slope{};
        };
        const auto sums = row.template over<Sums>(
            [&](Sums& s, Part y, Index j) __attribute__((always_inline)) {
                const Part own = y * row.scale, p = lesser(own, all(r)), u = load(u_.at(j, WIDTH));
                s.mass += p, s.gain -= p * u;
                if (SLOPE) s.more += where(own > r, all(1.0)), s.slope -= where(own > r, u);
            });
        double mass = sums.sum(&Sums::mass), gain = sums.sum(&Sums::gain);
        double more = SLOPE ? sums.sum(&Sums::more) : 0.0, slope = SLOPE ? sums.sum(&Sums::slope) : 0.0;
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

    // `value` and what all rows of a pair gain at r, or anything from `enough` on if that is not below.
    double bent(Index pair, View<const double> u, double r, double value, double enough) {
        if (r >= 1.0) return INFINITE;
        open(pair, u, r);
        const auto row = [&](Index i) {
            Row<Real> own = layout_.row(pair, i);
            if (sizeof(Real) == 4) own.scale = scale_of(own);
            return own;
        };
        return add_gains(row, [r](Index) { return r; }, value, enough);
    }

    Index length() const { return length_; }
    Index entry(Index n) const { return entry_[n]; }  // -1 where the state is not listed
    double level(Index n) const { return level_[n]; }

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
        const auto place = [&](Index j) { return point_.order.rank[layout_.indices[first_ + j]]; };
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
class LinfWriter {
public:
    LinfWriter(const Response<Real>& asked)
        : layout_(asked.layout), point_(asked.point), memory_(asked.memory), rows_(asked.rows),
          state_(asked.layout, asked.start, asked.stop) {}

    void write(Index s) {
        if (!state_.open(layout_, point_, s)) return;
        for (Index a = 0; a < layout_.A; ++a)
            if (rows_.weights[s][a] > 0.0) write(s, a);
    }

private:
    void write(Index s, Index a) {
        const Index pair = s * layout_.A + a, K = layout_.length(pair), at = rows_.entry_at[pair];
        const View<const std::int32_t> listed = layout_.indices.part(layout_.first(pair), K);
        const View<const double> u = state_.of(a);
        key_.resize(K), place_.resize(K);
        for (Index j = 0; j < K; ++j)
            key_[j] = layout_.unlisted ? double(point_.order.rank[listed[j]]) : -u[j];
        rank({key_.data(), K}, K, down_);
        for (Index n = 0; n < K; ++n)
            place_[down_[n]] = layout_.unlisted ? Index(key_[down_[n]]) : n;
        mass_.assign(rows_.entry_at[pair + 1] - at, 0.0);
        for (Index j = 0; j < K; ++j) rows_.states[at + j] = listed[j];
        for (Index i = 0; i < layout_.N; ++i) bend(s, a, i, at);
        for (Index j = 0; j < Index(mass_.size()); ++j) rows_.mass.set(at + j, mass_[j]);
    }

    void bend(Index s, Index a, Index i, Index at) {
        const Index pair = s * layout_.A + a;
        Row<Real> row = layout_.row(pair, i);
        if (sizeof(Real) == 4) row.scale = scale_of(row);
        const Index K = row.size, states = layout_.unlisted ? point_.order.u.size() : K;
        const double c = rows_.weights[s][a] * layout_.weights[i];
        const double r = rows_.share_of(s, i) * memory_.by_kernel[s][i];
        double supply = 0.0;
        for (Index j = 0; j < K; ++j) {
            const double p = r > 0.0 ? std::min(r, row[j]) : 0.0;
            mass_[j] += c * (row[j] - p), supply += p;
        }
        if (!(r > 0.0)) return;
        Index n = 0, k = 0;  // listed entries and states that were served, from the top
        while (k < states && supply > 0.0) {
            if (n < K && place_[down_[n]] == k) {
                const Index j = down_[n];
                const double kept = std::min(std::min(r, row[j]), supply);
                const double take = std::min(r, supply - kept);
                mass_[j] += c * (kept + take), supply -= kept + take;
                ++n, ++k;
                continue;
            }
            const Index run = (n < K ? place_[down_[n]] : states) - k;
            const Index full = supply / r < double(run) ? Index(supply / r) : run;
            k += full, supply -= double(full) * r;
            if (full < run) {
                rows_.states[at + K + i] = point_.order.states[k];
                mass_[K + i] += c * std::max(supply, 0.0);
                break;
            }
        }
        if (!layout_.unlisted) return;
        const Index term = rows_.prefix_at[pair] + i;
        rows_.length[term] = std::int32_t(k), rows_.level.set(term, c * r);
        for (Index j = 0; j < K; ++j)
            if (place_[j] < k) mass_[j] -= c * r;  // served above
    }

    const Layout<Real>& layout_;
    const Point& point_;
    const Memory& memory_;
    const Rows& rows_;
    Stakes state_;
    std::vector<double> key_, mass_;
    std::vector<Index> down_, place_;
};

}  // namespace drmdp
