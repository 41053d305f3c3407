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

    double bent(Index pair, View<const double> u, double radius, double value, double) const {
        for (Index i = 0; i < layout_.N; ++i) {
            Row<Real> row = layout_.row(pair, i);
            if (sizeof(Real) == 4) row.scale = scale_of(row);
            value += layout_.weights[i] * model_.gain(row, u, radius);
        }
        return value;
    }

private:
    const Layout<Real>& layout_;
    OutsideRow model_;
};

template <class Real>
void respond(const Response<Real>& r) {
    const auto mixture = [&](Index s, Index, Index i) { return Mixture{r.memory.by_kernel[s][i], 0.0, 0.0}; };
    write_rows<OutsideRow>(r.layout, r.point, r.extra, mixture, r.rows, r.start, r.stop);
}

constexpr Routine from_outside(Routine routine) {
    routine.outside = true;
    return routine;
}

}  // namespace

extern const Routine OUTSIDE_PRICE_ROUTINE, OUTSIDE_RADIUS_ROUTINE;
const Routine OUTSIDE_PRICE_ROUTINE =
    from_outside(shared_budget_routine<OutsideRow>("outside_price"));
const Routine OUTSIDE_RADIUS_ROUTINE =
    from_outside({"outside_radius", run<EachRow<OutsideRows<double>, double>, double>,
                  run<EachRow<OutsideRows<float>, float>, float>, respond<double>, respond<float>,
                  {0, true}});

}  // namespace drmdp
