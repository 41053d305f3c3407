#include "burg.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

const Routine BURG_ROUTINE = shared_budget_routine<Burg>("burg");

}  // namespace drmdp
