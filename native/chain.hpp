// Chains: products of rows with vectors, rows of the mean kernel, and small systems of equations.
#pragma once

#include <cmath>
#include <vector>

#include "vectors.hpp"

namespace drmdp {

// Adds x to a sum that is kept in two: as rounded, and what that leaves out (events.hpp says how much).
DRMDP_INLINE void add_to(double& total, double& rest, double x) {
    const double high = total + x, own = high - total;
    const double low = ((total - (high - own)) + (x - own)) + rest;
    total = high + low;
    rest = low - (total - high);
}

// sum_j y_j z(t_j) over n entries.
template <class Real>
DRMDP_INLINE double expected(const Real* y, const std::int32_t* t, View<const double> z, Index n) {
    return sum_over(n, [&](Index j) __attribute__((always_inline)) { return double(y[j]) * z[t[j]]; });
}

// Rows made of entries (state, mass) and prefix terms (k, slope, level): slope u(t) + level on the first
// k states of an order. A product needs prefix sums of z and of u z over that order, and no more.
template <class Real>
struct CompactRows {
    View<const std::int64_t> entry_at;      // (R + 1)
    View<const std::int32_t> entry_state;
    View<const Real> entry_mass;
    View<const std::int64_t> prefix_at;     // (R + 1)
    View<const std::int32_t> prefix_length;
    View<const Real> prefix_slope, prefix_level;

    Index size() const { return entry_at.size() - 1; }

    // Row r with z; sum and sum_u are prefix sums of z and of u z.
    double product(Index r, View<const double> z, View<const double> sum, View<const double> sum_u) const {
        const Index first = entry_at[r], n = entry_at[r + 1] - first;
        double total = expected(entry_mass.at(first, n), entry_state.at(first, n), z, n);
        for (Index e = prefix_at[r]; e < prefix_at[r + 1]; ++e) {
            const Index k = prefix_length[e];
            total += double(prefix_slope[e]) * sum_u[k] + double(prefix_level[e]) * sum[k];
        }
        return total;
    }
    // Row r written out, onto zeros.
    void spell(Index r, View<const std::int32_t> states, View<const double> u, View<double> out) const {
        for (Index e = entry_at[r]; e < entry_at[r + 1]; ++e) out[entry_state[e]] += double(entry_mass[e]);
        for (Index e = prefix_at[r]; e < prefix_at[r + 1]; ++e)
            for (Index k = 0; k < prefix_length[e]; ++k)
                out[states[k]] += double(prefix_slope[e]) * u[k] + double(prefix_level[e]);
    }
};

// Means underflow: a weight times a probability may be anything below 1e-308. So a mean is at least LEAST
// where a kernel of positive weight has a probability (rows y of K numbers).
constexpr double LEAST = 1e-300;

template <class Real>
void raise_seen(View<const double> weights, const Real* y, Index K, double* mean) {
    for (Index j = 0; j < K; ++j)
        for (Index i = 0; mean[j] < LEAST && i < weights.size(); ++i)
            if (weights[i] > 0.0 && y[i * K + j] > Real(0)) mean[j] = LEAST;
}

// total += sum_i w_i y_i for every pair; rows of float32 are divided by their sums.
template <class Real>
void add_rows(View<const std::int64_t> indptr, View<const Real> data, View<const double> weights,
              View<double> total) {
    const Index N = weights.size();
    for (Index k = 0; k + 1 < indptr.size(); ++k) {
        const Index first = indptr[k], K = indptr[k + 1] - first;
        for (Index i = 0; i < N; ++i) {
            if (!(weights[i] > 0.0)) continue;
            const Index at = N * first + i * K;
            double scale = 1.0;
            if constexpr (sizeof(Real) == 4) {
                scale = 0.0;
                for (Index j = 0; j < K; ++j) scale += double(data[at + j]);
            }
            for (Index j = 0; j < K; ++j) total[first + j] += weights[i] * (double(data[at + j]) / scale);
        }
        raise_seen(weights, data.at(N * first, N * K), K, total.at(first, K));
    }
}

// Replaces b by a^-1 b, and spoils a, by elimination that passes over zeros; without pivots, which systems
// whose diagonal dominates do not need. False once it takes more products than `limit`.
inline bool eliminate(Table<double> a, View<double> b, Index limit) {
    const Index n = b.size();
    std::vector<Index> listed(n);  // columns of a row that are not 0
    for (Index k = 0; k < n; ++k) {
        const View<double> own = a[k];
        Index count = 0;
        for (Index j = k + 1; j < n; ++j)
            if (own[j] != 0.0) listed[count++] = j;
        const bool few = 4 * count < n - k;
        for (Index i = k + 1; i < n; ++i) {
            const View<double> row = a[i];
            const double factor = row[k] / own[k];
            if (factor == 0.0) continue;
            limit -= count;
            if (few)
                for (Index c = 0; c < count; ++c) row[listed[c]] -= factor * own[listed[c]];
            else
                for (Index j = k + 1; j < n; ++j) row[j] -= factor * own[j];
            b[i] -= factor * b[k];
        }
        if (limit < 0) return false;
    }
    for (Index k = n - 1; k >= 0; --k) {
        const View<double> own = a[k];
        b[k] = (b[k] - sum_over(n - k - 1, [&](Index j) __attribute__((always_inline)) {
                    return own[k + 1 + j] * b[k + 1 + j];
                })) / own[k];
    }
    return true;
}

}  // namespace drmdp
