#include "intervals.hpp"

#include "each_row.hpp"
#include "run.hpp"

namespace drmdp {

const Routine INTERVALS_ROUTINE = {"intervals", run<EachRow<IntervalRows, double>, double>, nullptr,
                                   respond<IntervalNature, double>, nullptr};

}  // namespace drmdp
