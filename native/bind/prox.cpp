// Projections, and the steps of the first-order method.
#include "../prox/radii.hpp"
#include "../prox/steps.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;

namespace {

using prox::Look;

constexpr Index ANY = std::numeric_limits<std::int32_t>::max();  // states that are listed are not looked up

template <class T>
Table<T> table(Arrays& arrays, nb::handle array, const char* name, Index rows, Index columns) {
    return {arrays.take<T>(array, name, rows * columns), columns};
}

template <class Maps>
void over_states(Maps maps, Index start, Index stop) {
    for (Index s = start; s < stop; ++s) maps.project(s);
}

template <class Real>
void project(const std::string& norm, bool each, Index start, Index stop, nb::handle layout,
             nb::handle push, nb::handle y, nb::handle trace, double accuracy, bool inside) {
    Arguments read;
    Arrays arrays;
    const auto value = arrays.take<const double>(Arrays::field(push, 1), "value");
    const Layout<Real> data = read.layout<Real>(layout, start, stop, value.size());
    const Index S = data.S, A = data.A, N = data.N;
    const Index width = norm == "linf" && !each ? 2 * N + 1 : each ? N : 1;
    const prox::Push by{table<const double>(arrays, Arrays::field(push, 0), "step", S, A), value};
    const prox::Trace left{
        table<double>(arrays, Arrays::field(trace, 0), "multiplier", S, width),
        table<double>(arrays, Arrays::field(trace, 1), "threshold", S * A, N),
        table<std::int64_t>(arrays, Arrays::field(trace, 2), "trials", S, width)};
    const prox::Job<Real> job{data, by, arrays.take<double>(y, "y", data.data.size()), left, accuracy,
                              inside};
    const nb::gil_scoped_release released;
    if (norm == "l1") over_states(prox::Multipliers<prox::L1, Real>(job, each, start, stop), start, stop);
    else if (norm == "l2") over_states(prox::Multipliers<prox::L2, Real>(job, each, start, stop), start, stop);
    else if (norm == "linf" && each) over_states(prox::Boxes<Real>(job, start, stop), start, stop);
    else if (norm == "linf") over_states(prox::Radii<Real>(job, start, stop), start, stop);
    else if (norm == "entropy" && each) over_states(prox::EntropyBoxes<Real>(job, start, stop), start, stop);
    else refuse("norm", "no projection is called " + norm);
}

template <class Real>
void begin(Index start, Index stop, nb::handle layout, double mix, nb::handle y) {
    Arguments read;
    Arrays arrays;
    const Layout<Real> data = read.layout<Real>(layout, start, stop, ANY);
    const auto to = arrays.take<double>(y, "y", data.data.size());
    for (Index s = start; s < stop; ++s) prox::begin(data, s, mix, to);
}

template <class Real>
void measure(nb::handle layout, nb::handle value, bool centred, bool largest, nb::handle norm,
             nb::handle top) {
    Arguments read;
    Arrays arrays;
    const auto v = arrays.take<const double>(value, "value");
    const Layout<Real> data = read.layout<Real>(layout, 0, v.size(), v.size());
    const auto norms = arrays.take<double>(norm, "norm", data.S);
    const auto tops = table<double>(arrays, top, "top", data.S, data.A);
    std::vector<double> stake(data.longest(0, data.S));
    for (Index s = 0; s < data.S; ++s)
        norms[s] = prox::measure(data, v, s, centred, largest, tops[s], stake);
}

void act(Index start, Index stop, nb::handle available, nb::handle stakes, nb::handle tau, bool entropy,
         nb::handle policy) {
    Arrays arrays;
    const Index A = Arrays::columns(available);
    const auto tau_of = arrays.take<const double>(tau, "tau");
    const Index S = tau_of.size();
    if (!(0 <= start && start <= stop && stop <= S)) refuse("states", "out of range");
    const auto may = table<const std::uint8_t>(arrays, available, "available", S, A);
    const auto q = table<const double>(arrays, stakes, "stakes", S, A);
    const auto x = table<double>(arrays, policy, "policy", S, A);
    const nb::gil_scoped_release released;
    std::vector<double> spare(A);
    for (Index s = start; s < stop; ++s) prox::act(may[s], q[s], tau_of[s], entropy, x[s], {spare.data(), A});
}

template <class Real>
void look(Index start, Index stop, nb::handle layout, nb::handle y, const std::string& norm, double order,
          nb::handle mean, nb::handle apart) {
    Arguments read;
    Arrays arrays;
    const Layout<Real> data = read.layout<Real>(layout, start, stop, ANY);
    const auto from = arrays.take<const double>(y, "y", data.data.size());
    const auto means = arrays.take<double>(mean, "mean", data.indices.size());
    const auto far = table<double>(arrays, apart, "apart", data.S, order == INFINITE ? data.N : 1);
    const nb::gil_scoped_release released;
    Look<Real> looks(data, from, norm, order, start, stop);
    for (Index s = start; s < stop; ++s) looks.read(s, means, far[s]);
}

template <class Real>
void weigh(Index start, Index stop, nb::handle layout, nb::handle value, nb::handle mean,
           nb::handle stakes) {
    Arguments read;
    Arrays arrays;
    const auto v = arrays.take<const double>(value, "value");
    const Layout<Real> data = read.layout<Real>(layout, start, stop, v.size());
    const auto means = arrays.take<const double>(mean, "mean", data.indices.size());
    const auto q = table<double>(arrays, stakes, "stakes", data.S, data.A);
    const nb::gil_scoped_release released;
    for (Index s = start; s < stop; ++s) prox::weigh(data, v, means, s, q[s]);
}

template <class Real>
void foresee(nb::handle layout, nb::handle policy, nb::handle mean, nb::handle gain, nb::handle total) {
    Arguments read;
    Arrays arrays;
    const auto to = arrays.take<double>(total, "total");
    const Layout<Real> data = read.layout<Real>(layout, 0, to.size(), to.size());
    prox::foresee(data, table<const double>(arrays, policy, "policy", data.S, data.A),
                  arrays.take<const double>(mean, "mean", data.indices.size()),
                  arrays.take<const double>(gain, "gain", data.S), to);
}

template <class Real>
void pull(nb::handle layout, nb::handle y, nb::handle share, nb::handle rows) {
    Arguments read;
    Arrays arrays;
    const auto shares = arrays.take<const double>(share, "share");
    const Layout<Real> data = read.layout<Real>(layout, 0, shares.size(), ANY);
    prox::pull(data, arrays.take<const double>(y, "y", data.data.size()), shares,
               table<double>(arrays, rows, "rows", data.N, data.indices.size()));
}

void mix(double part, nb::handle mean, nb::handle point) {
    Arrays arrays;
    const auto to = arrays.take<double>(mean, "mean");
    const auto from = arrays.take<const double>(point, "point", to.size());
    for (Index j = 0; j < to.size(); ++j) to[j] += part * (from[j] - to[j]);
}

void project_rows(nb::handle rows) {
    Arrays arrays;
    const Index K = Arrays::columns(rows);
    const auto all = arrays.take<double>(rows, "rows");
    if (K == 0) refuse("rows", "expected two dimensions, no size 0");
    for (Index k = 0; k < all.size(); k += K) prox::project_row(all.part(k, K));
}

// `wide` or `single`, by the precision of the layout among the arguments.
template <class... Args>
auto by_precision(void (*wide)(Args...), void (*single)(Args...)) {
    return [=](Args... args) {
        nb::handle layout;
        const auto seek = [&](const auto& x) {
            if constexpr (std::is_same_v<decltype(x), const nb::handle&>)
                if (!layout.is_valid()) layout = x;
        };
        (seek(args), ...);
        (holds_single(layout) ? single : wide)(args...);
    };
}

}  // namespace

void bind_prox(nb::module_& module) {
    module.def("project", by_precision(project<double>, project<float>), "norm"_a, "each"_a, "start"_a,
               "stop"_a, "layout"_a, "push"_a, "y"_a, "trace"_a, "accuracy"_a, "inside"_a);
    module.def("first_order_begin", by_precision(begin<double>, begin<float>), "start"_a,
               "stop"_a, "layout"_a, "mix"_a, "y"_a);
    module.def("first_order_measure", by_precision(measure<double>, measure<float>), "layout"_a,
               "value"_a, "centred"_a, "largest"_a, "norm"_a, "top"_a);
    module.def("first_order_act", act, "start"_a, "stop"_a, "available"_a, "stakes"_a, "tau"_a,
               "entropy"_a, "policy"_a);
    module.def("first_order_look", by_precision(look<double>, look<float>), "start"_a, "stop"_a,
               "layout"_a, "y"_a, "norm"_a, "order"_a, "mean"_a, "apart"_a);
    module.def("first_order_weigh", by_precision(weigh<double>, weigh<float>), "start"_a, "stop"_a,
               "layout"_a, "value"_a, "mean"_a, "stakes"_a);
    module.def("first_order_foresee", by_precision(foresee<double>, foresee<float>), "layout"_a,
               "policy"_a, "mean"_a, "gain"_a, "total"_a);
    module.def("first_order_pull", by_precision(pull<double>, pull<float>), "layout"_a, "y"_a, "share"_a,
               "rows"_a);
    module.def("mix", mix, "part"_a, "mean"_a, "point"_a);
    module.def("project_rows", project_rows, "rows"_a);
}

}  // namespace drmdp
