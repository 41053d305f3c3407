// The rows of one state, displaced by a step, and the way back.
//
// Row (a, i) of the point is y_ia + w_i step_a (c + discount v). What rounding leaves of sum e is taken
// from the larger of gains and losses, which keeps the row a distribution and nowhere takes it farther.
#pragma once

#include <vector>

#include "../data.hpp"
#include "rows.hpp"

namespace drmdp::prox {

// The point to be projected.
struct Push {
    Table<const double> step;  // (S, A)
    View<const double> value;  // (S)
};

// What a projection leaves behind for the next one, and reads as a guess; zeros to begin with.
struct Trace {
    Table<double> multiplier;     // (S, M)
    Table<double> threshold;      // (S A, N)
    Table<std::int64_t> trials;   // (S, M) multipliers tried; 0 where the ball does not bind
};

template <class Real>
struct Job {
    const Layout<Real>& layout;
    const Push& push;
    View<double> y;  // (N entries), the iterate
    const Trace& trace;
    double accuracy;  // of distances, relative to the radius
    bool inside;      // the iterate is in the ball: rows without a step may be left alone
};

// c + discount v at the listed states of a pair.
template <class Real>
void fill_stakes(const Layout<Real>& layout, View<const double> value, Index pair, double* stake) {
    const Index at = layout.first(pair), K = layout.length(pair);
    const double discount = layout.discount(pair);
    for (Index j = 0; j < K; ++j) stake[j] = discount * value[layout.indices[at + j]];
    if (!layout.next_costs.empty())
        for (Index j = 0; j < K; ++j) stake[j] += layout.next_costs[at + j];
}

// Subtracts what changes no step, so that a step in this direction has no positive entry.
inline void level_stakes(double* stake, Index K, double step) {
    double top = stake[0];
    for (Index j = 1; j < K; ++j) top = (step > 0.0) == (stake[j] > top) ? stake[j] : top;
    for (Index j = 0; j < K; ++j) stake[j] -= top;
}

template <class Real>
Row<Real> centre(const Layout<Real>& layout, Index pair, Index i) {
    Row<Real> row = layout.row(pair, i);
    if (sizeof(Real) == 4) row.scale = scale_of(row);
    return row;
}

// The next numbers of a row, and zeros behind it.
template <class T>
DRMDP_INLINE Part load_row(const View<T>& x, Index at, Index j, Index size) {
    if (j + WIDTH <= size) return load(x.data() + at + j);
    return load_first(x.data() + at + j, size - j, x.size() - at - j);
}

template <class Real>
class StateRows {
public:
    StateRows(const Job<Real>& job, Index start, Index stop)
        : job_(job), N_(job.layout.N), A_(job.layout.A),
          padded_(to_lanes(job.layout.longest(start, stop))), rows_(A_ * N_),
          numbers_(2 * A_ * N_ * padded_), stake_(padded_), spread_(N_), still_(N_) {}

    Displaced& operator()(Index a, Index i) { return rows_[i * A_ + a]; }
    Index actions() const { return A_; }
    double spread(Index i) const { return spread_[i]; }  // sum (d - mean d)^2 of the displaced rows
    double still(Index i) const { return still_[i]; }    // sum (y - c)^2 of the others

    // Returns the radius; where it is 0 the rows are the data.
    double open(Index s, bool leave) {
        s_ = s;
        const Layout<Real>& layout = job_.layout;
        std::fill(spread_.begin(), spread_.end(), 0.0);
        std::fill(still_.begin(), still_.end(), 0.0);
        const double theta = layout.radius[s];
        for (Index a = 0; a < A_; ++a) {
            const double step = job_.push.step[s][a];
            const Index K = layout.length(pair(a));
            std::fill(stake_.begin(), stake_.end(), 0.0);
            if (theta > 0.0 && step != 0.0 && K > 0) {
                fill_stakes(layout, job_.push.value, pair(a), stake_.data());
                level_stakes(stake_.data(), K, step);
            }
            for (Index i = 0; i < N_; ++i) {
                Displaced& row = (*this)(a, i);
                const double guess = job_.trace.threshold[pair(a)][i];
                row = Displaced{};
                row.still = K == 0 || theta == 0.0 || (leave && step == 0.0);
                if (guess != 0.0 && std::fabs(guess) < FARTHEST) row.alpha = guess;
                if (!row.still) displace(row, a, i, layout.weights[i] * step);
                else if (theta == 0.0) shrink(a, i, 0.0);
                else if (K > 0) still_[i] += square(a, i);
            }
        }
        return theta;
    }

    // Turns d into e, its gains and losses equal; returns sum |e| or, for l2, sum e^2.
    template <class Norm>
    double move(Displaced& row, double at, double lack) {
        struct Sums {
            Part up{}, down{}, up2{}, down2{};
        };
        const auto sums = over_lanes<Sums>(
            row.padded, [&](Sums& s, Index j) __attribute__((always_inline)) {
                const Part e = Norm::entry(row, j, at, lack);
                const Part gain = greater(e, Part{}), loss = lesser(e, Part{});
                s.up += gain;
                s.down -= loss;
                s.up2 += gain * gain;
                s.down2 += loss * loss;
                store(row.d + j, e);
            });
        const double up = sums.sum(&Sums::up), down = sums.sum(&Sums::down);
        row.gain = up > down ? down / up : 1.0, row.loss = down > up ? up / down : 1.0;
        if (!Norm::SQUARES) return 2.0 * std::min(up, down);
        return row.gain * row.gain * sums.sum(&Sums::up2) +
               row.loss * row.loss * sums.sum(&Sums::down2);
    }

    // The row c + part e, after `move`.
    void write(Index a, Index i, double part) {
        const Displaced& row = (*this)(a, i);
        double* y = job_.y.at(place(a, i), row.size);
        const double gain = part * row.gain, loss = part * row.loss;
        for (Index j = 0; j < row.size; ++j) {
            const double e = row.d[j], x = row.c[j] + e * (e > 0.0 ? gain : loss);
            y[j] = x > 0.0 ? x : 0.0;
        }
    }

    // c + part (y - c) of a row that is not displaced.
    void shrink(Index a, Index i, double part) {
        const Row<Real> row = centre(job_.layout, pair(a), i);
        double* y = job_.y.at(place(a, i), row.size);
        for (Index j = 0; j < row.size; ++j)
            y[j] = part == 0.0 ? row[j] : row[j] + part * (y[j] - row[j]);
    }

    // Leaves the thresholds behind.
    void close() {
        for (Index a = 0; a < A_; ++a)
            for (Index i = 0; i < N_; ++i) {
                const Displaced& row = (*this)(a, i);
                const double alpha = row.alpha + row.shift;
                job_.trace.threshold[pair(a)][i] = row.still || alpha != alpha ? 0.0 : alpha;
            }
    }

private:
    Index pair(Index a) const { return s_ * A_ + a; }
    Index place(Index a, Index i) const {
        return N_ * job_.layout.first(pair(a)) + i * job_.layout.length(pair(a));
    }

    double square(Index a, Index i) {
        const Row<Real> row = centre(job_.layout, pair(a), i);
        const Index at = place(a, i);
        const auto sums = row.template over<PartSum>(
            [&](PartSum& s, Part p, Index j) __attribute__((always_inline)) {
                const Part e = load_row(job_.y, at, j, row.size) - p * row.scale;
                s.sum += e * e;
            });
        return sums.sum(&PartSum::sum);
    }

    void displace(Displaced& row, Index a, Index i, double size) {
        struct Sums {
            Part total{}, square{}, top = all(-INFINITE), bottom = all(INFINITE), peak = top;
        };
        const Row<Real> stored = centre(job_.layout, pair(a), i);
        const Index at = place(a, i), K = stored.size;
        row.d = numbers_.data() + 2 * (i * A_ + a) * padded_, row.c = row.d + padded_;
        row.size = K, row.padded = to_lanes(K);
        std::fill(row.d + row.padded - LANES, row.d + row.padded, BEHIND);
        std::fill(row.c + row.padded - LANES, row.c + row.padded, 0.0);
        const auto sums = stored.template over<Sums>(
            [&](Sums& s, Part p, Index j) __attribute__((always_inline)) {
                const Part c = p * stored.scale;
                const Part z = load_row(job_.y, at, j, K) + size * load(stake_.data() + j);
                const Part d = z - c;
                const Mask in = j + WIDTH <= K ? ~Mask{} : first_lanes(K - j);
                s.total += where(in, d);
                s.square += where(in, d * d);
                s.top = greater(in ? d : s.top, s.top);
                s.bottom = lesser(in ? d : s.bottom, s.bottom);
                s.peak = greater(in ? z : s.peak, s.peak);
                store(row.c + j, c);
                store(row.d + j, in ? d : all(BEHIND));
            });
        const double total = sums.sum(&Sums::total);
        row.top = sums.greatest(&Sums::top), row.bottom = sums.least(&Sums::bottom);
        row.peak = sums.greatest(&Sums::peak), row.mean = total / double(K);
        spread_[i] += std::max(sums.sum(&Sums::square) - total * row.mean, 0.0);
    }

    const Job<Real>& job_;
    Index N_, A_, padded_, s_ = 0;
    std::vector<Displaced> rows_;
    std::vector<double> numbers_, stake_, spread_, still_;
};

}  // namespace drmdp::prox
