// What a model looks like to a routine, v as one sweep sees it, and what a sweep leaves behind.
//
// Pair k = s A + a owns the entries indptr[k] ... indptr[k+1] - 1, its K listed next states, and the
// (N, K) block of `data` at N indptr[k]. Rows of float32 are divided by their sums in float64.
#pragma once

#include <type_traits>

#include "lanes.hpp"
#include "outside.hpp"

namespace drmdp {

// One row: K probabilities, times `scale`.
template <class Real>
struct Row {
    const Real* y = nullptr;
    Index size = 0, readable = 0;  // numbers of the row, and numbers inside the array from y on
    double scale = 1.0;

    DRMDP_INLINE double operator[](Index j) const {
        DRMDP_EXPECT(0 <= j && j < size);
        return double(y[j]) * scale;
    }
    // body(sums, numbers as stored, j) for every part; behind the row come zeros.
    template <class Sums, class Body>
    DRMDP_INLINE Gathered<Sums> over(Body body) const {
        Gathered<Sums> gathered;
        DRMDP_UNROLL
        for (Index p = 0; p < PARTS; ++p) {
            Sums sums{};
            Index j = p * WIDTH;
            for (; j + WIDTH <= size; j += LANES) body(sums, load(y + j), j);
            if (j < size) body(sums, load_first(y + j, size - j, readable - j), j);
            gathered.parts[p] = sums;
        }
        return gathered;
    }
};

struct PartSum {
    Part sum{};
};

// The sum of a row as stored, and 1 over it, 0 of an empty one.
template <class Real>
double mass_of(const Row<Real>& row) {
    const auto total = row.template over<PartSum>(
        [](PartSum& sums, Part p, Index) __attribute__((always_inline)) { sums.sum += p; });
    return total.sum(&PartSum::sum);
}
template <class Real>
double scale_of(const Row<Real>& row) {
    const double mass = mass_of(row);
    return mass > 0.0 ? 1.0 / mass : 0.0;
}

template <class Real>
struct Layout {
    Index S = 0, A = 0, N = 0;
    View<const std::int64_t> indptr;    // (S A + 1)
    View<const std::int32_t> indices;   // (entries)
    View<const Real> data;              // (N entries)
    View<const double> mean;            // (entries)
    View<const double> weights;         // (N), positive
    View<const std::uint8_t> available; // (S A)
    View<const double> costs;           // (S A)
    View<const double> next_costs;      // (entries), or none
    View<const double> radius;          // (S)
    View<const double> discounts;       // one for all pairs, or (S A)
    bool unlisted = false;              // nature may use states that are not listed
    bool common = false;                // all actions have the same stakes, up to their costs

    Index first(Index pair) const { return indptr[pair]; }
    Index length(Index pair) const { return indptr[pair + 1] - indptr[pair]; }
    double discount(Index pair) const { return discounts[discounts.size() == 1 ? 0 : pair]; }
    Row<Real> row(Index pair, Index i) const {
        const Index K = length(pair), at = N * first(pair) + i * K;
        return {data.at(at, K), K, data.size() - at, 1.0};
    }
    Row<double> mean_row(Index pair) const {
        const Index K = length(pair), at = first(pair);
        return {mean.at(at, K), K, mean.size() - at, 1.0};
    }
    bool has_actions(Index s) const {
        for (Index k = s * A; k < (s + 1) * A; ++k)
            if (available[k]) return true;
        return false;
    }
    // Most entries of a pair of the states start ... stop - 1.
    Index longest(Index start, Index stop) const {
        Index most = 0;
        for (Index k = start * A; k < stop * A; ++k) most = length(k) > most ? length(k) : most;
        return most;
    }
    // The mean rows alone, as one kernel.
    Layout<double> averaged() const {
        static constexpr double one = 1.0;
        return {S, A, 1, indptr, indices, mean, mean, {&one, 1}, available, costs, next_costs,
                radius, discounts, unlisted, common};
    }
};

// What a set has besides: an order, where mass can go (transport), and functions from outside.
struct Extra {
    double order = 1.0;
    View<const std::int64_t> list_at;      // (n + 1) where each list begins
    View<const std::int32_t> list_target;  // what stakes are read from: states, or entries of a pair
    View<const double> list_cost;          // ascending in each list
    View<const std::int32_t> list_of;      // (entries) the list of each entry
    bool free = false;                     // some moves cost nothing

    // The stake of a target; one that is not there is none.
    DRMDP_INLINE double stake(Index k, View<const double> u) const {
        const Index to = list_target[k];
        return 0 <= to && to < u.size() ? u[to] : -INFINITE;
    }
    Outside outside;
};

// A T that takes what a set has besides, or one that does not.
template <class T, class... Others>
T made(const Extra& extra, const Others&... others) {
    if constexpr (std::is_constructible_v<T, const Extra&, const Others&...>) return T(extra, others...);
    else return T(others...);
}

// v in descending order, for states that are not listed; all of it, or its top.
struct Order {
    View<const std::int32_t> states;  // (n) best for nature first
    View<const double> u;             // (n) descending from 0
    View<const double> sum1, sum2;    // (n + 1) prefix sums of u and of u^2
    View<const std::int32_t> rank;    // (S) place of each state, S if it has none
    View<const std::int32_t> below;   // (n) u in the parts before each of n equal parts of [-1, 0]
    double second = 0.0;              // largest u below 0, or 0
    double level = -INFINITE;         // u at the end of the least top; -inf where that is all
    View<std::int64_t> beyond;        // (1) not 0 once somebody counted past the end of the top

    // The place of a state, behind the top if it has none.
    Index place_of(Index state) const {
        const Index own = rank[state], n = u.size();
        return 0 <= own && own < n ? own : n;
    }
    // #{t u > tau}, galloping from where the part of tau/t begins.
    Index count_above(double t, double tau) const {
        const Index n = u.size();
        const double part = -double(n) * tau / t;
        Index low = part >= 0.0 && part < double(n) ? below[Index(part)] : 0, step = 1;
        low = 0 <= low && low < n ? low : n;
        Index high = low;
        if (low < n && t * u[low] > tau) {
            for (; high < n && t * u[high] > tau; step *= 2) low = high + 1, high += step;
            high = high < n ? high : n;
        } else {
            for (; low > 0 && !(t * u[low - 1] > tau); step *= 2) high = low - 1, low -= step;
            low = low > 0 ? low : 0;
        }
        while (low < high) {
            const Index middle = (low + high) / 2;
            if (t * u[middle] > tau) low = middle + 1;
            else high = middle;
        }
        if (low == n && n < rank.size()) beyond[0] = 1;
        return low;
    }
};

// v as one sweep sees it.
struct Point {
    View<const double> value;   // (S) without its level
    double top = 0.0;           // max v
    double span = 0.0;          // max v - min v
    View<const double> common;  // (S) (v - max v)/span, or none
    Order order;
};

// What a sweep leaves behind for the next one, for nature's rows and for the judge.
struct Memory {
    Table<double> by_action;  // (S, A)
    Table<double> by_kernel;  // (S, N) or (S, 0)
    Table<double> by_row;     // (S, A width)
};

// What a sweep finds.
struct Found {
    View<double> upper, lower;  // (S)
    Table<double> policy;       // (S, A)
    View<double> passes;        // (S) passes over the candidate rows
};

}  // namespace drmdp
