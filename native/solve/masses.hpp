// Nature moves mass. What row (i, a) gains of an amount m is concave and piecewise linear: the segments of an
// action have slopes that all kernels share, and lengths y_i(t) times a number. Amounts of kernel i add up to
// D_i over the actions,
//
//     D_i <= B for every i (p = infinity),     or    sum_i w_i (D_i/B)^p <= 1.
//
// Nature's answer to a policy x takes segments in the order of x_a slope, common to all kernels, until D_i = B,
// or until x_a slope = m p D^(p-1)/B^p; the price m is searched for the x at hand, so that the budget is
// spent. Amounts and gains are divided by `size` and heads counted from the bottom, so that small budgets
// keep their digits.
//
// **The basis that amounts determine.** Where two actions of a kernel both have an amount inside a segment, it
// can be exchanged: x_a slope_a = x_b slope_b. A tree of exchanges determines x, the widest first, as rounding
// leaves narrow ones that mean nothing.
//
// **The mean kernel alone**, with which a game begins and to which it comes down where there is one kernel only: the
// level rises, and every action below it spends what that takes, until the budget is spent or an action has
// nothing left. A unit of the level costs 1/slope in each action, which is the policy, up to its sum.
#pragma once

#include "../elementary.hpp"
#include "../sorting.hpp"
#include "polyhedral.hpp"

namespace drmdp {

// A part of a row: its entry, how much of the budget a unit of its mass needs, and what a unit of budget gains.
struct Segment {
    Index entry;
    double length, slope;
};

// A source knows one kind of rows:
//
//     COST, order(extra)       what a unit of an amount costs, and the order of the budget
//     look(s)                  what must be known of a state before all
//     segments(s, a, out)      those of an action in descending order of their slopes
//     recalled(game, memory, k, i), price(memory, s)   amounts and the price after the last sweep
//     forget(memory, s), keep(game, memory, policy, amounts, prices, price)   what is left behind
template <class Source, class Real>
class Masses {
public:
    const Index A, N, width;
    const bool budget;

    Masses(const Layout<Real>& layout, const Point& point, const Extra& extra, Stakes& state, Index start, Index stop)
        : A(layout.A), N(layout.N), width(A), budget(Source::order(extra) < INFINITE), layout_(layout),
          state_(state), source_(layout, point, extra, state, start, stop), p_(Source::order(extra)),
          head_(A), member_(A), action_(A), segments_(A), at_(A), rows_(A * N), known_(A * N), tied_(A), gain_(A),
          amount_(A) {}

    void look(Index s) { source_.look(s); }
    static bool is_free(double) { return false; }

    double open(Index s, double theta, double bottom, double) {
        s_ = s, n_ = 0, fixed_ = false;
        const double most = theta / Source::COST;
        size_ = std::min(most, 1.0), B_ = most / size_;
        for (Index a = 0; a < A; ++a) head_[a] = (state_.value(a) - bottom) / size_;
        std::fill(member_.begin(), member_.end(), char(0));
        return size_;
    }
    void fix() {
        fixed_ = true;
        std::fill(head_.begin(), head_.end(), 0.0);
    }
    bool is_exact() const { return N == 1 && !budget; }

    void begin(double cap, std::vector<double>& x, std::vector<double>& amounts, double& price) {
        double level = 0.0, left = B_, rate = 0.0;
        Index holder = -1;  // the member that has nothing left
        rising_.clear(), price = 0.0;
        while (true) {
            double reach = cap;
            for (Index a = 0; a < A; ++a) {
                if (member_[a]) continue;
                if (head_[a] <= level) enlist(a), rising_.push_back({});
                else reach = std::min(reach, head_[a]);
            }
            rate = 0.0;
            for (Index k = 0; k < n_ && holder < 0; ++k) {
                if (!rises(k)) holder = k;
                else rate += 1.0 / rising_[k].slope, reach = std::min(reach, level + rising_[k].gain());
            }
            if (holder >= 0 || !(level < cap)) break;
            const bool ends = !(level + left / rate > reach);
            const double by = ends ? left / rate : reach - level;
            for (Rising& own : rising_) {
                own.spent += by / own.slope;
                own.rest = !ends && level + own.gain() <= reach ? 0.0 : std::max(own.rest - by / own.slope, 0.0);
            }
            left -= by * rate, level += by;
            if (ends) break;
        }
        std::fill(amounts.begin(), amounts.end(), 0.0);
        for (Index k = 0; k < n_; ++k) {
            x[k] = holder >= 0 ? (k == holder ? 1.0 : 0.0) : 1.0 / rising_[k].slope / rate;
            for (Index i = 0; i < N; ++i) amounts[i * width + k] = rising_[k].spent;
        }
    }
    void recall(const Memory& memory, std::vector<double>& amounts, double& price) {
        price = source_.price(memory, s_);
        std::fill(amounts.begin(), amounts.end(), 0.0);
        for (Index k = 0; n_ > 1 && !fixed_ && k < n_; ++k)
            for (Index i = 0; i < N; ++i) {
                const double m = source_.recalled(*this, memory, k, i);
                amounts[i * width + k] = m >= 0.0 && m < INFINITE ? m : 0.0;
            }
    }
    template <class Game>
    void finish(Game&) const {}
    void forget(const Memory& memory, Index s) const { source_.forget(memory, s); }
    void keep(const Memory& memory, View<const double> policy, const std::vector<double>& amounts,
              const std::vector<double>& prices, double price) const {
        source_.keep(*this, memory, policy, amounts, prices, price);
    }

    Index state() const { return s_; }
    double unit() const { return size_; }
    Index size() const { return n_; }
    Index action(Index k) const { return action_[k]; }
    double head(Index k) const { return head_[action_[k]]; }
    View<const Segment> segments(Index k) const { return {segments_[k].data(), Index(segments_[k].size())}; }
    // How much of the budget a segment of row i takes.
    double length(Index k, Index i, const Segment& part) const { return rows_[k * N + i][part.entry] * part.length; }

    void enlist(Index a) {
        action_[n_] = a, member_[a] = 1;
        segments_[n_].clear();
        source_.segments(s_, a, segments_[n_]);
        for (Index i = 0; i < N; ++i) {
            rows_[n_ * N + i] = row_of(layout_, s_ * A + a, i);
            rows_[n_ * N + i].scale /= size_;
        }
        ++n_;
    }

    double answer(const std::vector<double>& x, double& price, Points& points) {
        merged_.clear();
        double heads = 0.0;
        for (Index k = 0; k < n_; ++k) at_[k] = 0, heads += x[k] * head(k);
        if (budget) price = search(x, price, points);
        return heads + take_all(x, price, points).worth;
    }

    void locate(const std::vector<double>& amounts, Points& points) {
        const double part = budget ? std::min(1.0, 1.0 / norm(amounts)) : 1.0;
        for (Index i = 0; i < N; ++i) {
            const View<const double> own(amounts.data() + i * width, width);
            const double sum = total(own), down = budget ? part : sum > B_ ? B_ / sum : 1.0;
            for (Index k = 0; k < n_; ++k) {
                Place& place = known_[k * N + i] = find(k, i, own[k] * down);
                points.gain(i)[k] = place.gain, points.amount(i)[k] = place.amount;
            }
            for (Index k = n_; k < width; ++k) points.amount(i)[k] = 0.0;
            points.costs[i] = cost(total(points.amount(i)));
        }
    }

    template <class Put>
    const std::vector<Master::Exchange>& exchanges(Points& points, Index root, Put put) {
        exchanges_.clear();
        std::fill_n(tied_.begin(), n_, char(0));
        tied_[root] = 1;
        widest_.assign(N, {-1.0, -1});
        for (Index steps = 1, last = root; steps < n_; ++steps) {
            Pairing best{1e-12 * B_, -1, -1, -1};
            for (Index i = 0; i < N; ++i) widen(i, last, best);
            if (best.kernel < 0) {  // a root of its own
                for (last = 0; tied_[last];) ++last;
                tied_[last] = 1;
                widest_.assign(N, {-1.0, -1});
                continue;
            }
            const Index up = exchange(points, best, 1.0, put), down = exchange(points, best, -1.0, put);
            exchanges_.push_back({(budget ? 1 : 0) + best.to, up, down});
            last = best.to, tied_[last] = 1;
        }
        return exchanges_;
    }

    // A budget of order p is spent: costs are convex, and mixtures leave some.
    double settle(std::vector<double>& amounts, double value) const {
        if (!budget) return value;
        const double scale = 1.0 / norm(amounts);
        value = INFINITE;
        for (Index k = 0; k < n_; ++k) value = std::min(value, worth(k, scale, amounts));
        return value;
    }
    // The same for a policy that is kept.
    double attained(const std::vector<double>& x, Points& points) const {
        const double scale = budget ? 1.0 / norm(points.amounts) : 1.0;
        double value = 0.0;
        for (Index k = 0; k < n_; ++k) value += x[k] * worth(k, scale, points.amounts);
        return value;
    }

    // What is left of the budgets is shared by the actions below U.
    double join(std::vector<double>& amounts, double upper, double tol) {
        const Index before = n_;
        double least = INFINITE;
        for (Index a = 0; a < A; ++a) {
            if (member_[a]) continue;
            if (head_[a] < upper - tol) enlist(a);
            else least = std::min(least, head_[a]);
        }
        for (Index i = 0; i < N && !budget; ++i) {
            double left = B_;
            for (Index k = 0; k < before; ++k) left -= amounts[i * width + k];
            for (Index k = before; k < n_; ++k)
                amounts[i * width + k] = std::max(left, 0.0) / double(n_ - before);
        }
        for (Index k = before; k < n_; ++k) least = std::min(least, worth(k, 1.0, amounts));
        return least;
    }

private:
    static constexpr double INSIDE = 1e-7, NEAR = 1e-14, SPENT = 1e-13;
    static constexpr int TRIALS = 200, SLOW = 8;

    struct Piece {
        Index member, entry;
        double length, slope, worth;  // worth: of a unit of budget, x slope
        double reach;                 // D at which it is worth its cost
    };
    struct Total {
        double worth, cost, free;  // free: cost of the kernels that end inside a segment
        bool saturated;  // nothing is left to be taken
    };
    // Where an amount is: its gain, and the ends and slope of the segment that it is inside of.
    struct Place {
        double amount, gain, begin, end, slope;
        double room() const {
            const double edge = INSIDE * (end - begin);
            return end < INFINITE && amount > begin + edge && amount < end - edge
                       ? std::min(end - amount, amount - begin) : -1.0;
        }
    };
    struct Widest {
        double room;
        Index member;
    };
    // What a member spends of its mean row: in all, and what is left of the segment that it is in.
    struct Rising {
        Index next = 0;
        double spent = 0.0, rest = 0.0, slope = 0.0;
        double gain() const { return rest * slope; }
    };
    // Go on to the next segment where one ends; false behind the last.
    bool rises(Index k) {
        Rising& own = rising_[k];
        const Row<double> mean = layout_.mean_row(s_ * A + action_[k]);
        while (!(own.rest > 0.0)) {
            if (own.next == Index(segments_[k].size())) return false;
            const Segment& segment = segments_[k][own.next++];
            own.rest = mean[segment.entry] * segment.length / size_, own.slope = segment.slope;
        }
        return true;
    }
    struct Pairing {
        double room;
        Index kernel, from, to;
    };

    // What a member is worth with a part of its amounts, or all that it has; these are written back.
    double worth(Index k, double part, std::vector<double>& amounts) const {
        double value = head(k);
        for (Index i = 0; i < N; ++i) {
            const Place place = find(k, i, part * amounts[i * width + k]);
            amounts[i * width + k] = place.amount, value += layout_.weights[i] * place.gain;
        }
        return value;
    }

    // The t-th segment in the order of x slope; none behind the last.
    const Piece* piece(const std::vector<double>& x, Index t) {
        if (t < Index(merged_.size())) return &merged_[t];
        Piece best{-1, 0, 0.0, -1.0, -1.0, INFINITE};
        for (Index k = 0; k < n_; ++k) {
            if (at_[k] == Index(segments_[k].size())) continue;
            const Segment& next = segments_[k][at_[k]];
            const double worth = x[k] * next.slope;
            if (worth > best.worth || (worth == best.worth && next.slope > best.slope))
                best = {k, next.entry, next.length, next.slope, worth, B_};
        }
        if (best.member < 0 || (budget && !(best.worth > 0.0))) return nullptr;
        best.reach = reach(best.worth);
        ++at_[best.member];
        merged_.push_back(best);
        return &merged_.back();
    }

    // The answer of kernel i; its worth.
    double take(const std::vector<double>& x, Index i, Points& points) {
        const View<double> amount = points.amount(i), gain = points.gain(i);
        std::fill(amount.begin(), amount.end(), 0.0);
        std::fill(gain.begin(), gain.end(), 0.0);
        double sum = 0.0, worth = 0.0;
        double own = 0.0;  // price: 0 at the end of all segments; where there is one budget, minus a least one between two
        for (Index t = 0;; ++t) {
            const Piece* next = piece(x, t);
            if (!next) break;
            const double most = next->reach;
            if (!(sum < most)) {
                if (own == 0.0) own = budget ? -next->worth : next->worth;
                break;
            }
            const double has = rows_[next->member * N + i][next->entry] * next->length;
            const double taken = std::min(has, most - sum);
            own = has < most - sum ? 0.0 : next->worth;
            sum = has < most - sum ? sum + has : most;
            amount[next->member] += taken, gain[next->member] += taken * next->slope;
        }
        for (Index k = 0; k < n_; ++k) worth += x[k] * gain[k];
        points.costs[i] = cost(sum), points.prices[i] = own;
        return worth;
    }

    // The answers of all kernels at a price; what they are worth above it, and cost.
    Total take_all(const std::vector<double>& x, double price, Points& points) {
        price_ = price;
        for (Piece& known : merged_) known.reach = reach(known.worth);
        Total all{budget ? price : 0.0, 0.0, 0.0, true};
        for (Index i = 0; i < N; ++i) {
            const double worth = take(x, i, points);
            all.worth += layout_.weights[i] * (worth - (budget ? price * points.costs[i] : 0.0));
            all.cost += layout_.weights[i] * points.costs[i];
            double& own = points.prices[i];
            if (own != 0.0) all.saturated = false;
            if (own > 0.0) all.free += layout_.weights[i] * points.costs[i];
            else if (budget)  // of what it spends, also where nothing is left to be taken
                own = std::max(-own, price * p_ / B_ * pow_or_0(total(points.amount(i)) / B_, p_ - 1.0));
        }
        return all;
    }

    // The price m at which the budget is spent, or 0 if there is enough of it. Kernels that end inside a segment
    // cost as much as m^(-p/(p-1)), the others as much as they do.
    double search(const std::vector<double>& x, double guess, Points& points) {
        double low = 0.0, high = INFINITE, price = guess > 0.0 && guess < INFINITE ? guess : 0.3;
        for (int trial = 0; trial < TRIALS; ++trial) {
            const Total all = take_all(x, price, points);
            if (all.saturated && all.cost <= 1.0) return 0.0;
            if (std::fabs(all.cost - 1.0) <= SPENT) break;
            if (all.cost > 1.0) low = price;
            else high = price;
            double next = price * pow_or_0(all.free / (1.0 - (all.cost - all.free)), 1.0 - 1.0 / p_);
            if (!(next > low && next < high) || (low == 0.0 && trial > SLOW))
                next = high == INFINITE ? 4.0 * low : low > 0.0 ? std::sqrt(low) * std::sqrt(high) : 0.25 * high;
            if (!(next > low && next < high)) break;
            price = next;
        }
        return price;
    }

    // D where the next unit of a budget of order p costs what it is worth.
    double reach(double worth) const {
        if (!budget) return B_;
        return price_ > 0.0 ? B_ * pow(worth * B_ / (p_ * price_), 1.0 / (p_ - 1.0)) : INFINITE;
    }
    double cost(double sum) const {
        const double part = sum / B_;
        return !budget ? 0.0 : std::fabs(part - 1.0) < NEAR ? 1.0 : pow_or_0(part, p_);
    }
    static double pow_or_0(double x, double y) { return x > 0.0 ? pow(x, y) : 0.0; }
    double total(View<const double> amounts) const {
        double sum = 0.0;
        for (Index k = 0; k < n_; ++k) sum += amounts[k];
        return sum;
    }
    // (sum_i w_i (D_i/B)^p)^(1/p), or 1 where nothing is moved.
    double norm(const std::vector<double>& amounts) const {
        double most = 0.0, all = 0.0;
        const auto part = [&](Index i) { return total({amounts.data() + i * width, width}) / B_; };
        for (Index i = 0; i < N; ++i) most = std::max(most, part(i));
        for (Index i = 0; i < N; ++i) all += layout_.weights[i] * pow_or_0(part(i) / most, p_);
        return most > 0.0 && all > 0.0 ? most * pow(all, 1.0 / p_) : 1.0;
    }

    // An amount in row i of a member; no more than it has.
    Place find(Index k, Index i, double amount) const {
        Place place{0.0, 0.0, 0.0, INFINITE, 0.0};
        for (const Segment& next : segments_[k]) {
            const double has = length(k, i, next);
            if (place.begin + has > amount + NEAR) {
                place.end = place.begin + has, place.slope = next.slope;
                break;
            }
            place.begin += has, place.gain += has * next.slope;
        }
        place.amount = place.slope > 0.0 ? std::max(amount, place.begin) : place.begin;
        place.gain += (place.amount - place.begin) * place.slope;
        return place;
    }

    // The widest exchange of kernel i between a member that is tied and one that is not.
    void widen(Index i, Index last, Pairing& best) {
        const double own = known_[last * N + i].room();
        if (own > widest_[i].room) widest_[i] = {own, last};
        if (!(widest_[i].room > best.room)) return;
        for (Index k = 0; k < n_; ++k) {
            if (tied_[k]) continue;
            const double room = std::min(widest_[i].room, known_[k * N + i].room());
            if (room > best.room) best = {room, i, widest_[i].member, k};
        }
    }

    template <class Put>
    Index exchange(Points& points, const Pairing& pair, double side, Put put) {
        const Index i = pair.kernel;
        const Place &to = known_[pair.to * N + i], &from = known_[pair.from * N + i];
        const double much = side > 0.0 ? std::min(to.end - to.amount, from.amount - from.begin)
                                       : -std::min(to.amount - to.begin, from.end - from.amount);
        std::copy(points.gain(i).begin(), points.gain(i).end(), gain_.begin());
        std::copy(points.amount(i).begin(), points.amount(i).end(), amount_.begin());
        amount_[pair.to] += much, gain_[pair.to] += much * to.slope;
        amount_[pair.from] -= much, gain_[pair.from] -= much * from.slope;
        return put(i, View<const double>(gain_.data(), A), View<const double>(amount_.data(), A), points.costs[i]);
    }

    const Layout<Real>& layout_;
    Stakes& state_;
    Source source_;
    double p_, size_ = 1.0, B_ = 1.0, price_ = 0.0;
    Index s_ = 0, n_ = 0;
    bool fixed_ = false;  // the policy
    std::vector<Rising> rising_;
    std::vector<double> head_;  // (A)
    std::vector<char> member_;  // (A)
    std::vector<Index> action_;
    std::vector<std::vector<Segment>> segments_;
    std::vector<Index> at_;
    std::vector<Row<Real>> rows_;  // (members, N), divided by `size`
    std::vector<Place> known_;   // (members, N)
    std::vector<char> tied_;
    std::vector<double> gain_, amount_;
    std::vector<Piece> merged_;
    std::vector<Widest> widest_;
    std::vector<Master::Exchange> exchanges_;
};

}  // namespace drmdp
