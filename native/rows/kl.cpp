#include "kl.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

const Routine KL_ROUTINE = shared_budget_routine<Kl>("kl");

}  // namespace drmdp
