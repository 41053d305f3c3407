#include "../judge/linf.hpp"
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

template <class Real>
static void prove(const Question<Real>& q) {
    judge::Linf<Real> judge(q.layout, q.sight, q.claim, q.extra, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

extern const Routine LINF_ROUTINE;
const Routine LINF_ROUTINE = {"linf", sweep<double>, sweep<float>, respond<double>, respond<float>,
                              prove<double>, prove<float>, {0, true}};

}  // namespace drmdp
