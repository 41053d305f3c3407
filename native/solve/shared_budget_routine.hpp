// The routine of a row model with one budget for all actions; a row model's own file makes it.
#pragma once

#include "../judge/shared_budget.hpp"
#include "run.hpp"
#include "shared_budget.hpp"

namespace drmdp {

template <class Model, class Real>
void respond_shared_budget(const Response<Real>& r) {
    RowWriter<Model, Real> writer(r.layout, r.point, r.memory, r.rows, r.start, r.stop);
    for (Index s = r.start; s < r.stop; ++s) writer.write(s);
}

template <class RowProof, class Real>
void prove_shared_budget(const Question<Real>& q) {
    judge::SharedBudget<RowProof, Real> judge(q.layout, q.sight, q.claim, q.n_mean, q.start, q.stop);
    for (Index s = q.start; s < q.stop; ++s) judge.prove(s, q.proved);
}

template <class Model, class RowProof>
constexpr Routine shared_budget_routine(const char* name) {
    return {name, run<SharedBudget<Model, double>, double>, run<SharedBudget<Model, float>, float>,
            respond_shared_budget<Model, double>, respond_shared_budget<Model, float>,
            prove_shared_budget<RowProof, double>, prove_shared_budget<RowProof, float>, {3, false}};
}

}  // namespace drmdp
