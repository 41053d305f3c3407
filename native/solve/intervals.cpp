#include "intervals.hpp"

#include "each_row.hpp"
#include "run.hpp"

namespace drmdp {

extern const Routine INTERVALS_ROUTINE;
const Routine INTERVALS_ROUTINE = {"intervals", run<EachRow<IntervalRows, double>, double>, nullptr,
                                   respond<IntervalNature, double>, nullptr};

}  // namespace drmdp
