// A row model from outside (`../outside.hpp`), at a price or at a radius of its own.
#pragma once

#include <utility>
#include <vector>

#include "pair.hpp"

namespace drmdp {

class OutsideRow : public RowModel {
public:
    static constexpr bool POLYGON = true;

    explicit OutsideRow(const Extra& extra) : outside_(&extra.outside) {}

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        return pair.sum(t, [&](const Row<Real>& row) {
            z_.resize(row.size);
            const View<double> z(z_.data(), row.size);
            const Outside::Bent bent = outside_->bend(t, read(row), pair.u, z);
            double value = 0.0;
            for (Index j = 0; j < row.size; ++j) value += z[j] * pair.u[j];
            return Answer{t, outside_->measure({y_.data(), row.size}, z, bent.top, 0.0), value, bent.slope};
        });
    }

    template <class Real>
    std::pair<Answer, Answer> neighbours(const Pair<Real>&, const Answer&) const {
        return {};
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double size, const Order&,
                View<double> z) const {
        return {outside_->bend(size, read(row), u, z).top};
    }

    // What a row gains at a radius.
    template <class Real>
    double gain(const Row<Real>& row, View<const double> u, double radius) const {
        z_.resize(row.size);
        outside_->bend(radius, read(row), u, {z_.data(), row.size});
        double total = 0.0;
        for (Index j = 0; j < row.size; ++j) total += (z_[j] - y_[j]) * u[j];
        return total;
    }

private:
    template <class Real>
    View<const double> read(const Row<Real>& row) const {
        y_.resize(row.size);
        for (Index j = 0; j < row.size; ++j) y_[j] = row[j];
        return {y_.data(), row.size};
    }

    const Outside* outside_;
    mutable std::vector<double> y_, z_;
};

}  // namespace drmdp
