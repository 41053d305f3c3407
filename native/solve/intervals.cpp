#include "intervals.hpp"

#include "run.hpp"

namespace drmdp {

static void respond(const Response<double>& r) {
    Intervals nature(r.layout, r.point, r.extra, r.start, r.stop);
    for (Index s = r.start; s < r.stop; ++s) nature.write(s, r.rows);
}

extern const Routine INTERVALS_ROUTINE;
const Routine INTERVALS_ROUTINE = {"intervals", run<Intervals, double>, nullptr, respond, nullptr};

}  // namespace drmdp
