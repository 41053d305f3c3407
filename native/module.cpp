// The module that Python imports; arrays are checked in `bind/`, everything else knows nothing of Python.
#include "bind/bind.hpp"
#include "level.hpp"

NB_MODULE(DRMDP_MODULE, module) {
    if (!drmdp::has_level())
        throw nanobind::import_error(
            "drmdp was compiled for another processor, with instructions that this one does not have. "
            "Install it from its sources again on this one, or with DRMDP_LEVEL=x86-64-v2 in the "
            "environment for both: pip install --force-reinstall --no-deps --no-cache-dir .");
    drmdp::bind_numbers(module);
    drmdp::bind_sweeps(module);
    drmdp::bind_vectors(module);
    drmdp::bind_chains(module);
    drmdp::bind_events(module);
    drmdp::bind_prox(module);
}
