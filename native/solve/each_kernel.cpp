#include "each_kernel.hpp"

#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond_l2(const Response<Real>& r) {
    write_mixtures<L2>(r, [&](Index s, Index a, Index i) {
        return Mixture{r.memory.by_kernel[s][i] * r.memory.by_action[s][a], 0.0, 0.0};
    });
}

const Routine EACH_KERNEL_ROUTINE = {"l2_orders", run<EachKernel<double>, double>,
                                     run<EachKernel<float>, float>, respond_l2<double>, respond_l2<float>,
                                     {0, true, false, Behind::nothing, 1}};

}  // namespace drmdp
