// A solver run over a range of states, with one budget a state or one a pair.
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

}  // namespace drmdp
