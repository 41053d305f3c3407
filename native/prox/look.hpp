// Means sum_i w_i y_i of an iterate, and how far it is from the data.
#pragma once

#include <string>

#include "state.hpp"

namespace drmdp::prox {

template <class Real>
class Look {
public:
    Look(const Layout<Real>& layout, View<const double> y, const std::string& norm, double order,
         Index start, Index stop)
        : layout_(layout), y_(y), sums_(norm == "l1"), squares_(norm == "l2"), order_(order),
          middle_(to_lanes(layout.longest(start, stop))), far_(layout.N) {}

    // `apart` is sum_i w_i d_i^p for order p = 1, 2, else every d_i.
    void read(Index s, View<double> mean, View<double> apart) {
        std::fill(far_.begin(), far_.end(), 0.0), std::fill(apart.begin(), apart.end(), 0.0);
        for (Index pair = s * layout_.A; pair < (s + 1) * layout_.A; ++pair) {
            std::fill(middle_.begin(), middle_.end(), 0.0);
            for (Index i = 0; i < layout_.N; ++i) add(pair, i);
            std::copy_n(middle_.begin(), layout_.length(pair), mean.begin() + layout_.first(pair));
        }
        for (Index i = 0; i < layout_.N; ++i) {
            const double size = squares_ && order_ != 2.0 ? std::sqrt(far_[i]) : far_[i];
            if (order_ == INFINITE) apart[i] = size;
            else apart[0] += layout_.weights[i] * size;
        }
    }

private:
    void add(Index pair, Index i) {
        struct Sums {
            Part total{}, square{}, most{};
        };
        const Row<Real> row = centre(layout_, pair, i);
        const Index at = layout_.N * layout_.first(pair) + i * row.size;
        const auto sums = row.template over<Sums>(
            [&](Sums& s, Part p, Index j) __attribute__((always_inline)) {
                const Part y = load_row(y_, at, j, row.size), e = y - p * row.scale, size = magnitude(e);
                store(middle_.data() + j, load(middle_.data() + j) + layout_.weights[i] * y);
                s.total += size, s.square += e * e, s.most = greater(size, s.most);
            });
        if (sums_ || squares_) far_[i] += sums.sum(sums_ ? &Sums::total : &Sums::square);
        else far_[i] = std::max(far_[i], sums.greatest(&Sums::most));
    }

    const Layout<Real>& layout_;
    View<const double> y_;
    bool sums_, squares_;
    double order_;
    std::vector<double> middle_, far_;
};

}  // namespace drmdp::prox
