// Transport: C = sum_j y(j) D(j, k(j)), the mass of source j going to k(j), or to several.
//
//     h(t) = sum_j y(j) max_k [t u_k - D(j, k)],    V = sum y(j) u_k(j),    E = sum y(j) D(j, k(j)):
//
// V and E are steps in t. The maximum does not depend on y: every source has the vertices of the concave hull
// of (D(j, k), u_k), each with the multiplier from which it is best. They are made when they are first
// asked for and kept while stakes stay: for all states where actions have the same stakes, else for one.
//
// Mass may leave its source at no cost where D is 0 between different states: such moves are in the first
// vertex, and the answer at NEAR is that of t -> 0.
#pragma once

#include <utility>

#include "pair.hpp"
#include "../stakes.hpp"

namespace drmdp {

constexpr double NEAR = 1e-150;  // below t D/u for any D > 0, which is at least 1e-100

struct Vertex {
    double turn, far, high;  // the t from which it is best, its cost and its stake
};

class Hulls {
public:
    template <class Real>
    Hulls(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : extra_(extra), shared_(layout.common), common_(point.common) {
        Index most = shared_ ? extra.list_at.size() - 1 : 0;
        for (Index s = start; s < stop && !shared_; ++s)
            most = std::max(most, layout.first((s + 1) * layout.A) - layout.first(s * layout.A));
        place_.resize(most + 1);
    }

    // Forget the stakes of other states; the entries of this one begin at `first`.
    void open(Index first) {
        if (shared_) return;
        first_ = first;
        std::fill(place_.begin(), place_.end(), Place{});
        vertices_.clear();
    }
    // The vertices of an entry's source, where the stakes of its pair are u; ascending turns from 0 on.
    View<const Vertex> of(Index entry, View<const double> u) {
        Place& place = place_[shared_ ? extra_.list_of[entry] : entry - first_];
        if (place.size == 0) {
            place.at = Index(vertices_.size());
            make(extra_.list_of[entry], shared_ ? common_ : u, place.at);
            place.size = Index(vertices_.size()) - place.at;
        }
        return {vertices_.data() + place.at, place.size};
    }

private:
    struct Place {
        Index at = 0, size = 0;
    };

    // What is higher by rounding only is not worth the way.
    void make(Index list, View<const double> u, Index base) {
        const Index first = extra_.list_at[list], end = extra_.list_at[list + 1];
        vertices_.resize(base + end - first);
        Vertex *const stack = vertices_.data() + base, *top = stack;
        double high = extra_.stake(first, u);
        *top = {0.0, 0.0, high};
        for (Index k = first + 1; k < end && high < 0.0; ++k) {
            const double x = extra_.stake(k, u);
            if (!(x > high + FLAT)) continue;
            const double d = extra_.list_cost[k];
            while (top > stack && d - top->far <= top->turn * (x - top->high)) --top;
            if (d > 0.0) ++top, *top = {(d - top[-1].far) / (x - top[-1].high), d, x};
            else top->high = x;
            high = x;
        }
        vertices_.resize(base + (top - stack) + 1);
    }

    const Extra& extra_;
    bool shared_;
    View<const double> common_;
    Index first_ = 0;
    std::vector<Place> place_;
    std::vector<Vertex> vertices_;
};

// Order 1, on the row of the mean.
class Transport {
public:
    static constexpr bool POLYGON = true;
    static constexpr double PADDING = 0.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{0, 0};

    static double budget(double radius) { return radius; }

    Transport(const Layout<double>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : hulls_(layout, point, extra, start, stop), free_(extra.free) {}

    void open(Index first) { hulls_.open(first); }
    double nearest() const { return free_ ? NEAR : 0.0; }

    // One pass finds the answer and the vertices beside it, told by multipliers away from ties.
    Answer response(const Pair<double>& pair, double t) {
        Answer found{t, 0.0, 0.0, 0.0};
        Steps down{-1.0}, up{1.0};
        const Row<double> row = pair.row(0);
        const Index first = pair.layout->first(pair.number);
        for (Index j = 0; j < row.size; ++j) {
            const double y = row[j];
            if (!(y > 0.0)) continue;
            const View<const Vertex> hull = hulls_.of(first + j, pair.u.part(0, row.size));
            const Index at = last_before(hull, t), last = hull.size() - 1;
            found.value += y * hull[at].high, found.cost += y * hull[at].far;
            if (at > 0) down.add(hull, at, y, hull[at - 1].turn);
            if (at < last) up.add(hull, at + 1, y, at + 1 < last ? hull[at + 2].turn : INFINITE);
        }
        before_ = down.after(found), after_ = up.after(found);
        return found;
    }
    Answer saturated(const Pair<double>& pair) { return response(pair, INFINITE); }

    // Of the answer that was given last.
    std::pair<Answer, Answer> neighbours(const Pair<double>&, const Answer&) const {
        return {before_, after_};
    }

private:
    // The steps of a row's sources that come next, up or down: those of the least key, +turn or -turn.
    struct Steps {
        double sign, next = INFINITE, beyond = INFINITE, cost = 0.0, value = 0.0;

        // `then`: the turn of the source behind the one of a vertex.
        void add(View<const Vertex> hull, Index at, double y, double then) {
            const double key = sign * hull[at].turn;
            if (key > next) {
                beyond = std::min(beyond, key);
                return;
            }
            if (key < next) beyond = std::min(beyond, next), next = key, cost = value = 0.0;
            beyond = std::min(beyond, sign * then);
            cost += y * (hull[at].far - hull[at - 1].far);
            value += y * (hull[at].high - hull[at - 1].high);
        }
        // The answer behind them, told by a multiplier in the middle.
        Answer after(const Answer& found) const {
            if (next == INFINITE) return {};
            const double turn = sign * next, far = sign * beyond;
            const double t = far > 0.0 && far < INFINITE ? std::sqrt(turn) * std::sqrt(far)
                                                         : turn * (sign > 0.0 ? 2.0 : 0.5);
            return {t, found.cost + sign * cost, found.value + sign * value, 0.0};
        }
    };

    // The last vertex whose turn is below t: of the two vertices that tie there, the other one is behind it.
    static Index last_before(View<const Vertex> hull, double t) {
        Index low = 0, high = hull.size();
        while (high - low > 8) {
            const Index middle = (low + high) / 2;
            (hull[middle].turn < t ? low : high) = middle;
        }
        while (low + 1 < high && hull[low + 1].turn < t) ++low;
        return low;
    }
    Hulls hulls_;
    bool free_;
    Answer before_, after_;
};

}  // namespace drmdp
