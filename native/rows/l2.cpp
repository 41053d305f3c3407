#include "l2.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

const Routine L2_ROUTINE = shared_budget_routine<L2>("l2", 2);

}  // namespace drmdp
