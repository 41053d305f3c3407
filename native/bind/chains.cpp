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
        to.entry_state = at(1, "entry_state[E]"), to.entry_mass = at(2, "entry_mass[E]");
        to.prefix_length = at(4, "prefix_length[F]"), to.prefix_slope = at(5, "prefix_slope[F]");
        to.prefix_level = at(6, "prefix_level[F]");
        return to;
    }
};

// The fields of drmdp.layout.transport_layout.Lists.
DRMDP_READ(Lists, at(0, "ptr[E+1]"), at(1, "target[L]"), at(2, "cost[L]"));
struct StoredLists {
    Wholes at;
    States target;
    Reals cost;
};
DRMDP_READ(StoredLists, at(0, "ptr"), at(1, "target[K]<S"), at(2, "cost[K]"));

namespace {

template <class Real>
void expect_rows(const CompactRows<Real>& rows, Index start, Index stop) {
    expect_range(start, stop, rows.size());
    expect_steps(rows.entry_at, start, stop, rows.entry_state.size(), "entry_ptr");
    expect_steps(rows.prefix_at, start, stop, rows.prefix_length.size(), "prefix_ptr");
}
// The entries of a row name some of n states, and its prefix terms as many as `longest` of an order.
template <class Real>
void expect_row(const CompactRows<Real>& rows, Index r, Index n, Index longest) {
    const Index entry = rows.entry_at[r], prefix = rows.prefix_at[r];
    expect_below(rows.entry_state.part(entry, rows.entry_at[r + 1] - entry), n, "entry_state");
    expect_below(rows.prefix_length.part(prefix, rows.prefix_at[r + 1] - prefix), longest + 1, "prefix_length");
}

template <class Real>
void product(Index start, Index stop, const CompactRows<Real>& rows, Reals z, Table<const double> sums,
             View<double> out) {
    expect_rows(rows, start, stop);
    for (Index r = start; r < stop; ++r) {
        expect_row(rows, r, z.size(), sums.columns() - 1);
        out[r] = rows.product(r, z, sums[0], sums[1]);
    }
}

template <class Real>
void spell(Index start, const CompactRows<Real>& rows, States states, Reals u, Table<double> out) {
    const Index n = out.columns() ? out.all().size() / out.columns() : 0;
    if (start > rows.size()) expect_range(start, start, rows.size());
    expect_rows(rows, start, start + n);
    expect_below(states, out.columns(), "states");
    for (Index r = 0; r < n; ++r) {
        expect_row(rows, start + r, out.columns(), states.size());
        rows.spell(start + r, states, u, out[r]);
    }
}

template <class Real>
void add_all_rows(View<const Real> data, Wholes indptr, Reals weights, View<double> total) {
    if (data.size() != weights.size() * total.size()) refuse("data", "expected rows of as many entries as there are");
    add_rows<Real>(indptr, data, weights, total);
}

Index lists(View<std::int64_t> where, Wholes indptr, States indices, const StoredLists& stored,
            Table<const double> places, bool dense, const Lists& out) {
    const Index n = where.size();
    if (stored.target.empty() && (places.columns() == 0 ? n > 0 : places.all().size() != n * places.columns() ||
                                                                      (dense && places.columns() != n)))
        refuse("places", "expected those of " + std::to_string(n) + " states");
    if (!stored.target.empty()) {
        if (stored.at.size() != n + 1) refuse("ptr", "expected lists of " + std::to_string(n) + " states");
        expect_steps(stored.at, 0, n, stored.target.size(), "ptr");
    }
    Ground ground;
    ground.list_at = stored.at, ground.list_target = stored.target, ground.list_cost = stored.cost;
    ground.places = places, ground.dense = dense;
    const Index end = fill_lists(indptr, indices, ground, out, where);
    if (end > out.target.size()) refuse("out", "expected room for " + std::to_string(end) + " targets");
    return end;
}

}  // namespace

void bind_chains(nb::module_& module) {
    define(module, "product", product<double>, product<float>, "start", "stop", "parts", "z", "sums[2 C]",
           "out[R]");
    define(module, "spell", spell<double>, spell<float>, "start", "parts", "states[K]", "u[K]", "out[B C]");
    define(module, "add_rows", add_all_rows<double>, add_all_rows<float>, "data", "indptr^E", "weights",
           "total[E]");
    define(module, "eliminate", eliminate, "a[S S]", "b[S]", "limit");
    define(module, "fill_lists", lists, "where[S]", "indptr^E", "indices[E]<S", "stored", "places", "dense", "out");
}

}  // namespace drmdp
