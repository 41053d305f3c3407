#include "mixture.hpp"

#include "mixture_corners.hpp"
#include "mixture_smooth.hpp"
#include "run.hpp"

namespace drmdp {

// Nature's rows: mixtures of the kernels.
template <class Real>
class MixtureNature {
public:
    explicit MixtureNature(const Response<Real>& asked) : asked_(asked) {}

    void open(const Written& to) {
        total_ = 0.0;
        for (double own : asked_.memory.by_kernel[to.s]) total_ += own > 0.0 ? own : 0.0;
    }
    void add(const Written& to, Index i, const Row<Real>& row, double, double) {
        const bool moves = total_ > 0.0 && total_ < INFINITE && asked_.memory.by_action[to.s][0] > 0.0;
        const double share = moves ? asked_.rows.share_of(to.s, 0) : 0.0, w = asked_.layout.weights[i];
        const double q = std::max(asked_.memory.by_kernel[to.s][i], 0.0) / total_;
        const double part = share > 0.0 ? share * q + (1.0 - share) * w : w;
        for (Index j = 0; j < row.size; ++j) to.mass[j] += asked_.rows.weights[to.s][to.a] * part * row[j];
    }

private:
    const Response<Real>& asked_;
    double total_ = 0.0;
};

template <class Answers>
static constexpr Routine mixture_routine(const char* name) {
    return {name, run<Mixtures<Answers, double>, double>, run<Mixtures<Answers, float>, float>,
            respond<MixtureNature<double>, double>, respond<MixtureNature<float>, float>, {0, true}};
}

const Routine MIX_KL_ROUTINE = mixture_routine<SmoothMixtures<KlMixtures>>("mix_kl");
const Routine MIX_BURG_ROUTINE = mixture_routine<SmoothMixtures<BurgMixtures>>("mix_burg");
const Routine MIX_CHI2_ROUTINE = mixture_routine<SmoothMixtures<Chi2Mixtures>>("mix_chi2");
const Routine MIX_TV_ROUTINE = mixture_routine<CornerMixtures<Corners::Tv>>("mix_tv");
const Routine MIX_CVAR_ROUTINE = mixture_routine<CornerMixtures<Corners::Cvar>>("mix_cvar");
const Routine MIX_ANY_ROUTINE = mixture_routine<CornerMixtures<Corners::Any>>("mix_any");

}  // namespace drmdp
