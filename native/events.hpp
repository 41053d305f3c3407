// Rows of kernels made of laws of events.
//
// Event e has probability p_i(e) in kernel i, and leads from (s, a) to the next state f(s, a, e) at a cost
// c(s, a, e). So y_i(t | s, a) = sum of p_i(e) over the events with f(s, a, e) = t, of the class of laws
// that the pair has. Events that end in the same state at the same cost are one *slot*; at different
// costs they stay apart, for a kernel has one cost for each entry. Slots are in ascending order of (next
// state, cost). Events that no kernel has (`live` are the others) are left out.
//
// Most rules map runs of neighbouring events to a slot. A slot of one event copies its probability; a run
// that reaches the last event is a suffix sum of the law, made once; any other is summed up. Nothing is
// subtracted: tiny probabilities keep their digits. Where next states go up or down from event to event,
// rows depend on the class, the direction and where runs begin alone: those written before are copied.
//
// **Rounding.** With e = 2^-52, a sum of n numbers >= 0 is kept in two (`add_to`): `total`, their sum
// as rounded, and `rest`. What the two leave out grows by e^2/2 of the sum with each number, so that total
// is off by at most 1/2 (1 + n e) e, relatively, in any order. A law misses 1 by 4 e at most, so that a row
// sums to 1 up to 5 e, and each of its entries, divided by that sum, is exact up to 2 e, relatively.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "chain.hpp"

namespace drmdp {

// Laws by class, the live events of each class first.
struct Laws {
    Index E, N;
    View<const double> p, tail;              // (C, E, N) and sums from each live event on
    View<const std::int64_t> live, n_live;   // (C, E) events, (C)
    View<const double> weights;              // (N)

    View<const double> law(Index c, Index k) const { return p.part((c * E + k) * N, N); }
    View<const double> rest(Index c, Index k) const { return tail.part((c * E + k) * N, N); }
    View<const std::int64_t> events(Index c) const { return live.part(c * E, n_live[c]); }
};

inline void suffix_sums(View<const double> p, Index C, Index E, Index N, View<double> tail) {
    std::vector<double> rest(N);
    for (Index c = 0; c < C; ++c)
        for (Index k = E - 1; k >= 0; --k)
            for (Index i = 0; i < N; ++i) {
                const Index at = (c * E + k) * N + i;
                if (k == E - 1) tail[at] = p[at], rest[i] = 0.0;
                else tail[at] = tail[at + N], add_to(tail[at], rest[i], p[at]);
            }
}

// What the rule says of n states.
struct Asked {
    Index n, A, E;
    View<const std::int32_t> next;           // (n, A, E)
    View<const double> costs;                // (n, A, E), or none
    View<const std::uint16_t> classes;       // (n, A), or none: all 0
    View<const std::uint8_t> available;      // (n, A)

    Index class_of(Index pair) const { return classes.empty() ? 0 : classes[pair]; }
    View<const std::int32_t> states(Index pair) const { return next.part(pair * E, E); }
    View<const double> prices(Index pair) const { return costs.empty() ? costs : costs.part(pair * E, E); }
};

// Rows of those states, as `Layout` has them.
struct Block {
    View<std::int64_t> indptr;   // (n A + 1)
    View<std::int32_t> indices;
    View<double> data, mean, costs;
};

// Rows that were written before, by what they are made of: a table of fixed size.
class SeenRows {
public:
    static constexpr Index PLACES = 1024;         // twice as many as are kept
    static constexpr Index NUMBERS = Index(1) << 19;  // that are kept, about

    SeenRows(Index E, Index N)
        : words(1 + (E + 63) / 64), key(words), keys_(PLACES * words), at_(PLACES),
          most_(std::min(PLACES / 2, 1 + NUMBERS / std::max<Index>(E * (N + 1), 1)) * E * (N + 1)) {}

    Index words;                     // of a key: class and direction, then where runs begin
    std::vector<std::uint64_t> key;  // the one that is looked for

    // Whether it is there; `place` is where, or a free place, -1 if there is none.
    bool find(Index& place) const {
        std::uint64_t mixed = 0;
        for (const std::uint64_t word : key) {
            mixed = (mixed ^ word) * 0x9E3779B97F4A7C15u;
            mixed ^= mixed >> 29;
        }
        for (place = Index(mixed % PLACES); keys_[place * words] != 0; place = (place + 1) % PLACES)
            if (std::equal(key.begin(), key.end(), keys_.begin() + place * words)) return true;
        if (2 * used_ >= PLACES) place = -1;
        return false;
    }
    const double* rows(Index place) const { return data_.data() + at_[place]; }
    // Keep N rows of K numbers and their mean, if there is room.
    void keep(Index place, const double* rows, const double* mean, Index n, Index K) {
        if (place < 0 || Index(data_.size()) + n + K > most_) return;
        std::copy(key.begin(), key.end(), keys_.begin() + place * words);
        at_[place] = Index(data_.size());
        data_.insert(data_.end(), rows, rows + n);
        data_.insert(data_.end(), mean, mean + K);
        ++used_;
    }
    Index used() const { return used_; }
    bool is_full(Index n) const { return 2 * used_ >= PLACES || Index(data_.size()) + n > most_; }

private:
    std::vector<std::uint64_t> keys_;  // (places, words); 0 first in a free place
    std::vector<Index> at_;            // where rows begin in data, their mean behind them
    std::vector<double> data_;
    Index most_, used_ = 0;
};

// Writes the rows of some states after the other, always into the same block.
class EventRows {
public:
    const Index E, N;
    SeenRows seen;

    EventRows(Index E, Index N)
        : E(E), N(N), seen(E, N), slot_(E), first_(E + 1), place_(E), order_(E), rest_(E * N) {}

    // Writes a block; `merged`: events in the same slot are one entry. The number of entries.
    Index fill(const Asked& asked, const Laws& laws, bool merged, const Block& block) {
        Index at = 0;
        block.indptr[0] = 0;
        for (Index pair = 0; pair < asked.n * asked.A; ++pair) {
            if (asked.available[pair])
                at += merged ? merge(asked, pair, laws, at, block) : events(asked, pair, laws, at, block);
            block.indptr[pair + 1] = at;
        }
        return at;
    }

private:
    // A pair whose entries are its live events; where all pairs have the same laws, rows that are there stay.
    Index events(const Asked& asked, Index pair, const Laws& laws, Index at, const Block& block) {
        const Index c = asked.class_of(pair), N = laws.N;
        const View<const std::int64_t> live = laws.events(c);
        const View<const std::int32_t> there = asked.states(pair);
        const View<const double> prices = asked.prices(pair);
        const Index K = live.size();
        for (Index k = 0; k < K; ++k) {
            block.indices[at + k] = there[live[k]];
            block.costs[at + k] = prices.empty() ? 0.0 : prices[live[k]];
        }
        if (laws.n_live.size() == 1 && at < same_) return K;
        for (Index k = 0; k < K; ++k) {
            const View<const double> law = laws.law(c, k);
            for (Index i = 0; i < N; ++i) block.data[N * at + i * K + k] = law[i];
        }
        average(laws.weights, at, K, block);
        same_ = at + K;
        return K;
    }

    // A pair whose entries are its slots.
    Index merge(const Asked& asked, Index pair, const Laws& laws, Index at, const Block& block) {
        const Index c = asked.class_of(pair), N = laws.N;
        const View<const std::int64_t> live = laws.events(c);
        bool up = true, down = true;
        Index K = runs(asked, pair, live, at, block, up, down);
        if (!up && !down) {
            K = slots(asked, pair, live, at, block);
            rows(laws, c, K, false, at, block);
            return K;
        }
        if (!up) {
            std::reverse(block.indices.at(at, K), block.indices.at(at, K) + K);
            std::reverse(block.costs.at(at, K), block.costs.at(at, K) + K);
        }
        if (N == 0) return K;
        Index place;
        seen.key[0] = std::uint64_t(2 * c + (up ? 2 : 1));
        if (seen.find(place)) {
            const double* known = seen.rows(place);
            std::copy(known, known + N * K, block.data.at(N * at, N * K));
            std::copy(known + N * K, known + (N + 1) * K, block.mean.at(at, K));
            return K;
        }
        number(live.size(), up, K);
        rows(laws, c, K, true, at, block);
        seen.keep(place, block.data.at(N * at, N * K), block.mean.at(at, K), N * K, K);
        return K;
    }

    // Slots of a pair whose next states, and costs where those are equal, go up or down from event to
    // event: they are runs. Fills where they begin; how many there are.
    Index runs(const Asked& asked, Index pair, View<const std::int64_t> live, Index at, const Block& block,
               bool& up, bool& down) {
        const View<const std::int32_t> there = asked.states(pair);
        const View<const double> prices = asked.prices(pair);
        std::int32_t* const states = block.indices.at(at, 1);
        double* const costs = block.costs.at(at, 1);
        const bool free = prices.empty();
        Index last = 0, falls = 0, rises = 0;
        std::int32_t before = there[live[0]];
        double paid = free ? 0.0 : prices[live[0]];
        states[0] = before, costs[0] = paid;
        for (Index j = 1; j < seen.words; ++j) {
            std::uint64_t bits = j == 1 ? 1 : 0;
            const Index end = std::min(64 * j, live.size());
            for (Index k = std::max<Index>(1, 64 * (j - 1)); k < end; ++k) {
                const Index e = live[k];
                const std::int32_t t = there[e];
                bool other = t != before, less = t < before;
                if (!free) {
                    const double x = prices[e];
                    less |= !other && x < paid;
                    other |= x != paid;
                    paid = x;
                }
                last += other;
                states[last] = t, costs[last] = paid;
                falls += less, rises += other && !less;
                bits |= std::uint64_t(other) << (k & 63);
                before = t;
            }
            seen.key[j] = bits;
        }
        up = falls == 0, down = rises == 0;
        return last + 1;
    }

    // Numbers the slots of runs.
    void number(Index n_live, bool up, Index K) {
        Index j = -1;
        for (Index k = 0; k < n_live; ++k) {
            if (seen.key[1 + (k >> 6)] >> (k & 63) & 1) {
                ++j;
                first_[j] = k, place_[j] = up ? j : K - 1 - j;
            }
            slot_[k] = j;
        }
        first_[K] = n_live;
    }

    // Slots of any pair: its events in order; how many there are.
    Index slots(const Asked& asked, Index pair, View<const std::int64_t> live, Index at, const Block& block) {
        const View<const std::int32_t> there = asked.states(pair);
        const View<const double> prices = asked.prices(pair);
        const auto key = [&](Index k) {
            return std::make_tuple(there[live[k]], prices.empty() ? 0.0 : prices[live[k]]);
        };
        std::iota(order_.begin(), order_.begin() + live.size(), Index(0));
        std::stable_sort(order_.begin(), order_.begin() + live.size(), [&](Index k, Index m) { return key(k) < key(m); });
        Index K = 0;
        for (Index n = 0; n < live.size(); ++n) {
            const Index k = order_[n];
            if (n == 0 || key(k) != key(order_[n - 1])) {
                std::tie(block.indices[at + K], block.costs[at + K]) = key(k);
                first_[K] = k, place_[K] = K, ++K;
            }
            slot_[k] = K - 1;
        }
        return K;
    }

    // The N rows of a pair, and their mean; `runs`: slots are runs.
    void rows(const Laws& laws, Index c, Index K, bool runs, Index at, const Block& block) {
        const Index N = laws.N, n_live = laws.n_live[c];
        for (Index k = 0; k < n_live; ++k) {
            const Index j = slot_[k];
            const bool tail = runs && first_[j] == k && first_[j + 1] == n_live;
            const View<const double> law = tail ? laws.rest(c, k) : laws.law(c, k);
            double* y = block.data.at(N * at, N * K) + place_[j];
            double* rest = rest_.data() + j * N;
            const bool begins = first_[j] == k;
            for (Index i = 0; i < N; ++i, y += K) {
                if (begins) *y = law[i], rest[i] = 0.0;
                else add_to(*y, rest[i], law[i]);
            }
            if (tail) break;
        }
        average(laws.weights, at, K, block);
    }

    static void average(View<const double> weights, Index at, Index K, const Block& block) {
        const Index N = weights.size();
        double* const mean = block.mean.at(at, K);
        std::fill_n(mean, K, 0.0);
        for (Index i = 0; i < N; ++i)
            if (weights[i] > 0.0) {
                const double* const y = block.data.at(N * at + i * K, K);
                for (Index j = 0; j < K; ++j) mean[j] += weights[i] * y[j];
            }
        if (N > 0) raise_seen(weights, block.data.at(N * at, N * K), K, mean);
    }

    std::vector<Index> slot_, first_, place_;  // of each live event; of each slot: its first, and in order
    std::vector<Index> order_;                 // events
    std::vector<double> rest_;                 // what the sums of a pair's slots leave out
    Index same_ = 0;                           // entries that hold the only rows there are
};

// The best action of some states under the mean law, p (C, E): 1 in its policy, and its value; both stay
// as they are where a state ends.
inline void mean_law_update(const Asked& asked, Table<const double> mean, double discount,
                            View<const double> prices, View<const double> u, Table<double> policy,
                            View<double> stake) {
    for (Index s = 0; s < asked.n; ++s) {
        double least = INFINITE;
        Index best = -1;
        for (Index a = 0; a < asked.A; ++a) {
            const Index pair = s * asked.A + a;
            if (!asked.available[pair]) continue;
            const View<const double> p = mean[asked.class_of(pair)], paid = asked.prices(pair);
            const View<const std::int32_t> there = asked.states(pair);
            const double moved = paid.empty()
                ? sum_over(asked.E, [&](Index e) __attribute__((always_inline)) {
                      return p[e] * (discount * u[there[e]]);
                  })
                : sum_over(asked.E, [&](Index e) __attribute__((always_inline)) {
                      return p[e] * (discount * u[there[e]] + paid[e]);
                  });
            if (prices[pair] + moved < least) least = prices[pair] + moved, best = a;
        }
        if (best >= 0) policy[s][best] = 1.0, stake[s] = least;
    }
}

// Expected z after some states under the mean law.
inline void mean_law_product(Table<const std::int32_t> there, View<const std::uint16_t> classes,
                             Table<const double> mean, View<const double> z, View<double> out) {
    for (Index s = 0; s < out.size(); ++s)
        out[s] = expected(mean[classes.empty() ? 0 : classes[s]].data(), there[s].data(), z, mean.columns());
}

}  // namespace drmdp
