// Projections on linf balls: each kernel moves by at most theta (order infinity), or by r_i with
// sum_i w_i r_i <= theta (order 1).
//
// Order 1. The squared distance of kernel i, halved, is convex in r_i and falls at the rate L_i(r_i), what
// presses on the bounds r and -r of its rows (rows.hpp). For a multiplier mu, r_i(mu) has
// L_i(r_i) = mu w_i; it falls with mu at the rate w_i/L_i' or, where r_i sits in a jump of L_i, not at all.
// So Newton's method with a bracket finds mu. L_i jumps down at each c of an entry at its lower bound, and
// where a row has no entry inside its bounds; where L_i = 0 the kernel moves freely.
//
// L_i does not depend on mu. What was found for one mu, the last r_i with its line and the nearest points
// on both sides, serves the next: a kernel in a jump that holds the new mu w_i too costs nothing, others
// mostly one evaluation. A step that would pass a jump stops right behind it. Jumps are where c is,
// whatever the point: a kernel that sat in one will mostly sit there again, and its line, which is that of
// one side, says nothing about mu; so the first mu from a guess is the best for the lines of the others.
#pragma once

#include "search.hpp"

namespace drmdp::prox {

template <class Real>
class Boxes {
public:
    Boxes(const Job<Real>& job, Index start, Index stop) : job_(job), rows_(job, start, stop) {}

    void project(Index s) {
        const double theta = rows_.open(s, job_.inside);
        for (Index a = 0; a < rows_.actions(); ++a)
            for (Index i = 0; i < job_.layout.N; ++i) {
                Displaced& row = rows_(a, i);
                if (row.still) continue;
                settle<Linf>(row, theta, row.alpha);
                rows_.template move<Linf>(row, theta, 0.0);
                rows_.write(a, i, 1.0);
            }
        rows_.close();
    }

private:
    const Job<Real>& job_;
    StateRows<Real> rows_;
};

// r_i with L_i and -L_i' there, the nearest points on both sides, and -dr_i/dmu.
struct Radius {
    Kernel at;
    double low = 0.0, above = INFINITE, high = INFINITE, below = 0.0;
    double rate = 0.0;

    void forget(double least) { low = least, above = high = INFINITE, below = 0.0; }
};

template <class Real>
class Radii {
public:
    Radii(const Job<Real>& job, Index start, Index stop)
        : job_(job), N_(job.layout.N), rows_(job, start, stop), radii_(N_) {}

    void project(Index s) {
        theta_ = rows_.open(s, false), least_ = LEAST * theta_;
        if (theta_ == 0.0) return rows_.close();
        const View<double> guess = job_.trace.multiplier[s];
        const bool warm = guess[0] > 0.0 && guess[0] < FARTHEST;
        for (double& x : guess) x = warm && x > 0.0 && x < FARTHEST ? x : 0.0;
        Outcome found = search(guess);
        if (warm && !found.near) {  // misled by where the rows were
            std::fill(guess.begin(), guess.end(), 0.0);
            for (Index i = 0; i < N_; ++i)
                for (Index a = 0; a < rows_.actions(); ++a) rows_(a, i).alpha = NOT_A_NUMBER;
            const std::int64_t before = found.trials;
            found = search(guess);
            found.trials += before;
        }
        job_.trace.trials[s][0] = found.trials;
        guess[0] = found.multiplier;
        const double total = spent(), part = total > theta_ ? theta_ / total : 1.0;
        for (Index i = 0; i < N_; ++i) {
            guess[1 + i] = radii_[i].at.at * part, guess[1 + N_ + i] = radii_[i].rate;
            for (Index a = 0; a < rows_.actions(); ++a) {
                if (rows_(a, i).still) continue;
                rows_.template move<Linf>(rows_(a, i), guess[1 + i], 0.0);
                rows_.write(a, i, 1.0);
            }
        }
        rows_.close();
    }

private:
    static constexpr int STEPS = 200, DOUBT = 60;  // trials after which nothing is reused
    static constexpr double LEAST = 1e-13;         // of r_i, relative to theta: at 0 there is no L

    struct Outcome {
        double multiplier;
        std::int64_t trials;
        bool near;  // the budget is spent
    };

    double weight(Index i) const { return job_.layout.weights[i]; }
    double spent() const {
        double total = 0.0;
        for (Index i = 0; i < N_; ++i) total += weight(i) * radii_[i].at.at;
        return total;
    }

    // The r_i from which on the ball does not matter to kernel i.
    double free_radius(Index i) {
        struct Most {
            Part size{};
        };
        double highest = 0.0;
        for (Index a = 0; a < rows_.actions(); ++a) {
            Displaced& row = rows_(a, i);
            if (row.still) continue;
            settle<Linf>(row, INFINITE, row.alpha + row.shift);
            row.rate = 0.0;
            const auto most = over_lanes<Most>(
                row.padded, [&](Most& m, Index j) __attribute__((always_inline)) {
                    m.size = greater(magnitude(Linf::entry(row, j, INFINITE, 0.0)), m.size);
                });
            highest = std::max(highest, most.greatest(&Most::size));
        }
        return highest;
    }

    // Where L_i jumps next above or below r, as far as the rows at r can tell.
    double jump(Index i, double r, bool up) {
        double best = up ? INFINITE : 0.0;
        const auto meet = [&](double bound) {
            if (up && bound > r) best = std::min(best, bound);
            if (!up && bound < r) best = std::max(best, bound);
        };
        for (Index a = 0; a < rows_.actions(); ++a) {
            const Displaced& row = rows_(a, i);
            double inside = 0.0, odd = 0.0, lost = 0.0, last = 0.0;
            for (Index j = 0; j < row.size; ++j) {
                const double c = row.c[j], e = row.d[j] - row.alpha;
                if (e > r) {
                    odd += 1.0;
                } else if (e < -std::min(c, r)) {
                    odd -= c > r, lost += c > r ? 0.0 : c;
                    if (up && c > r) best = std::min(best, c);
                    if (!up && c <= r) best = std::max(best, c);
                } else {
                    inside += 1.0, last = c;
                }
            }
            if (inside != 1.0) continue;  // else where that one meets r, -r or -c
            meet(lost / (odd + 1.0)), meet(lost / (odd - 1.0)), meet((lost + last) / odd);
        }
        return best;
    }

    // r_i with L_i(r_i) = goal up to tol; returns -dr_i/dL.
    double settle_radius(Index i, double goal, double tol) {
        Radius& radius = radii_[i];
        if (goal > radius.above) radius.low = least_, radius.above = INFINITE;
        if (goal < radius.below) radius.high = INFINITE, radius.below = 0.0;
        const double near = 0.1 * tol;
        for (int turn = 0; turn < STEPS; ++turn) {
            const double r = radius.at.at, pull = radius.at.value, slope = radius.at.slope;
            const bool up = pull > goal;
            if (up && r >= radius.low) radius.low = r, radius.above = pull;
            if (!up && r <= radius.high) radius.high = r, radius.below = pull;
            if (slope > 0.0 && slope < INFINITE &&
                std::fabs(pull - goal) <= slope * tol + 4.0 * ROUNDING * goal)
                return 1.0 / slope;
            if (radius.high - radius.low <= tol) return 0.0;
            double next;
            if (slope == 0.0 && !up) {
                radius.high = std::min(free_radius(i), radius.high);
                next = radius.high - near;
            } else {
                next = r + (pull - goal) / slope;
                if (turn > 0)
                    next = up ? std::min(next, jump(i, r, up) + near)
                              : std::max(next, jump(i, r, up) - near);
            }
            next = std::max(next, least_);
            const double low = radius.low, high = radius.high;
            const bool to_least = !up && next == least_ && low == least_;
            if (!(next > low && next < high) && !to_least)
                next = high < INFINITE ? 0.5 * (low + high) : std::max(2.0 * r, near);
            else if (turn % 4 == 3 && high < INFINITE)
                next = 0.5 * (low + high);
            evaluate<Linf>(rows_, i, radius.at, next);
        }
        return 0.0;
    }

    // The largest moves that the point asks for; returns what they cost.
    double unbound() {
        for (Index i = 0; i < N_; ++i) radii_[i].at = {free_radius(i)};
        return spent();
    }

    // The best mu for the lines of the kernels that moved, or of all.
    double fit(const View<double>& moving) {
        double mu = 0.0, fall = 0.0;
        for (Index i = 0; i < N_; ++i) {
            const Kernel& at = radii_[i].at;
            if (!(at.slope > 0.0) || !(moving.empty() || moving[i] > 0.0)) continue;
            mu += weight(i) * at.value / at.slope, fall += weight(i) * weight(i) / at.slope;
        }
        return fall > 0.0 ? mu / fall : 0.0;
    }

    // Evaluates every kernel at its r_i, shrunk from a total to theta; returns a first mu.
    double first_price(double total, View<double> guess) {
        for (Index i = 0; i < N_; ++i) {
            radii_[i].forget(least_);
            const double r = std::max(radii_[i].at.at * theta_ / total, least_);
            radii_[i].at.at = r;
            evaluate<Linf>(rows_, i, radii_[i].at, r);
        }
        const bool warm = guess[0] > 0.0;
        double mu = warm ? fit(guess.part(N_ + 1, N_)) : 0.0;
        if (!(mu > 0.0)) mu = fit({});
        return warm && !(mu > 0.0) ? guess[0] : mu;
    }

    // Changes the r_i along their lines by what the rounding of mu left of the budget.
    void spend(double excess, double fall) {
        for (Index i = 0; i < N_; ++i) {
            Kernel& at = radii_[i].at;
            const double next = std::max(at.at - radii_[i].rate * excess / fall, 0.0);
            for (Index a = 0; a < rows_.actions(); ++a)
                rows_(a, i).shift += rows_(a, i).rate * (next - at.at);
            at.at = next;
        }
    }

    Outcome search(View<double> guess) {
        const double accuracy = job_.accuracy, wanted = accuracy * theta_;
        bool warm = guess[0] > 0.0;
        for (Index i = 0; i < N_; ++i) {
            radii_[i] = Radius{{guess[1 + i]}};
            for (Index a = 0; a < rows_.actions(); ++a) rows_(a, i).rate = rows_(a, i).shift = 0.0;
        }
        const double first = warm ? theta_ : unbound();
        if (!warm && first <= theta_ + wanted) return {0.0, 0, true};
        double mu = first_price(first, guess), low = 0.0, high = INFINITE, excess = theta_, fall = 0.0;
        int trial = 1;
        while (trial < TRIALS) {
            const double tol = std::max(0.01 * std::fabs(excess), 0.1 * wanted);
            if (trial == DOUBT + 1) low = 0.0, high = INFINITE;
            fall = 0.0;
            for (Index i = 0; i < N_; ++i) {
                if (trial > DOUBT) radii_[i].forget(least_);  // rounding may have spoilt what is known
                radii_[i].rate = weight(i) * settle_radius(i, mu * weight(i), tol);
                fall += weight(i) * radii_[i].rate;
            }
            excess = spent() - theta_;
            if (std::fabs(excess) <= wanted && tol <= wanted) break;
            if (std::fabs(excess) <= 3.0 * tol && tol > wanted) continue;  // the same, more precisely
            (excess > 0.0 ? low : high) = mu;
            if (high < INFINITE && high - low <= ROUNDING * high) break;
            double next = fall > 0.0 ? mu + excess / fall : INFINITE;
            if (!(next > low && next < high)) {
                if (warm && low == 0.0 && excess < 0.0) {  // does the ball bind at all?
                    warm = false;
                    if (unbound() <= theta_ + wanted) return {0.0, 0, true};
                    for (Radius& radius : radii_) radius.forget(least_);
                }
                next = high == INFINITE ? 2.0 * mu : 0.5 * (low + high);
            }
            mu = next;
            ++trial;
        }
        const bool near = std::fabs(excess) <= 1e-4 * theta_;
        if (fall > 0.0 && near) spend(excess, fall);
        return {mu, trial, near};
    }

    const Job<Real>& job_;
    Index N_;
    double theta_ = 0.0, least_ = 0.0;
    StateRows<Real> rows_;
    std::vector<Radius> radii_;
};

}  // namespace drmdp::prox
