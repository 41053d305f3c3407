// Rows of laws of events, and the mean law.
#include "../events.hpp"

#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

// The fields of drmdp.model.events.merging.Asked.
template <>
struct Reader<Asked> {
    static Asked read(const Fields& at) {
        Asked to;
        to.available = at(3, "available[S A]"), to.n = at.from.size('S'), to.A = at.from.size('A');
        const Index pairs = at.from.size('P') = to.n * to.A;
        to.next = at(0, "next"), to.E = pairs ? to.next.size() / pairs : at.from.size('E');
        at.from.size('Q') = pairs * to.E;
        to.costs = at(1, "costs[Q]?"), to.classes = at(2, "classes[P]?");
        return to;
    }
};

// The fields of drmdp.model.events.laws.Laws.
template <>
struct Reader<Laws> {
    static Laws read(const Fields& at) {
        Laws to;
        to.live = at(2, "live[C E]<E"), to.weights = at(4, "weights[N]");
        to.E = at.from.size('E'), to.N = to.weights.size();
        at.from.size('F') = to.E + 1, to.n_live = at(3, "n_live[C]<F");
        for (const Index n : to.n_live)
            if (n == 0) refuse("n_live", "expected 1 or more, got 0");
        at.from.size('L') = to.n_live.size() * to.E * to.N;
        to.p = at(0, "p[L]"), to.tail = at(1, "tail[L]");
        return to;
    }
};

// The first fields of drmdp.model.events.merging.Block.
template <>
struct Reader<Block> {
    static Block read(const Fields& at) {
        Block to;
        to.indptr = at(0, "indptr"), to.indices = at(1, "indices[I]"), to.data = at(2, "data");
        to.mean = at(3, "mean[I]"), to.costs = at(4, "costs[I]");
        return to;
    }
};

namespace {

void expect_events(const Asked& asked, Index events, Index classes) {
    if (asked.next.size() != asked.n * asked.A * events) refuse("next", "expected a state an event");
    if (asked.n * asked.A == 0) return;
    if (classes == 0) refuse("classes", "expected one or more");
    expect_below(asked.classes, classes, "classes");
}

Index fill(EventRows* rows, const Asked& asked, const Laws& laws, bool merged, const Block& block) {
    if (rows->E != laws.E || rows->N != laws.N)
        refuse("laws", "expected as many events and kernels as there is room for");
    expect_events(asked, laws.E, laws.n_live.size());
    const Index pairs = asked.n * asked.A, room = block.indices.size();
    if (block.indptr.size() <= pairs || room < pairs * asked.E || block.data.size() != laws.N * room)
        refuse("block", "expected room for all events of these states");
    return rows->fill(asked, laws, merged, block);
}

void fill_suffix_sums(Reals p, Index classes, Index events, View<double> tail) {
    if (classes < 1 || events < 1 || p.size() / classes / events * classes * events != p.size())
        refuse("p", "expected the laws of all classes");
    suffix_sums(p, classes, events, p.size() / classes / events, tail);
}

void update(const Asked& asked, Table<const double> mean, double discount, Reals prices, Reals u,
            Table<double> policy, View<double> stake) {
    expect_events(asked, mean.columns(), mean.columns() ? mean.all().size() / mean.columns() : 0);
    expect_below(asked.next, u.size(), "next");
    mean_law_update(asked, mean, discount, prices, u, policy, stake);
}

void product(Table<const std::int32_t> there, View<const std::uint16_t> classes, Table<const double> mean, Reals z,
             View<double> out) {
    const Index C = mean.columns() ? mean.all().size() / mean.columns() : 0;
    if (C == 0 && !out.empty()) refuse("mean", "expected one law or more");
    expect_below(classes, C, "classes");
    expect_below(there.all(), z.size(), "there");
    mean_law_product(there, classes, mean, z, out);
}

constexpr Index MOST = Index(1) << 40;  // numbers of the laws of a class

}  // namespace

void bind_events(nb::module_& module) {
    nb::class_<EventRows> rows(module, "EventRows");
    rows.def("__init__", [](EventRows* own, Index events, Index kernels) {
        if (events < 0 || kernels < 0 || events > MOST / (kernels + 1)) refuse("events", "expected fewer numbers");
        new (own) EventRows(events, kernels);
    }, nb::arg("events"), nb::arg("kernels"));
    rows.def_prop_ro("is_full", [](const EventRows& own) { return own.seen.is_full((own.N + 1) * own.E); });
    define(module, "fill_event_rows", fill, "rows", "asked", "laws", "merged", "block");
    define(module, "fill_suffix_sums", fill_suffix_sums, "p[K]", "classes", "events", "tail[K]");
    define(module, "mean_law_update", update, "asked", "mean", "discount", "prices[P]", "u", "policy[S A]",
           "stake[S]");
    define(module, "mean_law_product", product, "there[S E]", "classes[S]?", "mean[C E]", "z",
           "out[S]");
}

}  // namespace drmdp
