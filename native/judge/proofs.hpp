// The proofs, by name and for both precisions.
#pragma once

#include <string>

#include "sums.hpp"

namespace drmdp::judge {

struct Proof {
    const char* name;
    void (*wide)(const Question<double>&);
    void (*single)(const Question<float>&);
    // Brings a mixture of the kernels into a ball of some size around the weights; or none.
    void (*pull)(View<const double> weights, double size, View<double> mixture) = nullptr;
};

// That of a name; none if there is none.
const Proof* proof_of(const std::string& name);

}  // namespace drmdp::judge
