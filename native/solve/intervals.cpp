#include "intervals.hpp"

#include "../judge/intervals.hpp"
#include "run.hpp"

namespace drmdp {

static void respond(const Response<double>& r) {
    Intervals nature(r.layout, r.point, r.extra, r.start, r.stop);
    for (Index s = r.start; s < r.stop; ++s) nature.write(s, r.rows);
}

static void prove(const Question<double>& q) {
    judge::Intervals judge(q.layout, q.sight, q.claim, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

extern const Routine INTERVALS_ROUTINE;
const Routine INTERVALS_ROUTINE = {"intervals", run<Intervals, double>, nullptr, respond, nullptr,
                                   prove,       nullptr};

}  // namespace drmdp
