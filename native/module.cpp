// The module that Python imports; arrays are checked in `bind/`, everything else knows nothing of Python.
#include "bind/bind.hpp"

NB_MODULE(_native, module) {
    drmdp::bind_sweeps(module);
}
