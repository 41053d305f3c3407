#include "burg.hpp"

#include "../judge/rows/burg.hpp"
#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

extern const Routine BURG_ROUTINE;
const Routine BURG_ROUTINE = shared_budget_routine<Burg, judge::Burg>("burg");

}  // namespace drmdp
