// Sweeps, and nature's rows after them.
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;

namespace {

template <class Real>
const Routine& find(const std::string& name) {
    const Routine* routine = routine_of(name);
    if (!routine) refuse("routine", "nothing is called " + name);
    if (sizeof(Real) == 4 && !routine->sweep_single) refuse("data", name + " takes float64");
    return *routine;
}

// One of two functions, by the precision of the data.
template <class Real, class Wide, class Single>
auto of_precision(Wide wide, Single single) {
    if constexpr (sizeof(Real) == 4) return single;
    else return wide;
}

template <class Real>
void sweep(const std::string& name, bool fixed, bool by_pair, Index start, Index stop,
           nb::handle layout, nb::handle point, nb::handle memory, nb::handle found, double tol,
           nb::handle extra) {
    const Routine& routine = find<Real>(name);
    Arguments read;
    const Point at = read.point(point);
    const Layout<Real> data = read.layout<Real>(layout, start, stop, at.value.size());
    read.check_seen(data, at.value.size(), at.common, at.order.states.size());
    const Extra besides = read.extra(extra);
    const Found to = read.found(found, data.S, data.A);
    const Layout<Real> pairs = by_pair ? read.by_pair(data) : data;
    const Memory left = read.memory(memory, pairs, routine.keeps);
    const nb::gil_scoped_release released;
    std::vector<double> own(by_pair ? 4 * pairs.S : 0);
    const auto part = [&](Index k) { return View<double>(own.data() + k * pairs.S, pairs.S); };
    Found of_pairs;
    if (by_pair) of_pairs = {part(0), part(1), {part(2), 1}, part(3)};
    const Sweep<Real> asked{pairs, at, left, to, besides, start, stop, data.A, tol, fixed,
                            by_pair ? &of_pairs : nullptr};
    of_precision<Real>(routine.sweep, routine.sweep_single)(asked);
}

template <class Real>
void respond(const std::string& name, bool by_pair, Index start, Index stop, nb::handle layout,
             nb::handle point, nb::handle memory, nb::handle question, nb::handle extra) {
    const Routine& routine = find<Real>(name);
    Arguments read;
    const Point at = read.point(point);
    const Layout<Real> data = read.layout<Real>(layout, start, stop, at.value.size());
    read.check_seen(data, at.value.size(), at.common, at.order.states.size());
    const Extra besides = read.extra(extra);
    const Layout<Real> pairs = by_pair ? read.by_pair(data) : data;
    const Memory left = read.memory(memory, pairs, routine.keeps);
    const Index step = by_pair ? data.A : 1;
    const Rows rows = read.rows(question, pairs, start * step, stop * step, step);
    const Response<Real> asked{pairs, at, left, rows, besides, start * step, stop * step};
    const nb::gil_scoped_release released;
    of_precision<Real>(routine.respond, routine.respond_single)(asked);
}

template <class Real>
void prove(const std::string& name, Index start, Index stop, nb::handle layout, nb::handle view,
           nb::handle claim, nb::handle bounds, Index n_mean, nb::handle extra) {
    const Routine& routine = find<Real>(name);
    Arguments read;
    const judge::Sight sight = read.sight(view);
    const Layout<Real> data = read.layout<Real>(layout, start, stop, sight.value.size());
    read.check_seen(data, sight.value.size(), sight.u, sight.down.size());
    const judge::Claim claimed = read.claim(claim, data, routine.keeps);
    const judge::Proved proved = read.proved(bounds, data.S);
    const Extra besides = read.extra(extra);
    const Question<Real> asked{data, sight, claimed, proved, besides, start, stop, n_mean};
    const nb::gil_scoped_release released;
    of_precision<Real>(routine.prove, routine.prove_single)(asked);
}

// Bring mixtures, a row each, into balls around the weights.
void pull(const std::string& name, nb::handle sizes, nb::handle weights, nb::handle mixtures) {
    const Routine& routine = find<double>(name);
    if (!routine.pull) refuse("routine", name + " mixes no kernels");
    Arrays arrays;
    const View<const double> size = arrays.take<const double>(sizes, "sizes");
    const View<const double> w = arrays.take<const double>(weights, "weights");
    const View<double> q = arrays.take<double>(mixtures, "mixtures", size.size() * w.size());
    for (Index r = 0; r < size.size(); ++r) routine.pull(w, size[r], q.part(r * w.size(), w.size()));
}

}  // namespace

void bind_sweeps(nb::module_& module) {
    module.def("routines", routine_names);
    module.def(
        "sweep",
        [](const std::string& name, bool fixed, bool by_pair, Index start, Index stop,
           nb::handle layout, nb::handle point, nb::handle memory, nb::handle found, double tol,
           nb::handle extra) {
            const auto run = holds_single(layout) ? sweep<float> : sweep<double>;
            run(name, fixed, by_pair, start, stop, layout, point, memory, found, tol, extra);
        },
        "name"_a, "fixed"_a, "by_pair"_a, "start"_a, "stop"_a, "layout"_a, "point"_a, "memory"_a,
        "found"_a, "tol"_a, "extra"_a = nb::none());
    module.def(
        "respond",
        [](const std::string& name, bool by_pair, Index start, Index stop, nb::handle layout,
           nb::handle point, nb::handle memory, nb::handle question, nb::handle extra) {
            const auto run = holds_single(layout) ? respond<float> : respond<double>;
            run(name, by_pair, start, stop, layout, point, memory, question, extra);
        },
        "name"_a, "by_pair"_a, "start"_a, "stop"_a, "layout"_a, "point"_a, "memory"_a, "question"_a,
        "extra"_a = nb::none());
    module.def(
        "prove",
        [](const std::string& name, Index start, Index stop, nb::handle layout, nb::handle view,
           nb::handle claim, nb::handle bounds, Index n_mean, nb::handle extra) {
            const auto run = holds_single(layout) ? prove<float> : prove<double>;
            run(name, start, stop, layout, view, claim, bounds, n_mean, extra);
        },
        "name"_a, "start"_a, "stop"_a, "layout"_a, "view"_a, "claim"_a, "bounds"_a, "n_mean"_a,
        "extra"_a = nb::none());
    module.def("pull", pull, "name"_a, "sizes"_a, "weights"_a, "mixtures"_a);
}

}  // namespace drmdp
