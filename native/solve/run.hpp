// A routine: a solver run over a range of states, with one budget a state or one a pair, and nature's rows.
#pragma once

#include "../routines.hpp"
#include "by_pair.hpp"

namespace drmdp {

template <class Solver, class Real>
void run(const Sweep<Real>& sweep) {
    if (sweep.of_pairs) {
        ByPair<Solver, Real> solver(sweep.layout, sweep.point, sweep.extra, sweep.A, sweep.start,
                                    sweep.stop);
        for (Index s = sweep.start; s < sweep.stop; ++s) {
            if (sweep.fixed) solver.evaluate(s, sweep.tol, sweep.memory, *sweep.of_pairs, sweep.found);
            else solver.update(s, sweep.tol, sweep.memory, *sweep.of_pairs, sweep.found);
        }
        return;
    }
    Solver solver(sweep.layout, sweep.point, sweep.extra, sweep.start, sweep.stop);
    for (Index s = sweep.start; s < sweep.stop; ++s) {
        if (sweep.fixed) solver.evaluate(s, sweep.tol, sweep.memory, sweep.found);
        else solver.update(s, sweep.tol, sweep.memory, sweep.found);
    }
}

template <class Nature, class Real>
void respond(const Response<Real>& asked) {
    write_rows(asked, Nature(asked));
}

// The routine of a solver and a nature, each for both precisions.
template <template <class> class Solver, template <class> class Nature>
constexpr Routine routine(const char* name, Keeps keeps) {
    return {name, run<Solver<double>, double>, run<Solver<float>, float>, respond<Nature<double>, double>,
            respond<Nature<float>, float>, keeps};
}

}  // namespace drmdp
