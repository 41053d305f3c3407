// Row models from outside: three functions by their addresses. `size` is a price t of cost, or a radius
// r that every row has for itself; y is a row of K probabilities, u their stakes in [-1, 0], and nature
// always has a next state of stake 0, the top, listed or not.
//
//     row(size, y, u, K, z, more)    writes the row z of the greatest t z.u - C(z | y), or of the greatest
//                                    z.u with C <= r, and the slope d(z.u)/dt to more[0], or leaves it
//                                    0; returns what a top has that is not listed
//     bound(size, y, u, K, off)      at least that maximum, whatever rounding does
//     cost(y, z, K, top, off)        at least C(z | y), top being what z has at a top that is not listed
//
// C is convex, 0 at y and nowhere else. Probabilities are off by `off` e, relatively. A function may take
// a pointer to its data for its last argument. Whoever is called without the interpreter's lock, takes it.
#pragma once

#include <cmath>
#include <vector>

#include "views.hpp"

namespace drmdp {

template <class... Arguments>
struct Function {
    void* address = nullptr;
    void* data = nullptr;
    bool takes_data = false;

    double operator()(Arguments... given) const {
        if (takes_data) return reinterpret_cast<double (*)(Arguments..., void*)>(address)(given..., data);
        return reinterpret_cast<double (*)(Arguments...)>(address)(given...);
    }
};

// What a function did that it must not do.
struct Fault {
    const char *function = nullptr, *expected = nullptr;
    double size = 0.0, got = 0.0;
    std::vector<double> y{}, u{};  // u or z
};

struct Outside {
    static constexpr double LARGEST = 1e14;  // no size is larger
    static constexpr double SURE = 1e-12, NEAR = 1e-6;

    Function<double, const double*, const double*, Index, double*, double*> row;
    Function<double, const double*, const double*, Index, double> bound;
    Function<const double*, const double*, Index, double, double> cost;
    mutable Fault fault;  // the first one; from then on every row stays as it is

    struct Bent {
        double top, slope;
    };
    // Write a row; that of the data if something is wrong with it.
    Bent bend(double size, View<const double> y, View<const double> u, View<double> z) const {
        Bent bent{0.0, 0.0};
        for (double& own : z) own = NOT_A_NUMBER;
        if (!fault.function)
            bent.top = row(size < LARGEST ? size : LARGEST, y.data(), u.data(), y.size(), z.data(), &bent.slope);
        double mass = bent.top, least = bent.top;
        for (const double own : z) mass += own, least = own < least ? own : least;
        if (least >= 0.0 && std::fabs(mass - 1.0) <= NEAR && bent.slope >= 0.0 && bent.slope < INFINITE)
            return bent;
        refuse({"row", "probabilities that add up to 1, and a slope from 0 on", size,
                !(least >= 0.0) ? least : std::fabs(mass - 1.0) <= NEAR ? bent.slope : mass}, y, u);
        for (Index j = 0; j < y.size(); ++j) z[j] = y[j];
        return {0.0, 0.0};
    }

    // What a row costs at least; 0 if something is wrong with that.
    double measure(View<const double> y, View<const double> z, double top, double off) const {
        if (fault.function) return 0.0;
        const double found = cost(y.data(), z.data(), y.size(), top, off);
        double far = top;
        for (Index j = 0; j < y.size(); ++j) far += std::fabs(z[j] - y[j]);
        if (!(found >= 0.0) || (found == 0.0 && far > NEAR))
            refuse({"cost", "0 at the data and more elsewhere", top, found}, y, z);
        return found;
    }

    void refuse(const Fault& found, View<const double> y, View<const double> u) const {
        if (fault.function) return;
        fault = found;
        fault.y.assign(y.begin(), y.end()), fault.u.assign(u.begin(), u.begin() + y.size());
    }
};

}  // namespace drmdp
