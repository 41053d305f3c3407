#include "kl.hpp"

#include "../judge/rows/kl.hpp"
#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

extern const Routine KL_ROUTINE;
const Routine KL_ROUTINE = shared_budget_routine<Kl, judge::Kl>("kl");

}  // namespace drmdp
