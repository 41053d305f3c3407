// Sweeps, nature's rows after them, and proofs.
#include <nanobind/stl/vector.h>

#include "../judge/proofs.hpp"
#include "../routines.hpp"
#include "bind.hpp"
#include "functions.hpp"
#include "order.hpp"

namespace drmdp {

// The fields of drmdp.layout.memory.Memory, before it is known how many numbers of a state there are.
template <class T>
struct Remembered {
    View<T> by_action, by_kernel, by_row;

    template <class Real>
    void fill(Table<T>& actions, Table<T>& kernels, Table<T>& rows, const Layout<Real>& layout,
              const Keeps& keeps) const {
        actions = cut(by_action, "by_action", layout.S, layout.A);
        kernels = cut(by_kernel, "by_kernel", layout.S, keeps.by_kernel ? layout.N : 0);
        rows = cut(by_row, "by_row", layout.S, keeps.of_pair * layout.A * (keeps.by_row ? layout.N : 1));
    }
    static Table<T> cut(View<T> all, const char* name, Index rows, Index least) {
        if (rows == 0) return {all, least};
        if (all.size() % rows != 0 || all.size() / rows < least)
            refuse(name, "expected " + std::to_string(rows) + " rows of at least " +
                             std::to_string(least) + " numbers, got " + std::to_string(all.size()));
        return {all, all.size() / rows};
    }
};

template <class T>
struct Reader<Remembered<T>> {
    static Remembered<T> read(const Fields& at) {
        return {at(0, "by_action"), at(1, "by_kernel"), at(2, "by_row")};
    }
};

DRMDP_READ(Point, at(0, "value[T]"), at(1, "top"), at(2, "span"), (Fields{at.from, at[3]}(0, "common")), at(3, "order"));
DRMDP_READ(Found, at(0, "upper[S]"), at(1, "lower[S]"), at(2, "policy[S A]"), at(3, "passes[S]"));

template <>
struct Reader<Extra> {
    static Extra read(const Fields& at) {
        Extra to;
        if (at.of.is_none()) return to;
        to.order = at(0, "order");
        if (to.order < 1.0) refuse("order", "expected 1 or more");
        const Fields lists{at.from, at[1]};
        if (lists.of.is_none()) {
            if (PyTuple_Size(at.of.ptr()) > 2) to.outside = at(2, "functions");
            return to;
        }
        to.list_at = lists(0, "ptr"), to.list_target = lists(1, "target[G]");
        to.list_cost = lists(2, "cost[G]"), to.list_of = at(2, "source[E]"), to.free = at(3, "free");
        return to;
    }
};

template <>
struct Reader<judge::Sight> {
    static judge::Sight read(const Fields& at) {
        judge::Sight to;
        Arguments& from = at.from;
        to.value = at(0, "value[T]"), to.top = at(1, "top"), to.span = at(2, "span"), to.u = at(3, "u");
        to.down = at(6, "down");
        const Index n = to.down.size();
        from.size('L') = n + (n > 0), from.size('R') = n > 0 ? from.size('T') : 0, from.size('B') = 1;
        to.place = at(5, "place[R]"), to.rise = at(7, "rise[L]"), to.rise2 = at(8, "rise2[L]");
        to.beyond = at(9, "beyond[B]");
        return to;
    }
};

// The fields of drmdp.certificate.sums.Claim and Found.
struct Claimed {
    Table<const double> policy;
    Remembered<const double> memory;
    bool fixed;
};
DRMDP_READ(Claimed, at(0, "policy[S A]"), at(1, "memory"), at(3, "fixed"));
struct Bounded {
    View<double> low, high, share;
};
DRMDP_READ(Bounded, at(0, "low[S]"), at(1, "high[S]"), at(2, "share"));

template <>
struct Reader<Numbers> {
    static Numbers read(const Fields& at) {
        if (!Arguments::is_single(at.of)) return {at.from.read<View<double>>(at.of, "numbers[I]"), {}};
        return {{}, at.from.read<View<float>>(at.of, "numbers[I]")};
    }
};

// The fields of drmdp.operators.nature_rows.Question and Target.
template <>
struct Reader<Rows> {
    static Rows read(const Fields& at) {
        const Fields target{at.from, at[2]};
        Rows to;
        to.weights = {at(0, "weights[P]"), 1}, to.share = {at(1, "share"), 1};
        to.entry_at = target(0, "entry_at[P+1]"), to.prefix_at = target(3, "prefix_at[P+1]");
        to.states = target(1, "states"), to.length = target(4, "length");
        at.from.size('I') = to.states.size(), to.mass = target(2, "mass");
        at.from.size('I') = to.length.size(), to.slope = target(5, "slope"), to.level = target(6, "level");
        return to;
    }
};

namespace {

template <class Real>
const Routine& find(const std::string& name, const Extra& extra = {}) {
    const Routine* routine = routine_of(name);
    if (!routine) refuse("routine", "nothing is called " + name);
    if (routine->outside && !extra.outside.row.address) refuse("functions", "expected row, bound and cost");
    if (sizeof(Real) == 4 && !routine->sweep_single) refuse("data", name + " takes float64");
    return *routine;
}

// Do what is asked by one of two functions, by the precision of the data.
template <class Real, class Wide, class Single, class Asked>
void run(Wide wide, Single single, const Asked& asked) {
    if constexpr (sizeof(Real) == 4) single(asked);
    else wide(asked);
    expect_sound(asked.extra.outside.fault);
}

void check_functions(const Outside&) {}

// Lists are of all `next` states, which is what stakes are of, or each is of an entry and names some of its
// pair. Whether targets are there is looked at where they are read (`Extra::stake`): most never are.
template <class Real>
void expect_lists(const Routine& routine, const Extra& extra, const Layout<Real>& layout, Index start, Index stop,
                  Index next) {
    if (routine.keeps.behind != Behind::targets || start == stop) return;
    if (extra.list_of.empty() && !layout.indices.empty()) refuse("lists", "expected where mass can go");
    const Index pair = start * layout.A, end = stop * layout.A, first = layout.indptr[pair];
    const auto used = extra.list_of.part(first, layout.indptr[end] - first);
    const Index lists = extra.list_at.size() - 1;
    expect_below(used, lists, "source");
    const auto expect = [&](Index from, Index to) {
        expect_steps(extra.list_at, from, to, extra.list_target.size(), "ptr");
        for (Index list = from; list < to; ++list)
            if (extra.list_at[list] == extra.list_at[list + 1])
                refuse("ptr", "expected a target, list " + std::to_string(list) + " has none");
    };
    if (lists <= used.size()) expect(0, lists);  // pairs share them
    else
        for (const Index list : used) expect(list, list + 1);
    for (Index k = pair; layout.common && !layout.unlisted && k < end; ++k)
        if (layout.available[k] && layout.length(k) != next) refuse("indices", "expected every next state");
}

// What must be behind K listed entries of nature's row.
template <class Real>
Index behind(Behind what, const Layout<Real>& layout, Index K) {
    if (what == Behind::top) return 1;
    if (!layout.unlisted) return 0;
    return what == Behind::kernels ? layout.N : what == Behind::targets ? 2 * layout.N * K : 0;
}
void expect_room(Wholes at, Index k, Index least, const char* name) {
    if (at[k + 1] - at[k] < least)
        refuse(name, "expected " + std::to_string(least) + " places of pair " + std::to_string(k) + ", got " +
                         std::to_string(at[k + 1] - at[k]));
}

// v and the layout belong together.
template <class Real>
void expect_seen(const Layout<Real>& layout, Index next, Reals common, Index ordered) {
    if (layout.common && common.size() != next) refuse("common", "expected one number a state");
    if (layout.unlisted && ordered == 0) refuse("order", "expected states in descending order of v");
}

// Every pair as a state with one action; `numbers` of states become those of pairs, in `room`.
void repeat(View<const double>& numbers, Index S, Index A, std::vector<double>& room) {
    if (numbers.size() != S || A == 1) return;
    room.resize(S * A);
    for (Index k = 0; k < S * A; ++k) room[k] = numbers[k / A];
    numbers = {room.data(), S * A};
}
template <class Real>
Layout<Real> pairs_of(Layout<Real> layout, std::vector<double>& room) {
    repeat(layout.radius, layout.S, layout.A, room);
    layout.S *= layout.A, layout.A = 1;
    return layout;
}

template <class Real>
void sweep(const std::string& name, bool fixed, bool by_pair, Index start, Index stop,
           const Layout<Real>& layout, const Point& point, const Remembered<double>& memory,
           const Found& found, double tol, const Extra& extra) {
    const Routine& routine = find<Real>(name, extra);
    expect_states(layout, start, stop, point.value.size());
    expect_seen(layout, point.value.size(), point.common, point.order.states.size());
    expect_lists(routine, extra, layout, start, stop, point.value.size());
    std::vector<double> radius;
    const Layout<Real> pairs = by_pair ? pairs_of(layout, radius) : layout;
    Memory left;
    memory.fill(left.by_action, left.by_kernel, left.by_row, pairs, routine.keeps);
    std::vector<double> own(by_pair ? 4 * pairs.S : 0);
    const auto part = [&](Index k) { return View<double>(own.data() + k * pairs.S, pairs.S); };
    Found of_pairs;
    if (by_pair) of_pairs = {part(0), part(1), {part(2), 1}, part(3)};
    const Sweep<Real> asked{pairs, point, left, found, extra, start, stop, layout.A, tol, fixed,
                            by_pair ? &of_pairs : nullptr};
    run<Real>(routine.sweep, routine.sweep_single, asked);
}

template <class Real>
void respond(const std::string& name, bool by_pair, Index start, Index stop, const Layout<Real>& layout,
             const Point& point, const Remembered<double>& memory, Rows rows, const Extra& extra) {
    const Routine& routine = find<Real>(name, extra);
    expect_states(layout, start, stop, point.value.size());
    expect_seen(layout, point.value.size(), point.common, point.order.states.size());
    expect_lists(routine, extra, layout, start, stop, point.value.size());
    std::vector<double> radius, room;
    View<const double> share = rows.share.all();
    const Index S = layout.S, step = by_pair ? layout.A : 1;
    if (by_pair) repeat(share, S, layout.A, room);
    const Layout<Real> pairs = by_pair ? pairs_of(layout, radius) : layout;
    if (pairs.S == 0 || share.empty() || share.size() % pairs.S) refuse("share", "does not fit the states");
    rows.share = {share, share.size() / pairs.S}, rows.weights = {rows.weights.all(), pairs.A};
    const Index first = start * layout.A, last = stop * layout.A;
    expect_steps(rows.entry_at, first, last, rows.states.size(), "entry_at");
    expect_steps(rows.prefix_at, first, last, rows.length.size(), "prefix_at");
    for (Index k = first; k < last; ++k) {
        if (!(rows.weights.all()[k] > 0.0)) continue;
        const Index K = layout.length(k);
        expect_room(rows.entry_at, k, K + behind(routine.keeps.behind, layout, K), "entry_at");
        expect_room(rows.prefix_at, k, layout.unlisted ? routine.keeps.prefixes * layout.N : 0, "prefix_at");
    }
    Memory left;
    memory.fill(left.by_action, left.by_kernel, left.by_row, pairs, routine.keeps);
    const Response<Real> asked{pairs, point, left, rows, extra, start * step, stop * step};
    run<Real>(routine.respond, routine.respond_single, asked);
}

template <class Real>
void prove(const std::string& name, Index start, Index stop, const Layout<Real>& layout,
           const judge::Sight& sight, const Claimed& claimed, const Bounded& bounds, Index n_mean,
           const Extra& extra) {
    const Routine& routine = find<Real>(name, extra);
    expect_states(layout, start, stop, sight.value.size());
    expect_seen(layout, sight.value.size(), sight.u, sight.down.size());
    expect_lists(routine, extra, layout, start, stop, sight.value.size());
    judge::Claim claim{claimed.policy, {}, {}, {}, claimed.fixed};
    claimed.memory.fill(claim.by_action, claim.by_kernel, claim.by_row, layout, routine.keeps);
    const auto share = Remembered<double>::cut(bounds.share, "share", layout.S, layout.N);
    const judge::Proved proved{bounds.low, bounds.high, share};
    const judge::Question<Real> asked{layout, sight, claim, proved, extra, start, stop, n_mean};
    const judge::Proof* proof = judge::proof_of(name);
    if (!proof) refuse("routine", name + " has no proof");
    run<Real>(proof->wide, proof->single, asked);
}

// Bring mixtures, a row each, into balls around the weights.
void pull(const std::string& name, Reals sizes, Reals weights, Table<double> mixtures) {
    const judge::Proof* proof = judge::proof_of(name);
    if (!proof || !proof->pull) refuse("routine", name + " mixes no kernels");
    for (Index r = 0; r < sizes.size(); ++r) proof->pull(weights, sizes[r], mixtures[r]);
}

}  // namespace

void bind_sweeps(nb::module_& module) {
    module.def("routines", routine_names);
    define(module, "check_functions", check_functions, "functions");
    define(module, "sweep", sweep<double>, sweep<float>, "name", "fixed", "by_pair", "start", "stop",
           "layout", "point", "memory", "found", "tol", "extra");
    define(module, "respond", respond<double>, respond<float>, "name", "by_pair", "start", "stop",
           "layout", "point", "memory", "question", "extra");
    define(module, "prove", prove<double>, prove<float>, "name", "start", "stop", "layout", "view",
           "claim", "bounds", "n_mean", "extra");
    define(module, "pull", pull, "name", "sizes[R]", "weights[N]", "mixtures[R N]");
}

}  // namespace drmdp
