#include "l1.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

const Routine L1_ROUTINE = shared_budget_routine<L1>("l1");
const Routine TV_ROUTINE = shared_budget_routine<Tv>("tv");

}  // namespace drmdp
