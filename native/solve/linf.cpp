#include "../judge/linf.hpp"
#include "linf_inf.hpp"
#include "run.hpp"

namespace drmdp {

template <class Real>
static void respond(const Response<Real>& r) {
    LinfWriter<Real> writer(r);
    for (Index s = r.start; s < r.stop; ++s) writer.write(s);
}

template <class Real>
static void prove(const Question<Real>& q) {
    judge::LinfInf<Real> judge(q.layout, q.sight, q.claim, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

extern const Routine LINF_INF_ROUTINE;
const Routine LINF_INF_ROUTINE = {"linf_inf",     run<LinfInf<double>, double>,
                                  run<LinfInf<float>, float>,
                                  respond<double>, respond<float>, prove<double>, prove<float>,
                                  {0, true}};

}  // namespace drmdp
