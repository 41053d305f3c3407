#include "each_row.hpp"
#include "linf_orders.hpp"
#include "run.hpp"

namespace drmdp {

template <class Real>
static void sweep(const Sweep<Real>& asked) {
    if (asked.extra.order < INFINITE) run<LinfOrders<Real>>(asked);
    else run<EachRow<LinfPair<Real>, Real>>(asked);
}

const Routine LINF_ROUTINE = {"linf", sweep<double>, sweep<float>, respond<LinfNature<double>, double>,
                              respond<LinfNature<float>, float>, {0, true, false, Behind::kernels, 1}};

}  // namespace drmdp
