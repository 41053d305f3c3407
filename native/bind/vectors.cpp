// Vectors of all states, and v as sweeps and proofs look at it.
#include "../vectors.hpp"

#include "../judge/bounds.hpp"
#include "../order.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;
using Flags = View<const std::uint8_t>;
using Reals = View<const double>;

namespace {

nb::tuple ends(nb::handle vector) {
    Arrays arrays;
    const Ends found = ends_of(arrays.take<const double>(vector, "vector"));
    return nb::make_tuple(found.low, found.high);
}

bool finite(nb::handle vector) {
    Arrays arrays;
    return are_finite(arrays.take<const double>(vector, "vector"));
}

double fill_around(nb::handle value, nb::handle u) {
    Arrays arrays;
    const Reals from = arrays.take<const double>(value, "value");
    return around(from, arrays.take<double>(u, "u", from.size()));
}

void fill_steps(nb::handle u, double level, double discount, nb::handle terminal, nb::handle bound,
                double margin, nb::handle out) {
    Arrays arrays;
    const View<double> to = arrays.take<double>(out, "out");
    const Reals at = arrays.take<const double>(u, "u", to.size());
    const Flags ends = arrays.take<const std::uint8_t>(terminal, "terminal", to.size());
    steps(at, level, discount, ends, arrays.take<const double>(bound, "bound", to.size()), margin, to);
}

nb::tuple look_at_sweep(nb::handle value, nb::handle lower, nb::handle upper) {
    Arrays arrays;
    const Reals at = arrays.take<const double>(value, "value");
    const Reals low = arrays.take<const double>(lower, "lower_step", at.size());
    const Survey found = survey(at, low, arrays.take<const double>(upper, "upper_step", at.size()));
    return nb::make_tuple(found.span, found.size, found.off, found.most);
}

nb::tuple look_at_bounds(nb::handle lower, nb::handle upper) {
    Arrays arrays;
    const Reals low = arrays.take<const double>(lower, "lower");
    const Extent found = extent(low, arrays.take<const double>(upper, "upper", low.size()));
    return nb::make_tuple(found.gap, found.most, found.nearest);
}

void fill_block_sums(nb::handle a, nb::handle b, Index length, nb::handle out) {
    Arrays arrays;
    const Reals one = arrays.take<const double>(a, "a");
    const Reals other = arrays.take<const double>(b, "b", one.size());
    if (length < 1) refuse("length", "expected 1 or more");
    const View<double> to = arrays.take<double>(out, "out", (one.size() + length - 1) / length);
    const nb::gil_scoped_release released;
    block_sums(one, other, length, to);
}

bool hold_distributions(nb::handle policy, nb::handle available, nb::handle terminal, double slack) {
    Arrays arrays;
    const Table<const double> x = arrays.table<const double>(policy, "policy");
    const Flags flags = arrays.take<const std::uint8_t>(available, "available", x.all().size());
    const Index S = x.columns() ? x.all().size() / x.columns() : 0;
    return are_distributions(x, flags, arrays.take<const std::uint8_t>(terminal, "terminal", S), slack);
}

nb::tuple look_at(nb::handle value, double discount, nb::handle u) {
    Arrays arrays;
    const Reals at = arrays.take<const double>(value, "value");
    const Top found = look(at, discount, arrays.take<double>(u, "u"));
    return nb::make_tuple(found.top, found.span);
}

double fill_order(nb::handle common, nb::handle states, nb::handle u, nb::handle sum1, nb::handle sum2,
                  nb::handle below) {
    Arrays arrays;
    const View<const std::int32_t> order = arrays.take<const std::int32_t>(states, "states");
    const Index n = order.size();
    if (n == 0) refuse("states", "expected one or more");
    const Reals from = arrays.take<const double>(common, "common");
    const View<double> own = arrays.take<double>(u, "u", n), first = arrays.take<double>(sum1, "sum1", n + 1);
    return add_up(from, order, own, first, arrays.take<double>(sum2, "sum2", n + 1),
                  arrays.take<std::int32_t>(below, "below", n));
}

nb::tuple see(nb::handle value, double discount, nb::handle u) {
    Arrays arrays;
    const Reals at = arrays.take<const double>(value, "value");
    if (at.empty()) refuse("value", "expected one or more states");
    const judge::Top found = judge::look(at, discount, arrays.take<double>(u, "u"));
    return nb::make_tuple(found.top, found.span);
}

void fill_rises(nb::handle down, nb::handle rise, nb::handle rise2) {
    Arrays arrays;
    const Reals own = arrays.take<const double>(down, "down");
    const View<double> first = arrays.take<double>(rise, "rise", own.size() + 1);
    judge::fill_rises(own, first, arrays.take<double>(rise2, "rise2", own.size() + 1));
}

void clean(nb::handle policy, nb::handle available, nb::handle played) {
    Arrays arrays;
    const Table<const double> x = arrays.table<const double>(policy, "policy");
    const Index S = x.columns() ? x.all().size() / x.columns() : 0;
    const Flags flags = arrays.take<const std::uint8_t>(available, "available", x.all().size());
    judge::clean(x, flags, arrays.table<double>(played, "played", S, x.columns()));
}

void fill_bound(nb::handle value, nb::handle lower, nb::handle upper, nb::handle terminal, double size,
                double further, double limit, double side, nb::handle out) {
    Arrays arrays;
    const View<double> to = arrays.take<double>(out, "out");
    const Index S = to.size();
    const Reals at = arrays.take<const double>(value, "value", S);
    const Reals low = arrays.take<const double>(lower, "lower_step", S);
    const Reals high = arrays.take<const double>(upper, "upper_step", S);
    const Flags ends = arrays.take<const std::uint8_t>(terminal, "terminal", S);
    judge::bound({at, low, high, ends, size}, further, limit, side, to);
}

}  // namespace

void bind_vectors(nb::module_& module) {
    module.def("ends", ends, "vector"_a);
    module.def("is_finite", finite, "vector"_a);
    module.def("fill_around", fill_around, "value"_a, "u"_a);
    module.def("fill_steps", fill_steps, "u"_a, "level"_a, "discount"_a, "terminal"_a, "bound"_a, "margin"_a,
               "out"_a);
    module.def("survey", look_at_sweep, "value"_a, "lower_step"_a, "upper_step"_a);
    module.def("extent", look_at_bounds, "lower"_a, "upper"_a);
    module.def("fill_block_sums", fill_block_sums, "a"_a, "b"_a, "length"_a, "out"_a);
    module.def("are_distributions", hold_distributions, "policy"_a, "available"_a, "terminal"_a, "slack"_a);
    module.def("look", look_at, "value"_a, "discount"_a, "u"_a);
    module.def("fill_order", fill_order, "common"_a, "states"_a, "u"_a, "sum1"_a, "sum2"_a, "below"_a);
    module.def("judge_look", see, "value"_a, "discount"_a, "u"_a);
    module.def("judge_rises", fill_rises, "down"_a, "rise"_a, "rise2"_a);
    module.def("judge_clean", clean, "policy"_a, "available"_a, "played"_a);
    module.def("judge_bound", fill_bound, "value"_a, "lower_step"_a, "upper_step"_a, "terminal"_a, "size"_a,
               "further"_a, "limit"_a, "side"_a, "out"_a);
}

}  // namespace drmdp
