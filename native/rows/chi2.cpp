#include "chi2.hpp"

#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

const Routine CHI2_ROUTINE = shared_budget_routine<Chi2>("chi2");

}  // namespace drmdp
