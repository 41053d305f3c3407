// Chains, systems of equations, and lists of where mass can go.
#include "../chain.hpp"

#include "../lists.hpp"
#include "arguments.hpp"
#include "bind.hpp"

namespace drmdp {

// The fields of drmdp.core.compact.Parts.
template <class Real>
struct Reader<CompactRows<Real>> {
    static CompactRows<Real> read(const Fields& at) {
        CompactRows<Real> to;
        to.entry_at = at(0, "entry_ptr[R+1]"), to.prefix_at = at(3, "prefix_ptr[R+1]");
        if (to.entry_at.empty()) refuse("entry_ptr", "expected one or more");
        at.from.size('E') = to.entry_at[to.size()], at.from.size('F') = to.prefix_at[to.size()];
        to.entry_state = at(1, "entry_state[E]"), to.entry_mass = at(2, "entry_mass[E]");
        to.prefix_length = at(4, "prefix_length[F]"), to.prefix_slope = at(5, "prefix_slope[F]");
        to.prefix_level = at(6, "prefix_level[F]");
        return to;
    }
};

// The fields of drmdp.solvers.mean_start.Rows.
template <>
struct Reader<MeanRows> {
    static MeanRows read(const Fields& at) {
        MeanRows to;
        to.costs = at(3, "costs[S A]"), to.S = at.from.size('S'), to.A = at.from.size('A');
        at.from.size('P') = to.S * to.A, to.indptr = at(0, "indptr[P+1]");
        at.from.size('E') = to.indptr[to.S * to.A];
        to.indices = at(1, "indices[E]"), to.data = at(2, "data[E]"), to.available = at(4, "available[P]");
        to.discount = at(5, "discount");
        return to;
    }
};

// The fields of drmdp.layout.grounded.Lists.
template <>
struct Reader<Lists> {
    static Lists read(const Fields& at) { return {at(0, "ptr[E+1]"), at(1, "target[L]"), at(2, "cost[L]")}; }
};
struct StoredLists {
    Wholes at;
    States target;
    Reals cost;
};
template <>
struct Reader<StoredLists> {
    static StoredLists read(const Fields& at) { return {at(0, "ptr"), at(1, "target[K]"), at(2, "cost[K]")}; }
};

namespace {

template <class Real>
void product(Index start, Index stop, const CompactRows<Real>& rows, Reals z, Table<const double> sums,
             View<double> out) {
    expect_range(start, stop, rows.size());
    for (Index r = start; r < stop; ++r) out[r] = rows.product(r, z, sums[0], sums[1]);
}

template <class Real>
void spell(Index start, const CompactRows<Real>& rows, States states, Reals u, Table<double> out) {
    const Index n = out.columns() ? out.all().size() / out.columns() : 0;
    expect_range(start, start + n, rows.size());
    for (Index r = 0; r < n; ++r) rows.spell(start + r, states, u, out[r]);
}

template <class Real>
void add_all_rows(View<const Real> data, Wholes indptr, Reals weights, View<double> total) {
    const Index entries = indptr.empty() ? 0 : indptr[indptr.size() - 1];
    if (total.size() != entries || data.size() != weights.size() * entries)
        refuse("data", "expected rows of as many entries as there are");
    add_rows<Real>(indptr, data, weights, total);
}

std::pair<double, bool> improve(const MeanRows& rows, bool free, Table<double> x, Reals value,
                                View<double> residual) {
    const MeanRows::Round found = rows.improve(free, x, value, residual);
    return {found.size, found.same};
}

void rounds(const MeanRows& rows, bool free, double tol, Index most, Table<double> x, View<double> value) {
    rows.rounds(free, tol, most, x, value);
}

bool relax(const MeanRows& rows, Table<const double> x, Reals right, Index products, double rate,
           double slack, double rough, View<double> found) {
    return rows.relax(x, right, {products, rate, slack, rough}, found);
}

void spell_mean(const MeanRows& rows, Table<const double> x, Table<double> chain) { rows.spell(x, chain); }

Index lists(Wholes indptr, States indices, const StoredLists& stored, Table<const double> places,
            bool dense, const Lists& out, View<std::int64_t> where) {
    Ground ground;
    ground.list_at = stored.at, ground.list_target = stored.target, ground.list_cost = stored.cost;
    ground.places = places, ground.dense = dense;
    return fill_lists(indptr, indices, ground, out, where);
}

}  // namespace

void bind_chains(nb::module_& module) {
    define(module, "product", product<double>, product<float>, "start", "stop", "parts", "z", "sums[2 C]",
           "out[R]");
    define(module, "spell", spell<double>, spell<float>, "start", "parts", "states[K]", "u[K]", "out[B C]");
    define(module, "allot", allot, "weights[P]", "available[P]", "lengths[P]", "prefixes", "entry_at[P+1]",
           "prefix_at[P+1]");
    define(module, "add_rows", add_all_rows<double>, add_all_rows<float>, "data", "indptr", "weights",
           "total");
    define(module, "eliminate", eliminate, "a[S S]", "b[S]", "limit");
    define(module, "solve_small", solve_small, "chain[S S]", "discount", "b[S]");
    define(module, "improve", improve, "rows", "free", "x[S A]", "value[S]", "residual[S]");
    define(module, "rounds", rounds, "rows", "free", "tol", "most", "x[S A]", "value[S]");
    define(module, "relax", relax, "rows", "x[S A]", "right[S]", "products", "rate", "slack", "rough",
           "found[S]");
    define(module, "spell_mean", spell_mean, "rows", "x[S A]", "chain[S S]");
    define(module, "fill_lists", lists, "indptr", "indices[E]", "stored", "places", "dense", "out", "where");
}

}  // namespace drmdp
