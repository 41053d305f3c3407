// What is known of cost against value: convex curves, one an action, and the level a budget buys.
//
// A curve belongs to an action, or to a policy. It is E(V), the least cost at which nature raises
// the value to V; its slope is the multiplier t that is answered by (V, E). It begins at the nominal
// value with t = 0. Points that were evaluated lie on it and the polygon through them above it. With
// c_k the cost of action k and m_k(g - c_k) the polygon's cost of reaching the level g (0 up to the
// nominal value, infinite beyond the last point),
//
//     L = max { g : sum_k m_k(g - c_k) <= B }  <=  F
//     U = (B + sum_k t_k (c_k + V_k) - E_k) / sum_k t_k  >=  F,   one point of each of some curves.
//
// U is weak duality at the policy x ~ t; L is found by Newton's method from the right, monotone and
// finite. Where to look next: on the segment of L at its slope; for smooth curves where the quadratic
// models of the nearest points meet a common level; where the end of a curve holds L up, further
// out: up to GROWTH times the last t, then at the saturated point.
#pragma once

#include <algorithm>
#include <cmath>

#include "../views.hpp"

namespace drmdp {

constexpr double GROWTH = 8.0;
constexpr double SAME = 1e-13;  // multipliers that differ by less, relatively, are the same

// What rows answer to a multiplier.
struct Answer {
    double t = 0.0;      // infinite at the saturated point
    double cost = 0.0;   // E
    double value = 0.0;  // V
    double slope = 0.0;  // dV/dt; 0 where the curve is a polygon
};

// Slope of a segment, which lies between the multipliers of its ends whatever rounding says.
inline double slope_between(const Answer& left, const Answer& right) {
    const double slope = (right.cost - left.cost) / (right.value - left.value);
    return std::min(std::max(slope, left.t), right.t);
}

class Curve {
public:
    static constexpr int MOST = 40;

    double cost = 0.0;  // c; infinite where there is no action
    double low = 0.0;   // c + nominal value
    double next = 0.0;  // where to evaluate next; 0: nowhere
    int count = 0;
    int segment = -1;   // left point of the segment that the level is on; -1: at or below `low`
    Answer last;        // evaluated last
    Answer points[MOST];  // ascending

    void begin(double own_cost, double nominal) {
        cost = own_cost, low = own_cost + nominal, next = 0.0, count = 1, segment = -1;
        last = points[0] = Answer{0.0, 0.0, nominal, 0.0};
    }
    const Answer& end() const { return points[count - 1]; }
    bool rises_to(double level) const { return segment >= 0 && low < level; }

    // Whether an end of the segment has a slope.
    bool smooth() const { return points[segment].slope > 0.0 || points[segment + 1].slope > 0.0; }

    // Add a point between its neighbours by t; a full curve loses its first one.
    void insert(Answer point) {
        last = point;
        if (count == MOST) std::copy(points + 1, points + count, points), --count;
        int at = count;
        for (; at > 0 && points[at - 1].t > point.t; --at) points[at] = points[at - 1];
        if (at > 0) {
            point.value = std::max(point.value, points[at - 1].value);
            point.cost = std::max(point.cost, points[at - 1].cost);
        }
        if (at < count) {
            point.value = std::min(point.value, points[at + 1].value);
            point.cost = std::min(point.cost, points[at + 1].cost);
        }
        points[at] = point;
        ++count;
    }

    struct Spent {
        double cost, slope;
    };

    // Cost of reaching a level that is not beyond the last point; finds the segment.
    Spent spend(double level) {
        segment = -1;
        if (level <= low) return {0.0, 0.0};
        const double target = level - cost;
        int j = std::max(count - 2, 0);
        while (j > 0 && (points[j].value >= target || !(points[j + 1].value > points[j].value))) --j;
        segment = j;
        const Answer &left = points[j], &right = points[j + 1];
        if (count == 1 || !(right.value > left.value)) return {left.cost, 0.0};
        const double slope = slope_between(left, right);
        const double by = std::min(std::max(target - left.value, 0.0), right.value - left.value);
        return {left.cost + slope * by, slope};
    }

    // The end of the segment that supports the curve best at a level: the nearer one in value if
    // one has a slope, else the one whose multiplier is nearer to the segment's.
    const Answer& support(double level) const {
        const Answer &left = points[segment], &right = points[segment + 1];
        if (!(left.t > 0.0)) return right;
        if (right.t == INFINITE) return left;
        const double target = level - cost;
        if (left.slope > 0.0 || right.slope > 0.0)
            return target - left.value < right.value - target ? left : right;
        const double slope = right.value > left.value ? slope_between(left, right) : right.t;
        return slope - left.t < right.t - slope ? left : right;
    }

    // The end of the segment that is nearer to a level and has a slope, else the other; or none.
    const Answer* model(double level) const {
        const Answer *left = points + segment, *right = points + std::min(segment + 1, count - 1);
        const double target = level - cost;
        const bool nearer_left = target - left->value < right->value - target;
        const Answer *near = nearer_left ? left : right, *far = nearer_left ? right : left;
        return near->slope > 0.0 ? near : far->slope > 0.0 ? far : nullptr;
    }

    // Where to evaluate next for a level to aim at (or not a number): a multiplier, infinite for the
    // saturated point, 0 if there is nothing to learn. `holds`: the end of this curve holds L up.
    double propose(double aim, double level, bool holds, double guess) const {
        if (count == 1) return holds ? guess : 0.0;
        double t = NOT_A_NUMBER;
        if (aim == aim && segment >= 0)
            if (const Answer* near = model(level))
                t = near->t + (aim - cost - near->value) / near->slope;
        if (end().t < INFINITE && (holds || (segment == count - 2 && t > end().t))) {
            const double far = GROWTH * end().t, before = points[count - 2].t;
            if (t > (1.0 + SAME) * end().t && t < far) return t;
            return before > 0.0 && end().t >= 0.99 * GROWTH * before ? INFINITE : far;
        }
        if (segment < 0 || holds) return 0.0;
        const Answer &left = points[segment], &right = points[segment + 1];
        if ((1.0 - SAME) * t > left.t && (1.0 + SAME) * t < right.t) return t;
        return unasked();
    }

    // The slope of the segment if that was not asked yet, so that vertices may be skipped; else 0.
    double unasked() const {
        const Answer &left = points[segment], &right = points[segment + 1];
        if (!(right.value > left.value)) return 0.0;
        const double t = slope_between(left, right);
        return (1.0 - SAME) * t > left.t && (1.0 + SAME) * t < right.t ? t : 0.0;
    }
};

using Curves = View<Curve>;

struct Level {
    double level = 0.0;
    Index holder = -1;  // the curve whose end holds it up, or -1
};

// L over the curves that begin below `upper`.
inline Level level_of(Curves curves, double budget, double upper) {
    Level found{upper, -1};
    for (Index k = 0; k < curves.size(); ++k) {
        if (!(curves[k].low < upper)) continue;
        const double end = curves[k].cost + curves[k].end().value;
        if (end < found.level || (found.holder < 0 && end <= found.level)) found = {end, k};
    }
    while (true) {
        double total = -budget, slope = 0.0;
        for (Curve& curve : curves) {
            if (!(curve.low < upper)) continue;
            const Curve::Spent spent = curve.spend(found.level);
            total += spent.cost, slope += spent.slope;
        }
        if (!(total > 0.0 && slope > 0.0)) return found;
        const double lower = found.level - total / slope;
        found.holder = -1;
        if (!(lower < found.level)) return found;
        found.level = lower;
    }
}

// U from a point of each curve that the level is on, and the multipliers behind it; infinite if
// there is no such point.
inline double bound_of(Curves curves, double budget, double level, View<double> multipliers) {
    double total = 0.0, value = budget;
    for (Index k = 0; k < curves.size(); ++k) {
        const Curve& curve = curves[k];
        multipliers[k] = 0.0;
        if (!curve.rises_to(level) || curve.count < 2) continue;
        const Answer& point = curve.support(level);
        if (!(point.t < INFINITE)) continue;
        multipliers[k] = point.t;
        total += point.t;
        value += point.t * (curve.cost + point.value) - point.cost;
    }
    return total > 0.0 ? value / total : INFINITE;
}

// The level at which the quadratic models E + t z + z^2/(2 D) of all curves on it spend the budget;
// not a number where some curve has none.
inline double modelled_level(Curves curves, double budget, double level) {
    double second = 0.0, first = 0.0, total = -budget;
    for (const Curve& curve : curves) {
        if (!curve.rises_to(level)) continue;
        const Answer* point = curve.model(level);
        if (!point) return NOT_A_NUMBER;
        const double z = level - curve.cost - point->value, stiffness = 1.0 / point->slope;
        second += 0.5 * stiffness;
        first += point->t + z * stiffness;
        total += point->cost + z * (point->t + 0.5 * z * stiffness);
    }
    const double root = first * first - 4.0 * second * total;
    if (!(root >= 0.0 && second > 0.0)) return NOT_A_NUMBER;
    return level - 2.0 * total / (first + std::sqrt(root));
}

// Decide where to evaluate next; how many curves have something to learn.
inline int choose_next(Curves curves, double budget, Level at, double guess, bool smooth) {
    const double aim = smooth ? modelled_level(curves, budget, at.level) : NOT_A_NUMBER;
    int asked = 0;
    for (Index k = 0; k < curves.size(); ++k) {
        Curve& curve = curves[k];
        const bool holds = k == at.holder;
        curve.next = 0.0;
        if (holds || (curve.rises_to(at.level) && (at.holder < 0 || aim == aim)))
            curve.next = curve.propose(aim, at.level, holds, guess);
        asked += curve.next > 0.0;
    }
    return asked;
}

}  // namespace drmdp
