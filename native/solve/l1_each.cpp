#include "l1_each.hpp"

#include "run.hpp"

namespace drmdp {

const Routine L1_EACH_ROUTINE = routine<L1Each, L1Nature>("l1_orders", {1, true, true, Behind::top});

}  // namespace drmdp
