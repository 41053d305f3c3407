// Transport of order 1 around the mean kernel, and of order infinity around each.
#include "run.hpp"
#include "transport_each.hpp"

namespace drmdp {

const Routine TRANSPORT_ROUTINE = {"transport", run<TransportEach<double>, double>, nullptr,
                                   respond<PlanNature<double>, double>, respond<PlanNature<float>, float>,
                                   {3, false, false, Behind::targets}};
const Routine TRANSPORT_EACH_ROUTINE =
    routine<TransportEach, PlanNature>("transport_each", {3, true, true, Behind::targets});

}  // namespace drmdp
