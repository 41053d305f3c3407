#include "l1_each.hpp"

#include "../judge/masses.hpp"
#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond(const Response<Real>& r) {
    MassWriter<Real> writer(r);
    for (Index s = r.start; s < r.stop; ++s) writer.write(s);
}

template <class Real>
static void prove(const Question<Real>& q) {
    judge::Masses<Real> judge(q.layout, q.sight, q.claim, q.extra, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

extern const Routine L1_EACH_ROUTINE;
const Routine L1_EACH_ROUTINE = {"l1_orders", run<L1Each<double>, double>, run<L1Each<float>, float>,
                                 respond<double>, respond<float>, prove<double>, prove<float>,
                                 {1, true, true}};

}  // namespace drmdp
