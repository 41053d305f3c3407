// The routine of a row model with one budget for all actions; a row model's own file makes it.
#pragma once

#include "run.hpp"
#include "shared_budget.hpp"

namespace drmdp {

template <class Model, class Real>
void respond_shared_budget(const Response<Real>& r) {
    write_mixtures<Model>(r, [&](Index s, Index a, Index) {
        const View<double> own = r.memory.by_row[s].part(3 * a, 3);
        return Mixture{own[0], own[1], own[2]};
    });
}

template <class Model>
constexpr Routine shared_budget_routine(const char* name, Index prefixes = 0) {
    return {name, run<SharedBudget<Model, double>, double>, run<SharedBudget<Model, float>, float>,
            respond_shared_budget<Model, double>, respond_shared_budget<Model, float>, 
            {3, false, false, Behind::nothing, prefixes}};
}

}  // namespace drmdp
