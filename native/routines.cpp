#include "routines.hpp"

namespace drmdp {

static const Routine* const ALL[] = {
    &L1_ROUTINE, &TV_ROUTINE, &L2_ROUTINE, &KL_ROUTINE, &CHI2_ROUTINE, &BURG_ROUTINE, &INTERVALS_ROUTINE, &LINF_ROUTINE,
    &MIX_KL_ROUTINE, &MIX_BURG_ROUTINE, &MIX_CHI2_ROUTINE, &MIX_TV_ROUTINE, &MIX_CVAR_ROUTINE, &MIX_ANY_ROUTINE,
    &EACH_KERNEL_ROUTINE, &L1_EACH_ROUTINE, &TRANSPORT_ROUTINE, &TRANSPORT_EACH_ROUTINE, &OUTSIDE_PRICE_ROUTINE,
    &OUTSIDE_RADIUS_ROUTINE};

const Routine* routine_of(const std::string& name) {
    for (const Routine* routine : ALL)
        if (name == routine->name) return routine;
    return nullptr;
}

std::vector<std::string> routine_names() {
    std::vector<std::string> names;
    for (const Routine* routine : ALL) names.push_back(routine->name);
    return names;
}

}  // namespace drmdp
