#include "l1_each.hpp"

#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond(const Response<Real>& r) {
    MassWriter<Real> writer(r);
    for (Index s = r.start; s < r.stop; ++s) writer.write(s);
}

extern const Routine L1_EACH_ROUTINE;
const Routine L1_EACH_ROUTINE = {"l1_orders", run<L1Each<double>, double>, run<L1Each<float>, float>,
                                 respond<double>, respond<float>,
                                 {1, true, true}};

}  // namespace drmdp
