#include "burg.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

extern const Routine BURG_ROUTINE;
const Routine BURG_ROUTINE = shared_budget_routine<Burg>("burg");

}  // namespace drmdp
