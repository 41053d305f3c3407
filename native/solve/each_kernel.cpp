#include "each_kernel.hpp"

#include "../judge/each_kernel.hpp"
#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond(const Response<Real>& r) {
    const auto mixture = [&](Index s, Index a, Index i) {
        return Mixture{r.memory.by_kernel[s][i] * r.memory.by_action[s][a], 0.0, 0.0};
    };
    write_rows<L2>(r.layout, r.point, r.extra, mixture, r.rows, r.start, r.stop);
}

template <class Real>
static void prove(const Question<Real>& q) {
    judge::EachKernel<Real> judge(q.layout, q.sight, q.claim, q.extra, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

extern const Routine EACH_KERNEL_ROUTINE;
const Routine EACH_KERNEL_ROUTINE = {"l2_orders",     run<EachKernel<double>, double>,
                                     run<EachKernel<float>, float>, respond<double>, respond<float>,
                                     prove<double>,   prove<float>,   {0, true}};

}  // namespace drmdp
