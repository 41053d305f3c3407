// Rows of laws of events, and the mean law.
#include "../events.hpp"

#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;

namespace {

// The fields of drmdp.core.merging.Asked.
Asked asked_of(Arrays& arrays, nb::handle of, Index E) {
    Asked to;
    const Table<const std::uint8_t> flags =
        arrays.table<const std::uint8_t>(Arrays::field(of, 3), "available");
    const Index pairs = flags.all().size();
    to.A = flags.columns(), to.n = to.A ? pairs / to.A : 0, to.E = E, to.available = flags.all();
    to.next = arrays.take<const std::int32_t>(Arrays::field(of, 0), "next", pairs * E);
    to.costs = arrays.take<const double>(Arrays::field(of, 1), "costs");
    to.classes = arrays.take<const std::uint16_t>(Arrays::field(of, 2), "classes");
    if (!to.costs.empty() && to.costs.size() != pairs * E) refuse("costs", "expected one an event, or none");
    if (!to.classes.empty() && to.classes.size() != pairs) refuse("classes", "expected one a pair, or none");
    return to;
}

// The fields of drmdp.core.event_laws.Laws.
Laws laws_of(Arrays& arrays, nb::handle of) {
    Laws to;
    const Table<const std::int64_t> live = arrays.table<const std::int64_t>(Arrays::field(of, 2), "live");
    to.n_live = arrays.take<const std::int64_t>(Arrays::field(of, 3), "n_live");
    to.weights = arrays.take<const double>(Arrays::field(of, 4), "weights");
    to.E = live.columns(), to.N = to.weights.size(), to.live = live.all();
    const Index numbers = to.n_live.size() * to.E * to.N;
    if (to.live.size() != to.n_live.size() * to.E) refuse("live", "expected the events of each class");
    to.p = arrays.take<const double>(Arrays::field(of, 0), "p", numbers);
    to.tail = arrays.take<const double>(Arrays::field(of, 1), "tail", numbers);
    return to;
}

// The first fields of drmdp.core.merging.Block.
Index fill(EventRows& rows, nb::handle asked, nb::handle laws, bool merged, nb::handle block) {
    Arrays arrays;
    const Laws by = laws_of(arrays, laws);
    const Asked of = asked_of(arrays, asked, by.E);
    if (rows.E != by.E || rows.N != by.N) refuse("laws", "expected as many events and kernels as there is room for");
    for (const std::uint16_t c : of.classes)
        if (c >= by.n_live.size()) refuse("classes", "out of range");
    Block to;
    to.indptr = arrays.take<std::int64_t>(Arrays::field(block, 0), "indptr");
    to.indices = arrays.take<std::int32_t>(Arrays::field(block, 1), "indices");
    to.data = arrays.take<double>(Arrays::field(block, 2), "data", by.N * to.indices.size());
    to.mean = arrays.take<double>(Arrays::field(block, 3), "mean", to.indices.size());
    to.costs = arrays.take<double>(Arrays::field(block, 4), "costs", to.indices.size());
    if (to.indptr.size() <= of.n * of.A || to.indices.size() < of.n * of.A * of.E)
        refuse("block", "expected room for all events of these states");
    const nb::gil_scoped_release released;
    return rows.fill(of, by, merged, to);
}

void fill_suffix_sums(nb::handle p, Index classes, Index events, nb::handle tail) {
    Arrays arrays;
    const View<const double> from = arrays.take<const double>(p, "p");
    const Index each = classes * events;
    if (each < 1 || from.size() % each) refuse("p", "expected the laws of all classes");
    suffix_sums(from, classes, events, from.size() / each, arrays.take<double>(tail, "tail", from.size()));
}

void update(nb::handle asked, nb::handle mean, double discount, nb::handle prices, nb::handle u,
            nb::handle policy, nb::handle stake) {
    Arrays arrays;
    const Table<const double> law = arrays.table<const double>(mean, "mean");
    const Asked of = asked_of(arrays, asked, law.columns());
    const View<const double> paid = arrays.take<const double>(prices, "prices", of.n * of.A);
    const View<const double> at = arrays.take<const double>(u, "u");
    const Table<double> x = arrays.table<double>(policy, "policy", of.n, of.A);
    const View<double> to = arrays.take<double>(stake, "stake", of.n);
    const nb::gil_scoped_release released;
    mean_law_update(of, law, discount, paid, at, x, to);
}

void multiply(nb::handle there, nb::handle classes, nb::handle mean, nb::handle z, nb::handle out) {
    Arrays arrays;
    const View<double> to = arrays.take<double>(out, "out");
    const Table<const double> law = arrays.table<const double>(mean, "mean");
    const auto next = arrays.table<const std::int32_t>(there, "there", to.size(), law.columns());
    const auto own = arrays.take<const std::uint16_t>(classes, "classes");
    if (!own.empty() && own.size() != to.size()) refuse("classes", "expected one a state, or none");
    const View<const double> with = arrays.take<const double>(z, "z");
    const nb::gil_scoped_release released;
    mean_law_product(next, own, law, with, to);
}

}  // namespace

void bind_events(nb::module_& module) {
    nb::class_<EventRows>(module, "EventRows")
        .def(nb::init<Index, Index>(), "events"_a, "kernels"_a)
        .def("fill", fill, "asked"_a, "laws"_a, "merged"_a, "block"_a)
        .def_prop_ro("is_full", [](const EventRows& rows) { return rows.seen.is_full((rows.N + 1) * rows.E); });
    module.def("fill_suffix_sums", fill_suffix_sums, "p"_a, "classes"_a, "events"_a, "tail"_a);
    module.def("mean_law_update", update, "asked"_a, "mean"_a, "discount"_a, "prices"_a, "u"_a, "policy"_a,
               "stake"_a);
    module.def("mean_law_product", multiply, "there"_a, "classes"_a, "mean"_a, "z"_a, "out"_a);
}

}  // namespace drmdp
