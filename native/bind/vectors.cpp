// Vectors of all states, and v as sweeps and proofs look at it.
#include "../vectors.hpp"

#include "../judge/sums.hpp"
#include "../order.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

namespace {

std::pair<double, double> ends(Reals vector) {
    const Ends found = ends_of(vector);
    return {found.low, found.high};
}

std::tuple<double, double, double, double> look_at_sweep(Reals value, Reals lower, Reals upper) {
    const Survey found = survey(value, lower, upper);
    return {found.span, found.size, found.off, found.most};
}

std::tuple<double, double, double> look_at_bounds(Reals lower, Reals upper) {
    const Extent found = extent(lower, upper);
    return {found.gap, found.most, found.nearest};
}

void fill_block_sums(Reals a, Reals b, Index length, View<double> out) {
    if (length < 1) refuse("length", "expected 1 or more");
    if (out.size() != (a.size() + length - 1) / length) refuse("out", "expected a number a block");
    block_sums(a, b, length, out);
}

double fill_order(Reals common, States states, View<double> u, View<double> sum1, View<double> sum2,
                  View<std::int32_t> below) {
    if (states.empty()) refuse("states", "expected one or more");
    expect_below(states, common.size(), "states");
    return add_up(common, states, u, sum1, sum2, below);
}

std::pair<double, double> look_at(Reals value, double discount, View<double> u) {
    if (value.empty()) refuse("value", "expected one or more states");
    const Top found = look(value, discount, u);
    return {found.top, found.span};
}

}  // namespace

void bind_vectors(nb::module_& module) {
    define(module, "ends", ends, "vector");
    define(module, "is_finite", are_finite, "vector");
    define(module, "fill_around", around, "value[S]", "u[S]");
    define(module, "both_steps", both_steps, "u[S]", "level", "discount", "terminal[S]", "lower[S]", "upper[S]",
           "low[S]", "high[S]", "middle[S]");
    define(module, "survey", look_at_sweep, "value[S]", "lower_step[S]", "upper_step[S]");
    define(module, "extent", look_at_bounds, "lower[S]", "upper[S]");
    define(module, "fill_block_sums", fill_block_sums, "a[S]", "b[S]", "length", "out");
    define(module, "are_distributions", are_distributions, "policy[S A]", "available[S A]", "terminal[S]",
           "slack");
    define(module, "look", look_at, "value[S]", "discount", "u[S]?");
    define(module, "fill_order", fill_order, "common", "states[K]", "u[K]", "sum1[K+1]", "sum2[K+1]",
           "below[K]");
    define(module, "judge_rises", judge::fill_rises, "down[K]", "rise[K+1]", "rise2[K+1]");
#if defined(DRMDP_MARGINS)
    module.def("judge_without", [](const std::string& file, int line) { judge::without = {file, line}; });
#endif
}

}  // namespace drmdp
