// Chains: products of rows with vectors, rows of the mean kernel, small systems of equations, and the
// start from the mean kernel.
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

// Where the entries and prefix terms of each pair of positive weight go; true if a pair that is not
// available has weight, or one has negative weight.
inline bool allot(View<const double> weights, View<const std::uint8_t> available,
                  View<const std::int64_t> lengths, Index prefixes, View<std::int64_t> entry_at,
                  View<std::int64_t> prefix_at) {
    bool odd = false;
    entry_at[0] = prefix_at[0] = 0;
    for (Index k = 0; k < weights.size(); ++k) {
        const bool used = weights[k] > 0.0 && available[k];
        odd |= weights[k] != 0.0 && !used;
        entry_at[k + 1] = entry_at[k] + (used ? lengths[k] : 0);
        prefix_at[k + 1] = prefix_at[k] + (used ? prefixes : 0);
    }
    return odd;
}

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

// Replaces b by (I - discount P)^-1 b.
inline void solve_small(Table<const double> chain, double discount, View<double> b) {
    const Index n = b.size();
    std::vector<double> system(n * n);
    const Table<double> a({system.data(), n * n}, n);
    for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) a[i][j] = (i == j ? 1.0 : 0.0) - discount * chain[i][j];
    eliminate(a, b, n * n * n);
}

// The mean kernel of a model, and policy iteration on it.
struct MeanRows {
    View<const std::int64_t> indptr;     // (S A + 1)
    View<const std::int32_t> indices;
    View<const double> data;
    Table<const double> costs;           // (S, A)
    View<const std::uint8_t> available;  // (S A)
    double discount;
    Index S, A;

    double product(Index pair, View<const double> z) const {
        const Index first = indptr[pair], n = indptr[pair + 1] - first;
        return expected(data.at(first, n), indices.at(first, n), z, n);
    }

    struct Round {
        double size;  // largest |F(v) - v|
        bool same;    // whether x is what it was
    };

    // F(v) - v; if `free`, x becomes the best actions.
    Round improve(bool free, Table<double> x, View<const double> value, View<double> residual) const {
        Round found{0.0, true};
        for (Index s = 0; s < S; ++s) {
            double best = INFINITE, mean = 0.0;
            Index own = -1;
            for (Index a = 0; a < A; ++a) {
                if (!available[s * A + a] || !(free || x[s][a] > 0.0)) continue;
                const double stake = costs[s][a] + discount * product(s * A + a, value);
                mean += x[s][a] * stake;
                if (stake < best) best = stake, own = a;
            }
            if (free) {
                found.same = found.same && (own < 0 || x[s][own] == 1.0);
                for (Index a = 0; a < A; ++a) x[s][a] = a == own ? 1.0 : 0.0;
                mean = own >= 0 ? best : 0.0;
            }
            residual[s] = mean - value[s];
            const double size = std::fabs(residual[s]);
            found.size = size > found.size ? size : found.size;
        }
        return found;
    }

    // The chain of a policy written out, onto zeros.
    void spell(Table<const double> x, Table<double> chain) const {
        for (Index s = 0; s < S; ++s)
            for (Index a = 0; a < A; ++a)
                if (x[s][a] > 0.0)
                    for (Index e = indptr[s * A + a]; e < indptr[s * A + a + 1]; ++e)
                        chain[s][indices[e]] += x[s][a] * data[e];
    }

    // (I - discount P) z.
    void apply(Table<const double> x, View<const double> z, View<double> out) const {
        for (Index s = 0; s < S; ++s) {
            double total = 0.0;
            for (Index a = 0; a < A; ++a)
                if (x[s][a] > 0.0) total += x[s][a] * product(s * A + a, z);
            out[s] = z[s] - discount * total;
        }
    }

    struct Limits {
        Index products;
        double rate, slack;  // what a product must leave, in the long run, and by how much it may be behind
        double rough;        // what may be left of delta, relatively
    };

    // delta with (I - discount P) delta = right, roughly, by products, if the chain mixes fast: with
    // right = m + d, m its mean, m/(1 - discount) + d leaves discount P d, whose differences are smaller.
    bool relax(Table<const double> x, View<const double> right, const Limits& limits,
               View<double> found) const {
        std::vector<double> left(right.begin(), right.end()), step(S), image(S);
        for (double& z : found) z = 0.0;
        double first = 0.0, share = 1.0;
        for (Index n = 0; n < limits.products; ++n, share *= limits.rate) {
            double size = 0.0, most = 0.0;
            for (Index k = 0; k < S; ++k) {
                size = std::fabs(left[k]) > size ? std::fabs(left[k]) : size;
                most = std::fabs(found[k]) > most ? std::fabs(found[k]) : most;
            }
            const double mean = sum_over(S, [&](Index k) { return left[k]; }) / double(S);
            first = n ? first : size;
            if (size <= limits.rough * (1.0 - discount) * most) return true;
            if (!(size <= limits.slack * share * first)) return false;
            const double lift = mean * discount / (1.0 - discount);
            for (Index k = 0; k < S; ++k) step[k] = left[k] + lift;
            apply(x, {step.data(), S}, {image.data(), S});
            for (Index k = 0; k < S; ++k) found[k] += step[k], left[k] -= image[k];
        }
        return false;
    }

    // All rounds of a small model, from v on.
    void rounds(bool free, double tol, Index most, Table<double> x, View<double> value) const {
        std::vector<double> chain(S * S), residual(S);
        const View<double> r(residual.data(), S);
        const Table<double> P({chain.data(), S * S}, S);
        double least = INFINITE;
        for (Index n = 0; n < most; ++n) {
            const Round round = improve(free, x, value, r);
            if (round.size <= (1.0 - discount) * tol || (round.same && !(round.size < least))) break;
            least = round.size;
            for (double& y : chain) y = 0.0;
            spell(x, P);
            solve_small(P, discount, r);
            for (Index s = 0; s < S; ++s) value[s] += r[s];
        }
    }
};

}  // namespace drmdp
