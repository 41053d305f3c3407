#include "routines.hpp"

namespace drmdp {

extern const Routine L1_ROUTINE, TV_ROUTINE, L2_ROUTINE, KL_ROUTINE, CHI2_ROUTINE, BURG_ROUTINE,
    INTERVALS_ROUTINE, LINF_INF_ROUTINE;

const Routine* routine_of(const std::string& name) {
    static const Routine* const all[] = {&L1_ROUTINE, &TV_ROUTINE, &L2_ROUTINE,
                                         &KL_ROUTINE, &CHI2_ROUTINE, &BURG_ROUTINE,
                                         &INTERVALS_ROUTINE, &LINF_INF_ROUTINE};
    for (const Routine* routine : all)
        if (name == routine->name) return routine;
    return nullptr;
}

}  // namespace drmdp
