// One state at v, normalised. With z_a(t) = c(s,a,t) + discount v(t), top_a its maximum over what
// nature may use, base = min_a top_a and unit the largest range of any z_a,
//
//     u_a = (z_a - top_a)/unit in [-1, 0],   cost_a = (top_a - base)/unit >= 0,
//     F(v) = base + unit F',   F' in [-1, 0],
//
// which keeps its digits at any scale and level of costs and values. Differences below FLAT are
// rounding and count as 0: that moves a value by at most FLAT unit. Each action's stakes begin at a
// multiple of eight and are followed by `padding` up to the next one.
#pragma once

#include <vector>

#include "data.hpp"

namespace drmdp {

constexpr double FLAT = 1e-13;
constexpr double TINY = 1e-280;  // a smaller unit is 0

// A row; one of float32 is divided by its sum.
template <class Real>
Row<Real> row_of(const Layout<Real>& layout, Index pair, Index i) {
    Row<Real> row = layout.row(pair, i);
    if (sizeof(Real) == 4) row.scale = scale_of(row);
    return row;
}

class Stakes {
public:
    std::vector<double> cost;     // (A), infinite where an action is not available
    std::vector<double> nominal;  // (A) value of the mean row
    double base = INFINITE, unit = TINY;

    // Room for any of the states start ... stop - 1.
    template <class Real>
    Stakes(const Layout<Real>& layout, Index start, Index stop, double padding = 0.0)
        : cost(layout.A), nominal(layout.A), padding_(padding), begins_(layout.A + 1) {
        Index most = 0;
        for (Index s = start; s < stop; ++s) {
            Index size = 0;
            for (Index a = 0; a < layout.A; ++a) size += to_lanes(layout.length(s * layout.A + a));
            most = size > most ? size : most;
        }
        u_.resize(most);
    }

    // Stakes of action a, padded.
    View<double> of(Index a) {
        return {u_.data() + begins_[a], begins_[a + 1] - begins_[a]};
    }

    // What an action is worth before nature moves.
    double value(Index a) const { return cost[a] + nominal[a]; }
    // The best action against an unconstrained nature, and against none.
    struct Best {
        Index cheapest = 0, lowest = 0;
    };
    Best best() const {
        Best found;
        for (Index a = 1; a < Index(cost.size()); ++a) {
            if (cost[a] < cost[found.cheapest]) found.cheapest = a;
            if (value(a) < value(found.lowest)) found.lowest = a;
        }
        return found;
    }
    // Bounds on F', as bounds on F.
    void close(Index s, double upper, double lower, double passes, const Found& found) const {
        found.upper[s] = base + unit * upper;
        found.lower[s] = base + unit * lower;
        found.passes[s] = passes;
    }

    // Normalise state s; false if it is terminal.
    template <class Real>
    bool open(const Layout<Real>& layout, const Point& point, Index s) {
        if (!layout.has_actions(s)) return false;
        base = INFINITE, unit = layout.common ? layout.discount(s * layout.A) * point.span : 0.0;
        begins_[0] = 0;
        for (Index a = 0; a < layout.A; ++a) {
            const Index pair = s * layout.A + a;
            begins_[a + 1] = begins_[a] + to_lanes(layout.length(pair));
            cost[a] = INFINITE, nominal[a] = 0.0;
            if (!layout.available[pair]) continue;
            double top = layout.discount(pair) * point.top;
            if (!layout.common) {
                const Range range = raw(layout, point, pair, of(a));
                top = range.high, unit = unit > range.high - range.low ? unit : range.high - range.low;
            }
            cost[a] = layout.costs[pair] + top, nominal[a] = top;
            base = cost[a] < base ? cost[a] : base;
        }
        const double shrink = unit > TINY ? 1.0 / unit : 0.0;
        if (!(unit > TINY)) {  // nature can change nothing: the unit is the range of the costs
            unit = TINY;
            for (Index a = 0; a < layout.A; ++a)
                if (cost[a] < INFINITE && cost[a] - base > unit) unit = cost[a] - base;
        }
        for (Index a = 0; a < layout.A; ++a) {
            const Index pair = s * layout.A + a;
            if (!layout.available[pair]) continue;
            nominal[a] = layout.common ? shared(layout, point, pair, of(a))
                                       : shifted(layout, pair, nominal[a], shrink, of(a));
            cost[a] = (cost[a] - base) / unit;
        }
        return true;
    }

private:
    struct Range {
        double high, low;
    };
    struct Extremes {
        Part high = all(-INFINITE), low = all(INFINITE);
    };

    // Costs and discounted values of the next states of a pair.
    template <class Real>
    static Range raw(const Layout<Real>& layout, const Point& point, Index pair, View<double> z) {
        const Index first = layout.first(pair), K = layout.length(pair);
        const double discount = layout.discount(pair);
        for (Index j = 0; j < K; ++j) z[j] = discount * point.value[layout.indices[first + j]];
        if (!layout.next_costs.empty())
            for (Index j = 0; j < K; ++j) z[j] += layout.next_costs[first + j];
        for (Index j = K; j < z.size(); ++j) z[j] = z[K - 1];
        const auto range = over_lanes<Extremes>(z.size(), [&](Extremes& e, Index j) DRMDP_LAMBDA {
            const Part x = load(z, j);
            e.high = greater(x, e.high), e.low = lesser(x, e.low);
        });
        return {range.greatest(&Extremes::high), range.least(&Extremes::low)};
    }

    // Stakes of a pair from its costs and values; the value of its mean row.
    template <class Real>
    double shifted(const Layout<Real>& layout, Index pair, double top, double shrink,
                   View<double> z) const {
        for (Index j = 0; j < z.size(); j += WIDTH) {
            const Part x = (load(z, j) - top) * shrink;
            store(z, j, where(x <= -FLAT, x));
        }
        return worth(layout, pair, z);
    }

    // The same where all actions see v alike.
    template <class Real>
    double shared(const Layout<Real>& layout, const Point& point, Index pair, View<double> z) const {
        const Index first = layout.first(pair), K = layout.length(pair);
        for (Index j = 0; j < K; ++j) z[j] = point.common[layout.indices[first + j]];
        return worth(layout, pair, z);
    }

    template <class Real>
    double worth(const Layout<Real>& layout, Index pair, View<double> z) const {
        for (Index j = layout.length(pair); j < z.size(); ++j) z[j] = padding_;
        const auto total = layout.mean_row(pair).template over<PartSum>(
            [&](PartSum& sums, Part p, Index j) DRMDP_LAMBDA { sums.sum += p * load(z, j); });
        return total.sum(&PartSum::sum);
    }

    double padding_;
    std::vector<double> u_;
    std::vector<Index> begins_;
};

}  // namespace drmdp
