#include "mixture.hpp"

#include "mixture_corners.hpp"
#include "mixture_smooth.hpp"
#include "run.hpp"

namespace drmdp {

// Nature's rows: mixtures of the kernels.
template <class Real>
static void respond(const Response<Real>& asked) {
    const Layout<Real>& layout = asked.layout;
    const Rows& rows = asked.rows;
    std::vector<double> part(layout.N), mass(layout.longest(asked.start, asked.stop));
    for (Index s = asked.start; s < asked.stop; ++s) {
        const View<const double> q = asked.memory.by_kernel[s];
        double total = 0.0;
        for (double own : q) total += own > 0.0 ? own : 0.0;
        const bool moves = total > 0.0 && total < INFINITE && asked.memory.by_action[s][0] > 0.0;
        const double share = moves ? rows.share_of(s, 0) : 0.0;
        for (Index i = 0; i < layout.N; ++i) {
            const double w = layout.weights[i];
            part[i] = share > 0.0 ? w + share * (std::max(q[i], 0.0) / total - w) : w;
        }
        for (Index a = 0; a < layout.A; ++a) {
            const double x = rows.weights[s][a];
            if (!(x > 0.0)) continue;
            const Index pair = s * layout.A + a, at = rows.entry_at[pair], K = layout.length(pair);
            std::fill_n(mass.begin(), K, 0.0);
            for (Index i = 0; i < layout.N; ++i) {
                Row<Real> row = layout.row(pair, i);
                if (sizeof(Real) == 4) row.scale = scale_of(row);
                for (Index j = 0; j < K; ++j) mass[j] += x * part[i] * row[j];
            }
            for (Index j = 0; j < K; ++j) {
                rows.states[at + j] = layout.indices[layout.first(pair) + j];
                rows.mass.set(at + j, mass[j]);
            }
        }
    }
}

template <class Answers>
static constexpr Routine routine(const char* name) {
    return {name, run<Mixtures<Answers, double>, double>, run<Mixtures<Answers, float>, float>,
            respond<double>, respond<float>, {0, true}};
}

extern const Routine MIX_KL_ROUTINE, MIX_BURG_ROUTINE, MIX_CHI2_ROUTINE, MIX_TV_ROUTINE, MIX_CVAR_ROUTINE,
    MIX_ANY_ROUTINE;
const Routine MIX_KL_ROUTINE = routine<SmoothMixtures<KlMixtures>>("mix_kl");
const Routine MIX_BURG_ROUTINE = routine<SmoothMixtures<BurgMixtures>>("mix_burg");
const Routine MIX_CHI2_ROUTINE = routine<SmoothMixtures<Chi2Mixtures>>("mix_chi2");
const Routine MIX_TV_ROUTINE = routine<CornerMixtures<Corners::Tv>>("mix_tv");
const Routine MIX_CVAR_ROUTINE = routine<CornerMixtures<Corners::Cvar>>("mix_cvar");
const Routine MIX_ANY_ROUTINE = routine<CornerMixtures<Corners::Any>>("mix_any");

}  // namespace drmdp
