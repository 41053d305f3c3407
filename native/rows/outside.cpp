#include "outside.hpp"

#include "../solve/each_row.hpp"
#include "../solve/shared_budget_routine.hpp"

namespace drmdp {

namespace {

// Rows at the radius that each has for itself.
template <class Real>
class OutsideRows {
public:
    OutsideRows(const Layout<Real>& layout, const Point&, const Extra& extra, Index, Index)
        : layout_(layout), model_(extra) {}

    static double least(const Stakes& state, Index a) { return state.value(a); }

    double bent(Stakes& state, Index s, Index a, double, double&) const {
        double value = state.value(a);
        const double r = layout_.radius[s];
        for (Index i = 0; r > 0.0 && i < layout_.N; ++i)
            value += layout_.weights[i] * model_.gain(row_of(layout_, s * layout_.A + a, i), state.of(a), r);
        return value;
    }

private:
    const Layout<Real>& layout_;
    OutsideRow model_;
};

template <class Real>
void respond_outside(const Response<Real>& r) {
    write_mixtures<OutsideRow>(
        r, [&](Index s, Index, Index i) { return Mixture{r.memory.by_kernel[s][i], 0.0, 0.0}; });
}

constexpr Routine from_outside(Routine routine) {
    routine.outside = true;
    return routine;
}

}  // namespace

const Routine OUTSIDE_PRICE_ROUTINE =
    from_outside(shared_budget_routine<OutsideRow>("outside_price"));
const Routine OUTSIDE_RADIUS_ROUTINE =
    from_outside({"outside_radius", run<EachRow<OutsideRows<double>, double>, double>,
                  run<EachRow<OutsideRows<float>, float>, float>, respond_outside<double>, respond_outside<float>,
                  {0, true}});

}  // namespace drmdp
