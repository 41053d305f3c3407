// Transport of order 1 around the mean kernel, and of order infinity around each.
#include "../rows/transport.hpp"
#include "run.hpp"
#include "transport_each.hpp"

namespace drmdp {

namespace {

// Nature's rows: the mass of source j goes to its targets at t1 and t2, in the shares 1 - f and f. A plan is
// the same for all kernels where the mean has one, so that single kernels are moved by it too. Targets that
// a pair does not list are entries of their own, two for each source.
template <class Real>
class Plans {
public:
    explicit Plans(const Response<Real>& asked)
        : asked_(asked), state_(asked.layout, asked.start, asked.stop) {}

    void write(Index s) {
        if (!state_.open(asked_.layout, asked_.point, s)) return;
        for (Index a = 0; a < asked_.layout.A; ++a)
            if (asked_.rows.weights[s][a] > 0.0) write(s, a);
    }

private:
    void write(Index s, Index a) {
        const Layout<Real>& layout = asked_.layout;
        const Rows& rows = asked_.rows;
        const Index pair = s * layout.A + a, K = layout.length(pair), at = rows.entry_at[pair];
        const Index entries = rows.entry_at[pair + 1] - at;
        const View<const double> all = asked_.memory.by_row[s], own = state_.of(a).part(0, K);
        const View<const double> u = layout.common ? asked_.point.common : own;
        const Index width = all.size() / layout.A;
        mass_.assign(entries, 0.0);
        for (Index j = 0; j < K; ++j) rows.states[at + j] = layout.indices[layout.first(pair) + j];
        for (Index i = 0; i < layout.N; ++i) {
            Row<Real> row = layout.row(pair, i);
            if (sizeof(Real) == 4) row.scale = scale_of(row);
            const View<const double> mixture = all.part(a * width + (width > 3 ? 3 * i : 0), 3);
            const double share = rows.share_of(s, i), x = rows.weights[s][a] * layout.weights[i];
            for (Index n = 0; n < 2 * K; ++n) {
                const Index j = n / 2, side = n % 2;
                const double mass = x * row[j] * (side ? mixture[2] : 1.0 - mixture[2]);
                const double moved = mixture[side] > 0.0 ? mass * share : 0.0;
                mass_[j] += mass - moved;
                if (!(moved > 0.0)) continue;
                const Index k = target(asked_.extra.list_of[layout.first(pair) + j], mixture[side], u);
                const std::int32_t to = asked_.extra.list_target[k];
                Index place = j;  // where mass stays if its list names nothing
                if (asked_.extra.stake(k, u) > -INFINITE) place = entries > K ? K + 2 * i * K + n : to;
                if (place >= K) rows.states[at + place] = to;
                mass_[place] += moved;
            }
        }
        for (Index j = 0; j < entries; ++j) rows.mass.set(at + j, mass_[j]);
    }

    // The place of a list's best target at t; at infinity the nearest of the highest stake. As u <= 0, no target
    // farther than -best can win.
    Index target(Index list, double t, View<const double> u) const {
        const Extra& lists = asked_.extra;
        Index at = lists.list_at[list];
        double best = -INFINITE;
        for (Index k = at; k < lists.list_at[list + 1]; ++k) {
            const double x = lists.stake(k, u);
            if (t < INFINITE && -lists.list_cost[k] < best) break;
            const double score = t < INFINITE ? t * x - lists.list_cost[k] : x;
            if (score > best || (score == best && x > lists.stake(at, u))) best = score, at = k;
        }
        return at;
    }

    const Response<Real>& asked_;
    Stakes state_;
    std::vector<double> mass_;
};

template <class Real>
void respond(const Response<Real>& asked) {
    Plans<Real> plans(asked);
    for (Index s = asked.start; s < asked.stop; ++s) plans.write(s);
}

}  // namespace

extern const Routine TRANSPORT_ROUTINE;
const Routine TRANSPORT_ROUTINE{"transport", run<SharedBudget<Transport, double>, double>, nullptr,
                                respond<double>, respond<float>, {3, false}};
extern const Routine TRANSPORT_EACH_ROUTINE;
const Routine TRANSPORT_EACH_ROUTINE{"transport_each", run<TransportEach<double>, double>,
                                     run<TransportEach<float>, float>, respond<double>, respond<float>, {3, true, true}};

}  // namespace drmdp
