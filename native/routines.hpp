// What Python calls, by name and for both precisions; `bind/` turns arrays into these arguments. Each
// routine works on the states start ... stop - 1 and writes to their places alone.
#pragma once

#include <string>
#include <vector>

#include "data.hpp"
#include "nature.hpp"

namespace drmdp {

// A sweep: minimise over the policy, or keep the one in found.policy (`fixed`), and let nature
// maximise. With `pairs` there is a budget for each action: layout, memory and of_pairs are those of
// the pairs, as states with one action.
template <class Real>
struct Sweep {
    const Layout<Real>& layout;
    const Point& point;
    const Memory& memory;
    const Found& found;
    const Extra& extra;
    Index start, stop, A;
    double tol;
    bool fixed;
    const Found* of_pairs = nullptr;
};

// What nature's rows have behind their listed entries: nothing that must be there, an entry for the top, or,
// where states are not listed, one for each kernel, or two for each entry and kernel (and lists are needed).
enum class Behind { nothing, top, kernels, targets };

// What a routine keeps in `Memory`, and what its rows need.
struct Keeps {
    Index of_pair = 0;       // numbers of a pair in by_row
    bool by_kernel = false;  // a number of each kernel in by_kernel
    bool by_row = false;     // of_pair numbers of each kernel
    Behind behind = Behind::nothing;
    Index prefixes = 0;      // prefix terms of each kernel, where states are not listed
};

// What can be done with one kind of set.
struct Routine {
    const char* name;
    void (*sweep)(const Sweep<double>&);
    void (*sweep_single)(const Sweep<float>&);
    void (*respond)(const Response<double>&);
    void (*respond_single)(const Response<float>&);
    Keeps keeps{};
    bool outside = false;  // its rows are functions from outside
};

// All of them, each in the file of its set.
extern const Routine L1_ROUTINE, TV_ROUTINE, L2_ROUTINE, KL_ROUTINE, CHI2_ROUTINE, BURG_ROUTINE,
    INTERVALS_ROUTINE, LINF_ROUTINE, EACH_KERNEL_ROUTINE, MIX_KL_ROUTINE, MIX_BURG_ROUTINE,
    MIX_CHI2_ROUTINE, MIX_TV_ROUTINE, MIX_CVAR_ROUTINE, MIX_ANY_ROUTINE, L1_EACH_ROUTINE,
    TRANSPORT_ROUTINE, TRANSPORT_EACH_ROUTINE, OUTSIDE_PRICE_ROUTINE, OUTSIDE_RADIUS_ROUTINE;

// Their names, and the one of a name; none if there is none.
std::vector<std::string> routine_names();
const Routine* routine_of(const std::string& name);

}  // namespace drmdp
