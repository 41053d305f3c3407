#include "each_kernel.hpp"

#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond(const Response<Real>& r) {
    const auto mixture = [&](Index s, Index a, Index i) {
        return Mixture{r.memory.by_kernel[s][i] * r.memory.by_action[s][a], 0.0, 0.0};
    };
    write_rows<L2>(r.layout, r.point, r.extra, mixture, r.rows, r.start, r.stop);
}

extern const Routine EACH_KERNEL_ROUTINE;
const Routine EACH_KERNEL_ROUTINE = {"l2_orders",     run<EachKernel<double>, double>,
                                     run<EachKernel<float>, float>, respond<double>, respond<float>,   {0, true}};

}  // namespace drmdp
