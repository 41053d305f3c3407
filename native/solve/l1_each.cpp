#include "l1_each.hpp"

#include "run.hpp"

namespace drmdp {

extern const Routine L1_EACH_ROUTINE;
const Routine L1_EACH_ROUTINE = {"l1_each", run<L1Each<double>, double>, run<L1Each<float>, float>,
                                 nullptr, nullptr, nullptr, nullptr, {1, true, true}};

}  // namespace drmdp
