// Projections on l1 and l2 balls: one multiplier for all kernels (order 1, order 2), or one for each
// (order infinity; the same for one kernel of weight 1).
//
// With a multiplier mu of the ball, rows have the price m_i = mu w_i (l1) or the share 1/(1 + mu w_i)
// (l2), and their distance D(mu) falls to the radius. While no entry passes a bend D is known for all mu
// from one trial: linear for l1, sum_i w_i (s_i^2 V_i + F_i) for l2. So Newton's method mostly needs one or
// two trials; a bracket guards it. The last step is made unchecked: it is exact where no entry passes a
// bend on the way, and else its error is of second order.
//
// Far from the radius, l1 takes D as a power of the way to `end`, where nothing moves any more, or goes
// between two trials on a cubic; l2 begins where D with all entries active is the radius, from above.
//
// The search starts from the last multiplier; without one, or where that leads far off, from that of one
// kernel: kernels are samples of one thing.
#pragma once

#include "../elementary.hpp"
#include "state.hpp"

namespace drmdp::prox {

constexpr int TRIALS = 200, SAFE = 12;  // after so many, the bracket is halved now and then
constexpr double ROUGH = 0.01;          // accuracy for which one kernel is solved to have a guess for all
constexpr double MISLED = 0.5;          // error of a distance from which on a guess is dropped
constexpr double FINE = 1e-12;          // error that is not worth another step
constexpr double NEAR_L1 = 0.1, NEAR_L2 = 4.0, APART = 3.0;

// What the rows of a kernel add up to.
struct Kernel {
    double at = 0.0, lack = 0.0;  // price, share or radius, and what it lacks
    double value = 0.0, slope = 0.0, noise = 0.0;
    double room = INFINITE;  // see RowAnswer
};

// All rows of kernel i at a parameter.
template <class Norm, class Real>
void evaluate(StateRows<Real>& rows, Index i, Kernel& kernel, double at) {
    kernel.value = kernel.slope = kernel.noise = 0.0, kernel.room = INFINITE;
    for (Index a = 0; a < rows.actions(); ++a) {
        Displaced& row = rows(a, i);
        if (row.still) continue;
        const double guess = row.alpha + row.shift + (at - kernel.at) * row.rate;
        const RowAnswer found = settle<Norm>(row, at, guess);
        kernel.value += found.value, kernel.slope += found.slope, kernel.noise += found.noise;
        kernel.room = std::min(kernel.room, found.room);
    }
    kernel.at = at, kernel.lack = 0.0;
}

inline double power(double x, double k) { return exp(k * log(x)); }

template <class Norm, class Real>
class Multipliers {
public:
    Multipliers(const Job<Real>& job, bool each, Index start, Index stop)
        : job_(job), each_(each), N_(job.layout.N), rows_(job, start, stop), kernels_(N_) {}

    void project(Index s) {
        theta_ = rows_.open(s, Norm::SQUARES && job_.inside);
        for (Index g = 0; g < (each_ ? N_ : 1) && theta_ > 0.0; ++g) {
            const Range group = each_ ? Range{g, g + 1} : Range{0, N_};
            double& multiplier = job_.trace.multiplier[s][g];
            const double guess = multiplier > 0.0 && multiplier < FARTHEST ? multiplier : 0.0;
            Outcome found{-1.0, 0};
            if (guess > 0.0 && (Norm::SQUARES || guess < end(group)))
                found = search(group, theta_, guess, job_.accuracy, true);
            if (found.multiplier < 0.0) {
                const double cold = cold_guess(group, each_ && g > 0 ? job_.trace.multiplier[s][g - 1] : 0.0);
                const Outcome again = search(group, theta_, cold, job_.accuracy, false);
                found = {again.multiplier, again.multiplier > 0.0 ? found.trials + again.trials : 0};
            }
            job_.trace.trials[s][g] = found.trials;
            multiplier = found.multiplier;
            write(group);
        }
        rows_.close();
    }

private:
    struct Range {
        Index first, stop;
    };
    struct Outcome {
        double multiplier;
        std::int64_t trials;
    };
    struct Trial {
        double at, far = 0.0, slope = 0.0;
    };

    double weight(Index i) const { return each_ ? 1.0 : job_.layout.weights[i]; }

    // A multiplier at which nothing moves (l1).
    double end(Range group) {
        double highest = 0.0;
        for (Index i = group.first; i < group.stop; ++i)
            for (Index a = 0; a < rows_.actions(); ++a)
                highest = std::max(highest, (rows_(a, i).top - rows_(a, i).bottom) / (2.0 * weight(i)));
        return highest;
    }

    double cold_guess(Range group, double before) {
        Index k = group.first;
        for (Index i = 0; i < N_ && !each_; ++i) k = weight(i) > weight(k) ? i : k;
        if (each_ && k > 0) pass_on(group, k - 1);
        if (each_ || N_ == 1) return before > 0.0 && before < FARTHEST ? before : 0.0;
        const double share = Norm::SQUARES ? std::sqrt(weight(k)) : weight(k);
        const double guess = search({k, k + 1}, share * theta_, 0.0, ROUGH, false).multiplier;
        pass_on(group, k);
        return guess;
    }

    // Rows without a threshold take that of kernel k.
    void pass_on(Range group, Index k) {
        for (Index i = group.first; i < group.stop; ++i)
            for (Index a = 0; a < rows_.actions(); ++a) {
                Displaced& row = rows_(a, i);
                if (row.alpha != row.alpha) row.alpha = rows_(a, k).alpha;
            }
    }

    Outcome search(Range group, double theta, double guess, double accuracy, bool doubt) {
        begin(group, guess);
        Trial at{guess}, low{-1.0}, high{INFINITE};
        if (Norm::SQUARES && !(guess > 0.0)) at.at = first_share(group, theta);
        double top = 0.0;
        bool close = false;
        for (Index i = group.first; i < group.stop; ++i) top = std::max(top, weight(i));
        int trial = at.at > 0.0 ? 1 : 0;  // 0 is no multiplier
        for (;; ++trial) {
            const double noise = measure(group, at);
            if (at.far <= theta && at.at == 0.0) return {0.0, 0};
            close = exact(group, theta, at);
            if (close) break;
            if (doubt && trial == 1 && std::fabs(at.far - theta) > MISLED * theta) return {-1.0, 1};
            const double blur = at.at > 0.0 ? std::min(noise, 1e-4 * theta) : 0.0;
            close = std::fabs(at.far - theta) <= std::max(accuracy * theta, blur);
            if (close || trial == TRIALS) break;
            (at.far > theta ? low : high) = at;
            if (high.at < INFINITE && high.at - low.at <= ROUNDING * high.at) {
                if (at.far <= theta) break;
                at = {high.at};
                continue;
            }
            double next = Norm::SQUARES ? next_share(group, theta, at, low, high, top)
                                        : next_price(group, theta, at, low, high);
            const bool halve = trial > SAFE && trial % 3 == 0;
            if (!(next > low.at && next < high.at) || (halve && high.at < INFINITE))
                next = between_ends(group, low.at, high.at);
            if (Norm::SQUARES && trial > SAFE && high.at == INFINITE)
                next = std::max(next, 4.0 * at.at);  // D may be flat for long
            at = {next};
        }
        return {finish(group, theta, at, close), trial};
    }

    void begin(Range group, double guess) {
        for (Index i = group.first; i < group.stop; ++i) {
            kernels_[i] = {Norm::parameter(guess * weight(i))};
            for (Index a = 0; a < rows_.actions(); ++a)
                rows_(a, i).rate = rows_(a, i).shift = 0.0;
        }
    }

    // Tries a multiplier; returns the rounding of the distance.
    double measure(Range group, Trial& at) {
        double noise = 0.0;
        at.far = at.slope = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            const double w = weight(i);
            Kernel& kernel = kernels_[i];
            evaluate<Norm>(rows_, i, kernel, Norm::parameter(at.at * w));
            if (Norm::SQUARES) {
                const double s2 = kernel.at * kernel.at;
                at.far += w * (s2 * rows_.still(i) + kernel.value + kernel.slope);
                kernel.value = rows_.still(i) + kernel.value / s2;
            } else {
                at.far += w * kernel.value;
                at.slope += w * w * kernel.slope;
                noise += w * kernel.noise;
            }
        }
        if (Norm::SQUARES) at.far = std::sqrt(at.far);
        return noise;
    }

    // Whether no entry passes a bend on the way to the multiplier that this trial tells.
    bool exact(Range group, double theta, const Trial& at) {
        const double next = Norm::SQUARES ? fit(group, theta, at.at)
                                          : at.at + (at.far - theta) / at.slope;
        if (!(next > 0.0 && next < INFINITE)) return false;
        for (Index i = group.first; i < group.stop; ++i) {
            const Kernel& kernel = kernels_[i];
            if (!(std::fabs(Norm::parameter(next * weight(i)) - kernel.at) < kernel.room)) return false;
        }
        return true;
    }

    double between_ends(Range group, double low, double high) {
        if (Norm::SQUARES) return low > 0.0 ? std::sqrt(low * high) : 0.5 * high;
        if (low < 0.0) return 0.0;  // all that is known is that it is too large
        return 0.5 * (low + (high < INFINITE ? high : std::max(end(group), 2.0 * low)));
    }

    double next_price(Range group, double theta, const Trial& at, const Trial& low, const Trial& high) {
        if (!(at.slope > 0.0)) return at.far > theta ? INFINITE : 0.0;
        double next = at.at + (at.far - theta) / at.slope;
        if (std::fabs(at.far - theta) > NEAR_L1 * theta && at.far > 0.0) {
            if (low.at >= 0.0 && high.far > 0.0 && low.slope > 0.0 && high.slope > 0.0) {
                next = between(low, high, theta);
            } else {
                const double way = end(group) - at.at;
                const double k = std::min(at.far / (at.slope * way), 1.0);
                if (way > 0.0) next = at.at + way * (1.0 - power(theta / at.far, k));
            }
        }
        return std::max(next, 0.0);
    }

    // As if log D were linear, or, if both trials are near, on the cubic with their slopes.
    static double between(const Trial& low, const Trial& high, double theta) {
        if (low.far > APART * theta || theta > APART * high.far)
            return low.at + (high.at - low.at) * log(low.far / theta) / log(low.far / high.far);
        const double h = high.far - low.far, t = (theta - low.far) / h, u = 1.0 - t;
        return u * u * ((1.0 + 2.0 * t) * low.at - t * h / low.slope) +
               t * t * ((1.0 + 2.0 * u) * high.at + u * h / high.slope);
    }

    // Where D with all entries active is the radius; 0 where that says little.
    double first_share(Range group, double theta) {
        double bound = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            kernels_[i].value = rows_.spread(i) + rows_.still(i), kernels_[i].slope = 0.0;
            bound += weight(i) * kernels_[i].value;
        }
        return bound > NEAR_L2 * theta * theta ? fit(group, theta, 0.0) : 0.0;
    }

    double next_share(Range group, double theta, const Trial& at, const Trial& low,
                      const Trial& high, double top) {
        const double next = fit(group, theta, at.at);
        if (next > low.at && next < high.at) return next;
        return std::max(((1.0 + at.at * top) * at.far / theta - 1.0) / top, 0.0);
    }

    // D = theta for the V and F at hand; infinite if F alone is too much. Newton's method on D^(-1/2),
    // which is linear if the weights are equal.
    double fit(Range group, double theta, double gamma) {
        double goal = theta * theta, at_zero = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            goal -= weight(i) * kernels_[i].slope;
            at_zero += weight(i) * kernels_[i].value;
        }
        if (goal <= 0.0) return INFINITE;
        if (at_zero <= goal) return 0.0;
        for (int turn = 0; turn < 60; ++turn) {
            double level = 0.0, slope = 0.0;
            for (Index i = group.first; i < group.stop; ++i) {
                const double w = weight(i), s = Norm::parameter(gamma * w);
                const double part = w * kernels_[i].value * s * s;
                level += part, slope += 2.0 * w * part * s;
            }
            const double move = 2.0 * level * (std::sqrt(level / goal) - 1.0) / slope;
            gamma = std::max(gamma + move, 0.0);
            if (!(std::fabs(move) > 1e-14 * gamma)) break;
        }
        return gamma;
    }

    // The last step, right unless an entry passes a bend; returns the multiplier.
    double finish(Range group, double theta, const Trial& at, bool close) {
        double next = at.at, change = 0.0;
        if (Norm::SQUARES && close && std::fabs(at.far - theta) > FINE * theta) {
            next = fit(group, theta, at.at);
            if (!(next > 0.0 && next < INFINITE)) return at.at;
        }
        if (!Norm::SQUARES && close && at.slope > 0.0) change = (at.far - theta) / at.slope;
        for (Index i = group.first; i < group.stop; ++i) {
            const double share = Norm::SQUARES ? Norm::parameter(next * weight(i)) : kernels_[i].at;
            const double lack = share - kernels_[i].at + change * weight(i);
            for (Index a = 0; a < rows_.actions(); ++a)
                rows_(a, i).shift += lack * rows_(a, i).rate;
            kernels_[i].at = share, kernels_[i].lack = change * weight(i);
        }
        return next + change;
    }

    void write(Range group) {
        double far = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            const Kernel& kernel = kernels_[i];
            if (Norm::SQUARES) far += weight(i) * kernel.at * kernel.at * rows_.still(i);
            for (Index a = 0; a < rows_.actions(); ++a)
                if (!rows_(a, i).still)
                    far += weight(i) * rows_.template move<Norm>(rows_(a, i), kernel.at, kernel.lack);
        }
        if (Norm::SQUARES) far = std::sqrt(far);
        const double part = far > theta_ * (1.0 + ROUNDING) ? theta_ / far : 1.0;
        for (Index i = group.first; i < group.stop; ++i)
            for (Index a = 0; a < rows_.actions(); ++a) {
                if (!rows_(a, i).still) rows_.write(a, i, part);
                else if (part * kernels_[i].at < 1.0) rows_.shrink(a, i, part * kernels_[i].at);
            }
    }

    const Job<Real>& job_;
    bool each_;
    Index N_;
    double theta_ = 0.0;
    StateRows<Real> rows_;
    std::vector<Kernel> kernels_;
};

}  // namespace drmdp::prox
