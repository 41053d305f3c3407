// Projections, and the steps of the first-order method.
#include "../prox/radii.hpp"
#include "../prox/steps.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

// The fields of drmdp.prox.registry.Push and Memory.
template <>
struct Reader<prox::Push> {
    static prox::Push read(const Fields& at) { return {at(0, "step[S A]"), at(1, "value[T]")}; }
};
template <>
struct Reader<prox::Trace> {
    static prox::Trace read(const Fields& at) {
        return {at(0, "multiplier[S W]"), at(1, "threshold[P N]"), at(2, "trials[S W]")};
    }
};

namespace {

constexpr Index ANY = std::numeric_limits<std::int32_t>::max();  // states that are listed are not looked up

template <class Maps>
void over_states(Maps maps, Index start, Index stop) {
    for (Index s = start; s < stop; ++s) maps.project(s);
}

template <class Real>
void project(const std::string& norm, bool each, Index start, Index stop, const Layout<Real>& layout,
             const prox::Push& push, View<double> y, const prox::Trace& trace, double accuracy, bool inside) {
    expect_states(layout, start, stop, push.value.size());
    const Index width = norm == "linf" && !each ? 2 * layout.N + 1 : each ? layout.N : 1;
    if (trace.multiplier.columns() != width) refuse("multiplier", "expected numbers of this map");
    const prox::Job<Real> job{layout, push, y, trace, accuracy, inside};
    if (norm == "l1") over_states(prox::Multipliers<prox::L1, Real>(job, each, start, stop), start, stop);
    else if (norm == "l2") over_states(prox::Multipliers<prox::L2, Real>(job, each, start, stop), start, stop);
    else if (norm == "linf" && each) over_states(prox::Boxes<Real>(job, start, stop), start, stop);
    else if (norm == "linf") over_states(prox::Radii<Real>(job, start, stop), start, stop);
    else if (norm == "entropy" && each) over_states(prox::EntropyBoxes<Real>(job, start, stop), start, stop);
    else refuse("norm", "no projection is called " + norm);
}

template <class Real>
void begin(Index start, Index stop, const Layout<Real>& layout, double mix, View<double> y) {
    expect_states(layout, start, stop, ANY);
    for (Index s = start; s < stop; ++s) prox::begin(layout, s, mix, y);
}

template <class Real>
void measure(const Layout<Real>& layout, Reals value, bool centred, bool largest, View<double> norm,
             Table<double> top) {
    expect_states(layout, 0, layout.S, value.size());
    std::vector<double> stake(layout.longest(0, layout.S));
    for (Index s = 0; s < layout.S; ++s)
        norm[s] = prox::measure(layout, value, s, centred, largest, top[s], stake);
}

void act(Index start, Index stop, Table<const std::uint8_t> available, Table<const double> stakes,
         Reals tau, bool entropy, Table<double> policy) {
    expect_range(start, stop, tau.size());
    std::vector<double> spare(policy.columns());
    const View<double> q(spare.data(), policy.columns());
    for (Index s = start; s < stop; ++s) prox::act(available[s], stakes[s], tau[s], entropy, policy[s], q);
}

template <class Real>
void look(Index start, Index stop, const Layout<Real>& layout, Reals y, const std::string& norm,
          double order, View<double> mean, View<double> apart) {
    expect_states(layout, start, stop, ANY);
    const Index each = order == INFINITE ? layout.N : 1;
    if (apart.size() != layout.S * each) refuse("apart", "expected the distances of this order");
    prox::Look<Real> looks(layout, y, norm, order, start, stop);
    for (Index s = start; s < stop; ++s) looks.read(s, mean, apart.part(s * each, each));
}

template <class Real>
void weigh(Index start, Index stop, const Layout<Real>& layout, Reals value, Reals mean,
           Table<double> stakes) {
    expect_states(layout, start, stop, value.size());
    for (Index s = start; s < stop; ++s) prox::weigh(layout, value, mean, s, stakes[s]);
}

template <class Real>
void foresee(const Layout<Real>& layout, Table<const double> policy, Reals mean, Reals gain,
             View<double> total) {
    expect_states(layout, 0, layout.S, total.size());
    prox::foresee(layout, policy, mean, gain, total);
}

template <class Real>
void pull(const Layout<Real>& layout, Reals y, Reals share, Table<double> rows) {
    expect_states(layout, 0, layout.S, ANY);
    prox::pull(layout, y, share, rows);
}

void mix(double part, View<double> mean, Reals point) {
    for (Index j = 0; j < mean.size(); ++j) mean[j] += part * (point[j] - mean[j]);
}

void project_rows(Table<double> rows) {
    const Index K = rows.columns();
    if (K == 0) refuse("rows", "expected no size 0");
    for (Index r = 0; r * K < rows.all().size(); ++r) prox::project_row(rows[r]);
}

}  // namespace

void bind_prox(nb::module_& module) {
    define(module, "project", project<double>, project<float>, "norm", "each", "start", "stop", "layout",
           "push", "y[M]", "trace", "accuracy", "inside");
    define(module, "first_order_begin", begin<double>, begin<float>, "start", "stop", "layout", "mix",
           "y[M]");
    define(module, "first_order_measure", measure<double>, measure<float>, "layout", "value[S]", "centred",
           "largest", "norm[S]", "top[S A]");
    define(module, "first_order_act", act, "start", "stop", "available[S A]", "stakes[S A]", "tau[S]",
           "entropy", "policy[S A]");
    define(module, "first_order_look", look<double>, look<float>, "start", "stop", "layout", "y[M]", "norm",
           "order", "mean[E]", "apart");
    define(module, "first_order_weigh", weigh<double>, weigh<float>, "start", "stop", "layout", "value",
           "mean[E]", "stakes[S A]");
    define(module, "first_order_foresee", foresee<double>, foresee<float>, "layout", "policy[S A]",
           "mean[E]", "gain[S]", "total[S]");
    define(module, "first_order_pull", pull<double>, pull<float>, "layout", "y[M]", "share[S]", "rows[N E]");
    define(module, "mix", mix, "part", "mean[K]", "point[K]");
    define(module, "project_rows", project_rows, "rows");
}

}  // namespace drmdp
