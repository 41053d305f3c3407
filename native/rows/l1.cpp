#include "l1.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

extern const Routine L1_ROUTINE;
const Routine L1_ROUTINE = shared_budget_routine<L1>("l1");
extern const Routine TV_ROUTINE;
const Routine TV_ROUTINE = shared_budget_routine<Tv>("tv");

}  // namespace drmdp
