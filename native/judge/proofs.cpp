#include "proofs.hpp"

#include "mixture.hpp"
#include "rows/intervals.hpp"
#include "rows/l1.hpp"
#include "rows/l2.hpp"
#include "rows/linf.hpp"
#include "rows/outside.hpp"
#include "rows/transport.hpp"

namespace drmdp::judge {

template <template <class> class Model>
constexpr Proof orders(const char* name) {
    return {name, prove<Ball<Model<double>, double>, double>, prove<Ball<Model<float>, float>, float>};
}
template <class Row>
constexpr Proof shared(const char* name) {
    return {name, prove<Ball<Shared<Row, double>, double>, double>, prove<Ball<Shared<Row, float>, float>, float>};
}
template <class Kind>
constexpr Proof mixtures(const char* name) {
    return {name, prove<Mixtures<Kind, double>, double>, prove<Mixtures<Kind, float>, float>, pull<Kind>};
}

static constexpr Proof ALL[] = {
    shared<L1>("l1"), shared<Tv>("tv"), shared<L2>("l2"), shared<Kl>("kl"), shared<Chi2>("chi2"), shared<Burg>("burg"),
    shared<Transport>("transport"), shared<Transport>("transport_each"), shared<OutsideRow>("outside_price"),
    orders<Masses>("l1_orders"), orders<L2Orders>("l2_orders"), orders<Linf>("linf"),
    orders<OutsideRadius>("outside_radius"), {"intervals", prove<Ball<Intervals, double>, double>, nullptr},
    mixtures<SmoothKind<Kl>>("mix_kl"), mixtures<SmoothKind<Burg>>("mix_burg"), mixtures<SmoothKind<Chi2>>("mix_chi2"),
    mixtures<TvKind>("mix_tv"), mixtures<CvarKind>("mix_cvar"), mixtures<AnyKind>("mix_any"),
};

const Proof* proof_of(const std::string& name) {
    for (const Proof& proof : ALL)
        if (name == proof.name) return &proof;
    return nullptr;
}

}  // namespace drmdp::judge
