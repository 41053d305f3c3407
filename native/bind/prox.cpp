// Projections, and what the first-order method reads of an iterate.
#include "../prox/entropy.hpp"
#include "../prox/look.hpp"
#include "../prox/search.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

// The fields of drmdp.prox.registry.Push and Memory.
DRMDP_READ(prox::Push, at(0, "step[S A]"), at(1, "value[T]"));
DRMDP_READ(prox::Trace, at(0, "multiplier[S W]"), at(1, "threshold[P N]"), at(2, "trials[S W]"));

namespace {

template <class Real>
void project(const std::string& norm, bool each, Index start, Index stop, const Layout<Real>& layout,
             const prox::Push& push, View<double> y, const prox::Trace& trace, double accuracy, bool inside) {
    expect_states(layout, start, stop, push.value.size());
    const Index width = each ? layout.N : norm == "linf" ? layout.N + 1 : 1;
    if (trace.multiplier.columns() != width) refuse("multiplier", "expected numbers of this map");
    const prox::Job<Real> job{layout, push, y, trace, accuracy, inside};
    const auto over_states = [&](auto map) {
        for (Index s = start; s < stop; ++s) map.project(s);
    };
    if (norm == "l1") over_states(prox::Ball<prox::L1, Real>(job, each, start, stop));
    else if (norm == "l2") over_states(prox::Ball<prox::L2, Real>(job, each, start, stop));
    else if (norm == "linf") over_states(prox::Ball<prox::Linf, Real>(job, each, start, stop));
    else if (norm == "entropy" && each) over_states(prox::EntropyBoxes<Real>(job, start, stop));
    else refuse("norm", "no projection is called " + norm);
}

template <class Real>
void look(Index start, Index stop, const Layout<Real>& layout, Reals y, const std::string& norm,
          double order, View<double> mean, View<double> apart) {
    expect_states(layout, start, stop, std::numeric_limits<std::int32_t>::max());  // none is looked up
    const Index each = order == INFINITE ? layout.N : 1;
    if (apart.size() != layout.S * each) refuse("apart", "expected the distances of this order");
    prox::Look<Real> looks(layout, y, norm, order, start, stop);
    for (Index s = start; s < stop; ++s) looks.read(s, mean, apart.part(s * each, each));
}

}  // namespace

void bind_prox(nb::module_& module) {
    define(module, "project", project<double>, project<float>, "norm", "each", "start", "stop", "layout",
           "push", "y[M]", "trace", "accuracy", "inside");
    define(module, "first_order_look", look<double>, look<float>, "start", "stop", "layout", "y[M]", "norm",
           "order", "mean[E]", "apart");
}

}  // namespace drmdp
