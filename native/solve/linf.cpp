#include "each_row.hpp"
#include "linf_orders.hpp"
#include "run.hpp"

namespace drmdp {

template <class Real>
static void sweep(const Sweep<Real>& asked) {
    if (asked.extra.order < INFINITE) run<LinfOrders<Real>>(asked);
    else run<EachRow<LinfPair<Real>, Real>>(asked);
}

template <class Real>
static void respond(const Response<Real>& r) {
    LinfWriter<Real> writer(r);
    for (Index s = r.start; s < r.stop; ++s) writer.write(s);
}

extern const Routine LINF_ROUTINE;
const Routine LINF_ROUTINE = {"linf", sweep<double>, sweep<float>, respond<double>, respond<float>, {0, true}};

}  // namespace drmdp
