// Transport: C = sum_j y(j) D(j, k(j)), the mass of source j going to k(j), or to several.
//
//     h(t) = sum_j y(j) max_k [t u_k - D(j, k)],    V = sum y(j) u_k(j),    E = sum y(j) D(j, k(j)):
//
// V and E are steps in t. The maximum does not depend on y: every source has the vertices of the concave hull
// of (D(j, k), u_k), each with the multiplier from which it is best. They are made when they are first
// asked for and kept while stakes stay: for all states where actions have the same stakes, else for one.
//
// Mass may leave its source at no cost where D is 0 between different states: such moves are in the first
// vertex, which is the answer at NEAR.
#pragma once

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

}  // namespace drmdp
