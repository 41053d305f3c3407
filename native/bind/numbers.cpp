// What all routines are made of, for tests: elementary functions, sums in lanes, counts in an order.
#include "../elementary.hpp"
#include "bind.hpp"
#include "order.hpp"

namespace drmdp {

namespace {

template <class Of>
void apply(Reals x, View<double> y, Of of) {
    Index j = 0;
    for (; j + WIDTH <= x.size(); j += WIDTH) store(y.at(j, WIDTH), of(load(x.at(j, WIDTH))));
    for (; j < x.size(); ++j) y[j] = of(x[j]);
}

void elementary(const std::string& name, Reals x, View<double> y) {
    if (name == "exp") apply(x, y, [](auto t) { return exp(t); });
    else if (name == "expm1") apply(x, y, [](auto t) { return expm1(t); });
    else if (name == "log") apply(x, y, [](auto t) { return log(t); });
    else if (name == "log1p") apply(x, y, [](auto t) { return log1p(t); });
    else refuse("function", "nothing is called " + name);
}

void power(Reals x, double exponent, View<double> y) {
    apply(x, y, [&](auto t) { return pow(t, exponent); });
}

double lane_sum(Reals x) { return mass_of(Row<double>{x.data(), x.size(), x.size(), 1.0}); }

Index count_above(const Order& order, double t, double tau) { return order.count_above(t, tau); }

}  // namespace

void bind_numbers(nb::module_& module) {
    define(module, "elementary", elementary, "name", "numbers[K]", "found[K]");
    define(module, "power", power, "numbers[K]", "exponent", "found[K]");
    define(module, "lane_sum", lane_sum, "numbers");
    define(module, "count_above", count_above, "order", "t", "tau");
}

}  // namespace drmdp
