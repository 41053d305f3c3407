// Groups of routines, each bound in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace drmdp {

void bind_numbers(nanobind::module_& module);
void bind_sweeps(nanobind::module_& module);
void bind_vectors(nanobind::module_& module);
void bind_chains(nanobind::module_& module);
void bind_events(nanobind::module_& module);
void bind_prox(nanobind::module_& module);

}  // namespace drmdp
