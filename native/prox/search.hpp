// Projections on balls: one multiplier for all kernels (order 1; order 2 of l2), or one for each (order
// infinity; the same for one kernel of weight 1).
//
// With a multiplier mu of the ball, the rows of kernel i have the price m_i = mu w_i (l1), the share
// 1/(1 + mu w_i) (l2), or the radius r_i at which what presses on its bounds is mu w_i (linf: this is how
// fast half the squared distance falls in r_i); and their distance D(mu) falls to the radius of the ball. While no
// entry passes a bend D is known for all mu from one trial: linear for l1 and linf, sum_i w_i (s_i^2 V_i + F_i)
// for l2. So Newton's method mostly needs one or two trials; a bracket guards it. The last step is made
// unchecked: it is exact where no entry passes a bend on the way, and else its error is of second order.
//
// Far from the radius, l1 takes D as a power of the way to `end`, where nothing moves any more; l2 begins
// where D with all entries active is the radius, from above; linf where the largest moves that the point
// asks for are all shrunk alike. The search starts from the last multiplier; without one, or where that leads far
// off, from that of one kernel (l1, l2): kernels are samples of one thing.
//
// linf. What presses, L_i(r), falls with r, and jumps at each c of an entry at its lower bound, and where a row has
// no entry inside its bounds. L_i does not depend on mu: the nearest points on both sides of r_i serve the next mu,
// so that a kernel in a jump that holds the new mu w_i too costs nothing. Jumps are where c is, whatever the point: a
// kernel that sat in one will mostly sit there again, and a step that would pass one stops right behind it.
#pragma once

#include "../elementary.hpp"
#include "state.hpp"

namespace drmdp::prox {

constexpr int TRIALS = 200, SAFE = 12;  // after so many, the bracket is halved now and then
constexpr double ROUGH = 0.01;          // accuracy for which one kernel is solved to have a guess for all
constexpr double MISLED = 0.5;          // error of a distance from which on a guess is dropped
constexpr double FINE = 1e-12;          // error that is not worth another step
constexpr double NEAR_L1 = 0.1, NEAR_L2 = 4.0;
constexpr double SMALL = 1e-13;         // a radius, or the width of a jump, relative to the ball's

// What the rows of a kernel add up to.
struct Kernel {
    double at = 0.0, lack = 0.0;  // price, share or radius, and what it lacks
    double value = 0.0, slope = 0.0, noise = 0.0;
    double room = INFINITE;  // see RowAnswer
    double fall = 0.0;       // how fast the radius falls with the price; 0 in a jump
    double low = 0.0, above = INFINITE, high = INFINITE, below = 0.0;  // radii on both sides, and L there
};

template <class Norm, class Real>
class Ball {
public:
    Ball(const Job<Real>& job, bool each, Index start, Index stop)
        : job_(job), each_(each), N_(job.layout.N), rows_(job, start, stop), kernels_(N_) {}

    void project(Index s) {
        const bool given = Norm::RADIUS && each_;  // the radius is that of the ball
        theta_ = rows_.open(s, job_.inside && (Norm::SQUARES || given));
        for (Index g = 0; g < (each_ ? N_ : 1) && theta_ > 0.0; ++g) {
            const Range group = each_ ? Range{g, g + 1} : Range{0, N_};
            if (given) evaluate(g, theta_);
            else find(group, job_.trace.multiplier[s], job_.trace.trials[s], g);
            write(group, given);
            for (Index i = 0; Norm::RADIUS && !each_ && i < N_; ++i)
                job_.trace.multiplier[s][1 + i] = kernels_[i].at;
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
        double at, far = 0.0, slope = 0.0, noise = 0.0;
    };

    double weight(Index i) const { return each_ ? 1.0 : job_.layout.weights[i]; }

    void find(Range group, View<double> memory, View<std::int64_t> trials, Index g) {
        const auto usable = [](double x) { return x > 0.0 && x < FARTHEST ? x : 0.0; };
        const double guess = usable(memory[g]);
        Outcome found{-1.0, 0};
        for (Index i = 0; i < N_; ++i) kernels_[i] = {};
        for (Index i = 0; Norm::RADIUS && i < N_; ++i) kernels_[i].at = usable(memory[1 + i]);
        if (guess > 0.0 && (Norm::SQUARES || Norm::RADIUS || guess < end(group)))
            found = search(group, theta_, guess, job_.accuracy, true);
        if (found.multiplier < 0.0) {
            const double cold = cold_guess(group, each_ && g > 0 ? usable(memory[g - 1]) : 0.0);
            const Outcome again = search(group, theta_, cold, job_.accuracy, false);
            found = {again.multiplier, again.multiplier > 0.0 ? found.trials + again.trials : 0};
        }
        memory[g] = found.multiplier, trials[g] = found.trials;
    }

    // All rows of kernel i at a parameter.
    void evaluate(Index i, double at) {
        Kernel& kernel = kernels_[i];
        kernel.value = kernel.slope = kernel.noise = 0.0, kernel.room = INFINITE;
        for (Index a = 0; a < rows_.actions(); ++a) {
            Displaced& row = rows_(a, i);
            if (row.still) continue;
            const double guess = row.alpha + row.shift + (at - kernel.at) * row.rate;
            const RowAnswer found = settle<Norm>(row, at, guess);
            kernel.value += found.value, kernel.slope += found.slope, kernel.noise += found.noise;
            kernel.room = std::min(kernel.room, found.room);
        }
        kernel.at = at, kernel.lack = 0.0;
    }

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
        if (Norm::RADIUS) return 0.0;
        if (each_ && k > 0) pass_on(group, k - 1);
        if (each_ || N_ == 1) return before;
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
        for (Index i = group.first; i < group.stop; ++i) {
            for (Index a = 0; a < rows_.actions(); ++a) rows_(a, i).rate = rows_(a, i).shift = 0.0;
            if (!Norm::RADIUS) kernels_[i] = {Norm::parameter(guess * weight(i))};
        }
        if (Norm::RADIUS && guess > 0.0) guess = first_price(group, 1.0, guess);
        Trial at{guess}, low{-1.0}, high{INFINITE};
        if (Norm::SQUARES && !(guess > 0.0)) at.at = first_share(group, theta);
        bool close = false;
        int trial = at.at > 0.0 ? 1 : 0;  // 0 is no multiplier
        for (;; ++trial) {
            measure(group, at);
            if (at.far <= theta && at.at == 0.0) return {0.0, 0};
            close = exact(group, theta, at);
            if (close) break;
            if (doubt && trial == 1 && std::fabs(at.far - theta) > MISLED * theta) return {-1.0, 1};
            const double blur = at.at > 0.0 ? std::min(at.noise, 1e-4 * theta) : 0.0;
            close = std::fabs(at.far - theta) <= std::max(accuracy * theta, blur);
            if (close || trial == TRIALS) break;
            (at.far > theta ? low : high) = at;
            if (high.at < INFINITE && high.at - low.at <= ROUNDING * high.at) {
                if (at.far <= theta) break;
                at = {high.at};
                continue;
            }
            double next = predicted(group, theta, at);
            const bool halve = trial > SAFE && trial % 3 == 0;
            if (!(next > low.at && next < high.at) || (halve && high.at < INFINITE))
                next = between_ends(group, low.at, high.at);
            if (!(next < INFINITE) || (Norm::SQUARES && trial > SAFE && high.at == INFINITE))
                next = 2.0 * at.at * at.far / theta + 1.0;  // D may be flat for long
            at = {next};
        }
        return {finish(group, theta, at, close), trial};
    }

    // Tries a multiplier.
    void measure(Range group, Trial& at) {
        double squares = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            const double w = weight(i);
            Kernel& kernel = kernels_[i];
            if (Norm::RADIUS) {
                settle_radius(i, at.at * w);
                at.far += w * kernel.at, at.slope += w * w * kernel.fall;
                at.noise = 4.0 * ROUNDING * at.at * at.slope;  // that of the multiplier
                continue;
            }
            evaluate(i, Norm::parameter(at.at * w));
            if (Norm::SQUARES) {
                const double s2 = kernel.at * kernel.at;
                squares += w * (s2 * rows_.still(i) + kernel.value + kernel.slope);
                kernel.value = rows_.still(i) + kernel.value / s2;
            } else {
                at.far += w * kernel.value, at.slope += w * w * kernel.slope, at.noise += w * kernel.noise;
            }
        }
        if (Norm::SQUARES) at.far = std::sqrt(squares);
    }

    // The r_i with L_i(r_i) = goal, exactly unless L_i jumps there.
    void settle_radius(Index i, double goal) {
        Kernel& own = kernels_[i];
        const double least = SMALL * theta_, near = 0.1 * least;
        if (!(goal > 0.0)) {
            own = {free_radius(i)};
            return;
        }
        if (goal > own.above) own.low = least, own.above = INFINITE;
        if (goal < own.below) own.high = INFINITE, own.below = 0.0;
        own.fall = 0.0;
        for (int turn = 0; turn < PASSES; ++turn) {
            const double r = own.at, off = own.value - goal, by = own.slope > 0.0 ? off / own.slope : -near;
            const bool up = off > 0.0;
            if (up && r >= own.low) own.low = r, own.above = own.value;
            if (!up && r <= own.high) own.high = r, own.below = own.value;
            if (own.slope > 0.0 && own.slope < INFINITE && std::fabs(by) < std::max(own.room, least) && r + by > least) {
                shift(i, by), own.at = r + by, own.value = goal;
                own.room = std::max(own.room - std::fabs(by), 0.0);
                own.fall = 1.0 / own.slope;
                return;
            }
            if (own.high - own.low <= least) return;
            const double bend = jump(i, r, up);
            double next = up ? std::min(r + by, bend + near) : std::max(r + by, bend - near);
            next = std::max(next, least);
            if (!(next > own.low && next < own.high) || turn % 4 == 3)
                next = own.high < INFINITE ? 0.5 * (own.low + own.high) : std::max(2.0 * r, near);
            evaluate(i, next);
        }
    }

    // Where L_i jumps next above or below r at the c of an entry.
    double jump(Index i, double r, bool up) {
        double best = up ? INFINITE : 0.0;
        for (Index a = 0; a < rows_.actions(); ++a) {
            const Displaced& row = rows_(a, i);
            for (Index j = 0; j < row.size; ++j) {
                const double c = row.c[j];
                if (!(row.d[j] - row.alpha < -std::min(c, r))) continue;
                if (up && c > r) best = std::min(best, c);
                if (!up && c <= r) best = std::max(best, c);
            }
        }
        return best;
    }

    // The r_i from which on the ball does not matter to kernel i.
    double free_radius(Index i) {
        struct Most {
            Part size{};
        };
        double highest = 0.0;
        for (Index a = 0; a < rows_.actions(); ++a) {
            Displaced& row = rows_(a, i);
            settle<Norm>(row, INFINITE, row.alpha + row.shift);
            row.rate = 0.0;
            const auto most = over_lanes<Most>(
                row.padded, [&](Most& m, Index j) __attribute__((always_inline)) {
                    m.size = greater(magnitude(Norm::entry(row, j, INFINITE, 0.0)), m.size);
                });
            highest = std::max(highest, most.greatest(&Most::size));
        }
        return highest;
    }

    // A first price from a part of the radii at hand (linf): the best for the lines of kernels that are not in jumps.
    double first_price(Range group, double part, double guess) {
        double price = 0.0, fall = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            evaluate(i, std::max(part * kernels_[i].at, SMALL * theta_));
            const Kernel& own = kernels_[i];
            if (!(own.slope > 0.0 && (part < 1.0 || own.room > SMALL * theta_))) continue;
            price += weight(i) * own.value / own.slope, fall += weight(i) * weight(i) / own.slope;
        }
        return price > 0.0 ? price / fall : guess;
    }

    // By how much the parameter of kernel i changes with the multiplier, if no entry passes a bend.
    double change(Index i, const Trial& at, double by) const {
        if (Norm::SQUARES) return Norm::parameter((at.at + by) * weight(i)) - kernels_[i].at;
        return Norm::RADIUS ? -kernels_[i].fall * weight(i) * by : weight(i) * by;
    }

    // By how much this trial tells the multiplier to change.
    double newton(Range group, double theta, const Trial& at) {
        return Norm::SQUARES ? fit(group, theta, at.at) - at.at : (at.far - theta) / at.slope;
    }

    // Whether no entry passes a bend on this way.
    bool exact(Range group, double theta, const Trial& at) {
        const double by = newton(group, theta, at), next = at.at + by;
        if (!(next > 0.0 && next < INFINITE)) return false;
        for (Index i = group.first; i < group.stop; ++i) {
            const Kernel& own = kernels_[i];
            const double price = weight(i) * next;
            const bool inside = Norm::RADIUS && own.fall == 0.0 ? own.below <= price && price <= own.above
                                                                : std::fabs(change(i, at, by)) < own.room;
            if (!inside) return false;
        }
        return true;
    }

    double between_ends(Range group, double low, double high) {
        if (Norm::SQUARES) return low > 0.0 ? std::sqrt(low * high) : 0.5 * high;
        if (low < 0.0) return 0.0;  // all that is known is that it is too large
        if (high < INFINITE) return 0.5 * (low + high);
        return Norm::RADIUS ? INFINITE : 0.5 * (low + std::max(end(group), 2.0 * low));
    }

    // The multiplier that the last trial tells.
    double predicted(Range group, double theta, const Trial& at) {
        if (Norm::SQUARES) return fit(group, theta, at.at);
        if (Norm::RADIUS && at.at == 0.0) return first_price(group, theta / at.far, 1.0);
        if (!(at.slope > 0.0)) return at.far > theta ? INFINITE : 0.0;
        const double way = Norm::RADIUS ? 0.0 : end(group) - at.at;
        if (!(way > 0.0 && at.far > 0.0 && std::fabs(at.far - theta) > NEAR_L1 * theta))
            return std::max(at.at + newton(group, theta, at), 0.0);
        const double k = std::min(at.far / (at.slope * way), 1.0);
        return std::max(at.at + way * (1.0 - exp(k * log(theta / at.far))), 0.0);
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

    // The parameter of kernel i changes by so much.
    void shift(Index i, double by) {
        for (Index a = 0; a < rows_.actions(); ++a) rows_(a, i).shift += by * rows_(a, i).rate;
    }

    // The last step, right unless an entry passes a bend; returns the multiplier.
    double finish(Range group, double theta, const Trial& at, bool close) {
        const bool fine = Norm::SQUARES && std::fabs(at.far - theta) <= FINE * theta;
        const double by = close && !fine ? newton(group, theta, at) : 0.0;
        if (!(at.at + by > 0.0 && at.at + by < INFINITE)) return at.at;
        for (Index i = group.first; i < group.stop; ++i) {
            Kernel& own = kernels_[i];
            const double moved = change(i, at, by);
            shift(i, moved), (Norm::SQUARES || Norm::RADIUS ? own.at : own.lack) += moved;
        }
        return at.at + by;
    }

    void write(Range group, bool given) {
        double far = 0.0;
        for (Index i = group.first; i < group.stop; ++i) {
            Kernel& own = kernels_[i];
            own.at = Norm::RADIUS ? std::max(own.at, 0.0) : own.at;
            if (Norm::SQUARES) far += weight(i) * own.at * own.at * rows_.still(i);
            if (Norm::RADIUS && !given) far += weight(i) * own.at;
            for (Index a = 0; a < rows_.actions(); ++a) {
                if (rows_(a, i).still) continue;
                const double moved = rows_.template move<Norm>(rows_(a, i), own.at, own.lack);
                if (!Norm::RADIUS) far += weight(i) * moved;
            }
        }
        if (Norm::SQUARES) far = std::sqrt(far);
        const double part = far > theta_ * (1.0 + ROUNDING) ? theta_ / far : 1.0;
        for (Index i = group.first; i < group.stop; ++i) {
            if (Norm::RADIUS) kernels_[i].at *= part;
            for (Index a = 0; a < rows_.actions(); ++a) {
                if (!rows_(a, i).still) rows_.write(a, i, part);
                else if (Norm::SQUARES && part * kernels_[i].at < 1.0) rows_.shrink(a, i, part * kernels_[i].at);
            }
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
