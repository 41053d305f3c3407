// A row model from outside (`../outside.hpp`), at a price or at a radius of its own.
#pragma once

#include <utility>
#include <vector>

#include "pair.hpp"

namespace drmdp {

class OutsideRow {
public:
    static constexpr bool POLYGON = true, VERTICES = false;
    static constexpr double PADDING = 0.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{0, 0};

    explicit OutsideRow(const Extra& extra) : outside_(&extra.outside) {}

    static double budget(double radius) { return radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        Answer answer{t, 0.0, 0.0, 0.0};
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            z_.resize(row.size);
            const View<double> z(z_.data(), row.size);
            const Outside::Bent bent = outside_->bend(t, read(row), pair.u, z);
            for (Index j = 0; j < row.size; ++j) answer.value += pair.weights[i] * z[j] * pair.u[j];
            answer.cost += pair.weights[i] * outside_->measure({y_.data(), row.size}, z, bent.top, 0.0);
            answer.slope += pair.weights[i] * bent.slope;
        }
        return answer;
    }

    template <class Real>
    Answer saturated(const Pair<Real>& pair) const {
        Answer answer = response(pair, LARGEST);
        answer.t = INFINITE, answer.slope = 0.0;
        return answer;
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
