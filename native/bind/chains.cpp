// Chains, systems of equations, and lists of where mass can go.
#include "../chain.hpp"

#include "../lists.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

using namespace nanobind::literals;
using Reals = View<const double>;
using Wholes = View<const std::int64_t>;
using States = View<const std::int32_t>;

namespace {

void check_rows(Index start, Index stop, Index rows) {
    if (!(0 <= start && start <= stop && stop <= rows)) refuse("rows", "out of range");
}

// The fields of drmdp.core.compact.Parts.
template <class Real>
CompactRows<Real> compact(Arrays& arrays, nb::handle of) {
    CompactRows<Real> to;
    const auto field = [&](Index k) { return Arrays::field(of, k); };
    to.entry_at = arrays.take<const std::int64_t>(field(0), "entry_ptr");
    to.prefix_at = arrays.take<const std::int64_t>(field(3), "prefix_ptr", to.entry_at.size());
    if (to.entry_at.empty()) refuse("entry_ptr", "expected one or more");
    const Index entries = to.entry_at[to.size()], prefixes = to.prefix_at[to.size()];
    to.entry_state = arrays.take<const std::int32_t>(field(1), "entry_state", entries);
    to.entry_mass = arrays.take<const Real>(field(2), "entry_mass", entries);
    to.prefix_length = arrays.take<const std::int32_t>(field(4), "prefix_length", prefixes);
    to.prefix_slope = arrays.take<const Real>(field(5), "prefix_slope", prefixes);
    to.prefix_level = arrays.take<const Real>(field(6), "prefix_level", prefixes);
    return to;
}

bool is_single(nb::handle parts) { return Arrays::is_single(Arrays::field(parts, 2)); }

template <class Real>
void product(Index start, Index stop, nb::handle parts, nb::handle z, nb::handle sums, nb::handle out) {
    Arrays arrays;
    const CompactRows<Real> rows = compact<Real>(arrays, parts);
    check_rows(start, stop, rows.size());
    const Reals with = arrays.take<const double>(z, "z");
    const Table<const double> prefix = arrays.table<const double>(sums, "sums", 2);
    const View<double> to = arrays.take<double>(out, "out", rows.size());
    const nb::gil_scoped_release released;
    for (Index r = start; r < stop; ++r) to[r] = rows.product(r, with, prefix[0], prefix[1]);
}

template <class Real>
void spell(Index start, nb::handle parts, nb::handle states, nb::handle u, nb::handle out) {
    Arrays arrays;
    const CompactRows<Real> rows = compact<Real>(arrays, parts);
    const Table<double> to = arrays.table<double>(out, "out");
    const Index n = to.columns() ? to.all().size() / to.columns() : 0;
    check_rows(start, start + n, rows.size());
    const States order = arrays.take<const std::int32_t>(states, "states");
    const Reals own = arrays.take<const double>(u, "u", order.size());
    const nb::gil_scoped_release released;
    for (Index r = 0; r < n; ++r) rows.spell(start + r, order, own, to[r]);
}

bool allot_rows(nb::handle weights, nb::handle available, nb::handle lengths, Index prefixes,
                nb::handle entry_at, nb::handle prefix_at) {
    Arrays arrays;
    const Reals w = arrays.take<const double>(weights, "weights");
    const Index n = w.size();
    const auto flags = arrays.take<const std::uint8_t>(available, "available", n);
    const Wholes each = arrays.take<const std::int64_t>(lengths, "lengths", n);
    const auto entries = arrays.take<std::int64_t>(entry_at, "entry_at", n + 1);
    return allot(w, flags, each, prefixes, entries, arrays.take<std::int64_t>(prefix_at, "prefix_at", n + 1));
}

template <class Real>
void add_all_rows(nb::handle indptr, nb::handle data, nb::handle weights, nb::handle total) {
    Arrays arrays;
    const Wholes at = arrays.take<const std::int64_t>(indptr, "indptr");
    const Reals w = arrays.take<const double>(weights, "weights");
    if (at.empty()) refuse("indptr", "expected one or more");
    const Index entries = at[at.size() - 1];
    const auto rows = arrays.take<const Real>(data, "data", w.size() * entries);
    const View<double> to = arrays.take<double>(total, "total", entries);
    const nb::gil_scoped_release released;
    add_rows<Real>(at, rows, w, to);
}

bool eliminate_all(nb::handle a, nb::handle b, Index limit) {
    Arrays arrays;
    const View<double> right = arrays.take<double>(b, "b");
    const Table<double> system = arrays.table<double>(a, "a", right.size(), right.size());
    const nb::gil_scoped_release released;
    return eliminate(system, right, limit);
}

void solve(nb::handle chain, double discount, nb::handle b) {
    Arrays arrays;
    const View<double> right = arrays.take<double>(b, "b");
    solve_small(arrays.table<const double>(chain, "chain", right.size(), right.size()), discount, right);
}

// The fields of drmdp.solvers.mean_start.Rows.
MeanRows mean_rows(Arrays& arrays, nb::handle of) {
    const auto field = [&](Index k) { return Arrays::field(of, k); };
    const Table<const double> costs = arrays.table<const double>(field(3), "costs");
    const Index pairs = costs.all().size(), A = costs.columns();
    const Wholes at = arrays.take<const std::int64_t>(field(0), "indptr", pairs + 1);
    const States t = arrays.take<const std::int32_t>(field(1), "indices", at[pairs]);
    return {at, t, arrays.take<const double>(field(2), "data", at[pairs]), costs,
            arrays.take<const std::uint8_t>(field(4), "available", pairs), nb::cast<double>(field(5)),
            A ? pairs / A : 0, A};
}

nb::tuple improve(nb::handle rows, bool free, nb::handle x, nb::handle value, nb::handle residual) {
    Arrays arrays;
    const MeanRows mean = mean_rows(arrays, rows);
    const Table<double> policy = arrays.table<double>(x, "x", mean.S, mean.A);
    const Reals at = arrays.take<const double>(value, "value", mean.S);
    const View<double> r = arrays.take<double>(residual, "residual", mean.S);
    const MeanRows::Round found = mean.improve(free, policy, at, r);
    return nb::make_tuple(found.size, found.same);
}

void rounds(nb::handle rows, bool free, double tol, Index most, nb::handle x, nb::handle value) {
    Arrays arrays;
    const MeanRows mean = mean_rows(arrays, rows);
    const Table<double> policy = arrays.table<double>(x, "x", mean.S, mean.A);
    mean.rounds(free, tol, most, policy, arrays.take<double>(value, "value", mean.S));
}

bool relax(nb::handle rows, nb::handle x, nb::handle right, Index products, double rate, double slack,
           double rough, nb::handle found) {
    Arrays arrays;
    const MeanRows mean = mean_rows(arrays, rows);
    const Table<const double> policy = arrays.table<const double>(x, "x", mean.S, mean.A);
    const Reals r = arrays.take<const double>(right, "right", mean.S);
    const View<double> to = arrays.take<double>(found, "found", mean.S);
    const nb::gil_scoped_release released;
    return mean.relax(policy, r, {products, rate, slack, rough}, to);
}

void spell_mean(nb::handle rows, nb::handle x, nb::handle chain) {
    Arrays arrays;
    const MeanRows mean = mean_rows(arrays, rows);
    const Table<const double> policy = arrays.table<const double>(x, "x", mean.S, mean.A);
    mean.spell(policy, arrays.table<double>(chain, "chain", mean.S, mean.S));
}

// `stored` and `out` have the fields of drmdp.layout.grounded.Lists.
Index lists(nb::handle indptr, nb::handle indices, nb::handle stored, nb::handle places, bool dense,
            nb::handle out, nb::handle where) {
    Arrays arrays;
    const Wholes at = arrays.take<const std::int64_t>(indptr, "indptr");
    const States t = arrays.take<const std::int32_t>(indices, "indices");
    Ground ground;
    ground.list_at = arrays.take<const std::int64_t>(Arrays::field(stored, 0), "ptr");
    ground.list_target = arrays.take<const std::int32_t>(Arrays::field(stored, 1), "target");
    ground.list_cost = arrays.take<const double>(Arrays::field(stored, 2), "cost", ground.list_target.size());
    ground.places = arrays.table<const double>(places, "places");
    ground.dense = dense;
    Lists to;
    to.at = arrays.take<std::int64_t>(Arrays::field(out, 0), "ptr", t.size() + 1);
    to.target = arrays.take<std::int32_t>(Arrays::field(out, 1), "target");
    to.cost = arrays.take<double>(Arrays::field(out, 2), "cost", to.target.size());
    const View<std::int64_t> own = arrays.take<std::int64_t>(where, "where");
    const nb::gil_scoped_release released;
    return fill_lists(at, t, ground, to, own);
}

}  // namespace

void bind_chains(nb::module_& module) {
    module.def(
        "product",
        [](Index start, Index stop, nb::handle parts, nb::handle z, nb::handle sums, nb::handle out) {
            (is_single(parts) ? product<float> : product<double>)(start, stop, parts, z, sums, out);
        },
        "start"_a, "stop"_a, "parts"_a, "z"_a, "sums"_a, "out"_a);
    module.def(
        "spell",
        [](Index start, nb::handle parts, nb::handle states, nb::handle u, nb::handle out) {
            (is_single(parts) ? spell<float> : spell<double>)(start, parts, states, u, out);
        },
        "start"_a, "parts"_a, "states"_a, "u"_a, "out"_a);
    module.def("allot", allot_rows, "weights"_a, "available"_a, "lengths"_a, "prefixes"_a, "entry_at"_a,
               "prefix_at"_a);
    module.def(
        "add_rows",
        [](nb::handle indptr, nb::handle data, nb::handle weights, nb::handle total) {
            (Arrays::is_single(data) ? add_all_rows<float> : add_all_rows<double>)(indptr, data, weights,
                                                                                   total);
        },
        "indptr"_a, "data"_a, "weights"_a, "total"_a);
    module.def("eliminate", eliminate_all, "a"_a, "b"_a, "limit"_a);
    module.def("solve_small", solve, "chain"_a, "discount"_a, "b"_a);
    module.def("improve", improve, "rows"_a, "free"_a, "x"_a, "value"_a, "residual"_a);
    module.def("rounds", rounds, "rows"_a, "free"_a, "tol"_a, "most"_a, "x"_a, "value"_a);
    module.def("relax", relax, "rows"_a, "x"_a, "right"_a, "products"_a, "rate"_a, "slack"_a, "rough"_a,
               "found"_a);
    module.def("spell_mean", spell_mean, "rows"_a, "x"_a, "chain"_a);
    module.def("fill_lists", lists, "indptr"_a, "indices"_a, "stored"_a, "places"_a, "dense"_a, "out"_a,
               "where"_a);
}

}  // namespace drmdp
