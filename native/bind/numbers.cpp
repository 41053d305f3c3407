// What all routines are made of, for tests: elementary functions, sums in lanes, counts in an order.
#include "../elementary.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;

namespace {

template <class Of>
void apply(View<const double> x, View<double> y, Of of) {
    Index j = 0;
    for (; j + WIDTH <= x.size(); j += WIDTH) store(y.at(j, WIDTH), of(load(x.at(j, WIDTH))));
    for (; j < x.size(); ++j) y[j] = of(x[j]);
}

void elementary(const std::string& name, nb::handle numbers, nb::handle found) {
    Arrays arrays;
    const View<const double> x = arrays.take<const double>(numbers, "numbers");
    const View<double> y = arrays.take<double>(found, "found", x.size());
    if (name == "exp") apply(x, y, [](auto t) { return exp(t); });
    else if (name == "expm1") apply(x, y, [](auto t) { return expm1(t); });
    else if (name == "log") apply(x, y, [](auto t) { return log(t); });
    else if (name == "log1p") apply(x, y, [](auto t) { return log1p(t); });
    else refuse("function", "nothing is called " + name);
}

void power(nb::handle numbers, double exponent, nb::handle found) {
    Arrays arrays;
    const View<const double> x = arrays.take<const double>(numbers, "numbers");
    const View<double> y = arrays.take<double>(found, "found", x.size());
    apply(x, y, [&](auto t) { return pow(t, exponent); });
}

double lane_sum(nb::handle numbers) {
    Arrays arrays;
    const View<const double> x = arrays.take<const double>(numbers, "numbers");
    const Row<double> row{x.data(), x.size(), x.size(), 1.0};
    const auto total = row.over<PartSum>(
        [](PartSum& sums, Part p, Index) __attribute__((always_inline)) { sums.sum += p; });
    return total.sum(&PartSum::sum);
}

Index count_above(nb::handle order, Index states, double t, double tau) {
    Arguments read;
    return read.order(order, states).count_above(t, tau);
}

}  // namespace

void bind_numbers(nb::module_& module) {
    module.def("elementary", elementary, "name"_a, "numbers"_a, "found"_a);
    module.def("power", power, "numbers"_a, "exponent"_a, "found"_a);
    module.def("lane_sum", lane_sum, "numbers"_a);
    module.def("count_above", count_above, "order"_a, "states"_a, "t"_a, "tau"_a);
}

}  // namespace drmdp
