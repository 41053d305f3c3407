// The proof of balls. Rows z_i of kernel i, one for each action, cost d_i(z_i), which is convex and 0 at the
// data, and nature has (sum_i w_i d_i^p)^(1/p) <= B or, for p = infinity, d_i <= B for every i.
//
// **From above.** For any prices lambda_i >= 0, Hoelder's inequality with |lambda| = (sum_i w_i lambda_i^q)^(1/q),
// 1/p + 1/q = 1, says
//
//     sum_a x_a sum_i w_i z_ia.u_a <= U = sum_i w_i B_i + B |lambda|,
//     B_i >= max_z sum_a x_a z_a.u_a - lambda_i d_i(z),
//
// and B_i = 0 will do where there is no price. Where costs of rows C are added up, lambda_i = 1/tau_i and
// B_i = sum_a h_ia(tau_i x_a)/tau_i, with bounds on the conjugates h_ia(t) = max_z t z.u_a - C_ia(z). For p = infinity
// each kernel is bounded on its own, by 0 at most.
//
// **From below.** The value of rows built anew from a few numbers that are handed over, whose costs are measured: the
// share min(1, B/D) of the way from the data is allowed, D the norm of their costs, or for p = infinity d_i. Actions
// that nature leaves alone have the mean kernel. Around the mean kernel the one row of the mean stands for all.
//
// **Rounding.** Adding up N rows and A actions takes (N + A + 8) e times what is added, and B and tau some e more. So
// the share is off by (N + A + 16) e, relatively, and the value that it says, which moves by 1 at most, by as much.
// Norms are those of `norms.hpp`.
//
// A model of a set is an object with
//
//     open(s)               a state; what it remembers of rows of others is forgotten
//     bends(a)              whether nature moves rows of an action
//     measure(row, a, i)    worth: at most the value of the row that is claimed;
//                           cost: at least what it costs, infinite where it is nothing allowed
//     price(i)              tau_i, 0 if none is claimed
//     dual(row, t, more)    >= h(t), by weak duality at a threshold of its own, margin included
//     budget(radius), order(q)
//     FAINT                 radii below move nothing that L counts
//
// and what `Additive` says of it. Any 0 < tau < infinity is a price, and a wrong one gives a poor bound, not a
// false one.
#pragma once

#include "norms.hpp"

namespace drmdp::judge {

struct Measured {
    double worth, cost;
};

// A bound on a row's part of B_i tau_i and, for l2, of (lambda_i tau_i)^2.
struct Priced {
    double gain, square = 0.0;
};
// B_i, the sizes of what it is made of, and lambda_i.
struct Bound {
    double gain = 0.0, size = 0.0, price = 0.0;
};

// Costs of rows are added up, and there is a price for them.
struct Additive {
    static constexpr bool FREE = false;    // nature moves without a budget
    static constexpr bool ALONE = false;   // every row is bounded by itself, and costs as much as its kernel may
    static constexpr bool SQUARE = false;  // d_i is the root of twice the sum of the costs
    static constexpr bool JOINT = false;   // all rows of a kernel are bounded at once: `bound(i, x)`
    static constexpr double FAINT = 0.0;

    template <class Question>
    static double order(const Question& q) { return q.extra.order; }
};

template <class Model, class Real>
class Ball {
public:
    explicit Ball(const Question<Real>& q)
        : q_(q), A_(q.layout.A), N_(q.layout.N), order_(Model::order(q)), state_(q), model_(q), far_(N_),
          price_(N_), still_(A_ * N_), moved_(A_ * N_), rows_(N_) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        s_ = s, budget_ = Model::budget(q_.layout.radius[s]);
        model_.open(s);
        std::fill(far_.begin(), far_.end(), 0.0);
        for (Index i = 0; i < N_; ++i) rows_[i] = {0.0, 0.0, 0.0}, price_[i] = priced() ? model_.price(i) : 0.0;
        for (Index a = 0; a < A_; ++a)
            if (is_seen(a)) visit(a);
        share(proved.share[s]);
        for (Index a = 0; a < A_; ++a)
            if (q_.layout.available[s * A_ + a])
                state_.worth[a] = is_seen(a) ? worth(a, proved.share[s]) : state_.mean_worth(a, n_mean());
        state_.close(std::min(priced() ? above() : still(), 0.0), q_.claim, proved);
    }

private:
    Index n_mean() const { return std::max(N_, q_.n_mean); }
    bool priced() const { return Model::FREE || budget_ > 0.0; }
    double x(Index a) const { return q_.claim.policy[s_][a]; }
    bool is_seen(Index a) const { return q_.layout.available[s_ * A_ + a] && (x(a) > 0.0 || model_.bends(a)); }

    void visit(Index a) {
        for (Index i = 0; i < N_; ++i) {
            const SeenRow<Real> row = state_.row(a, i, q_.n_mean);
            const Index k = a * N_ + i;
            still_[k] = moved_[k] = row.below();
            if (model_.bends(a)) {
                const Measured bent = model_.measure(row, a, i);
                moved_[k] = bent.worth;
                far_[i] = Model::ALONE || Model::JOINT ? std::max(far_[i], bent.cost) : far_[i] + bent.cost;
            }
            if constexpr (!Model::JOINT) {
                if (!(x(a) > 0.0 && price_[i] > 0.0)) continue;
                const Priced own = model_.dual(row, Model::ALONE ? q_.layout.radius[s_] : price_[i] * x(a), double(A_));
                const double gain = Model::ALONE ? x(a) * std::min(own.gain, 0.0) : own.gain;
                rows_[i].gain += gain, rows_[i].size += std::fabs(gain), rows_[i].price += own.square;
            }
        }
    }

    // Share of the move of each kernel that is surely in the ball.
    void share(View<double> shares) {
        const bool faint = q_.layout.radius[s_] < Model::FAINT;
        const double most = faint ? 0.0 : budget_;
        for (double& own : far_) own = Model::SQUARE ? std::sqrt(2.0 * own) : own;
        const double all = order_ < INFINITE ? norm_above(order_, q_.layout.weights, far_) : 0.0;
        for (Index i = 0; i < shares.size(); ++i) {
            const double far = order_ < INFINITE ? all : far_[std::min(i, N_ - 1)];
            shares[i] = far <= most ? 1.0 : far < INFINITE && most > 0.0 ? most / far : 0.0;
        }
    }

    double worth(Index a, View<const double> shares) const {
        double total = -double(N_ + A_ + 32) * EPSILON;
        for (Index i = 0; i < N_; ++i) {
            const double still = still_[a * N_ + i], moved = moved_[a * N_ + i];
            total += q_.layout.weights[i] * (shares[i] > 0.0 ? still + shares[i] * (moved - still) : still);
        }
        return total;
    }

    // B_i and lambda_i.
    Bound bound(Index i) {
        if constexpr (Model::JOINT) return model_.bound(i, q_.claim.policy[s_]);
        const Bound& own = rows_[i];
        const double tau = price_[i];
        if (!(tau > 0.0 && own.gain < INFINITE)) return {};
        const double price = Model::SQUARE ? std::sqrt(own.price) : Model::ALONE ? 0.0 : 1.0;
        return {own.gain / tau, own.size / tau, price / tau};
    }

    // Upper bound on sum_a x_a sum_i w_i z_ia.u_a.
    double above() {
        double total = 0.0, size = 0.0;
        for (Index i = 0; i < N_; ++i) {
            const double w = q_.layout.weights[i];
            const Bound own = bound(i);
            const double paid = order_ < INFINITE ? 0.0 : budget_ * own.price;
            price_[i] = own.price;
            total += w * (order_ < INFINITE ? own.gain : std::min(own.gain + paid, 0.0));
            size += w * (own.size + paid);
        }
        double paid = 0.0;
        if (order_ < INFINITE) paid = budget_ * norm_above(conjugate(order_), q_.layout.weights, price_);
        return total + paid + double(N_ + A_ + 16) * EPSILON * (size + paid);
    }

    // The same where nature has no room.
    double still() {
        double total = 0.0;
        for (Index a = 0; a < A_; ++a) {
            if (!(x(a) > 0.0)) continue;
            const SeenRow<double> row = state_.mean_row(a);
            total += x(a) * (1.0 - 4.0 * double(row.K + n_mean() + 8) * EPSILON) * row.worth();
        }
        return total;
    }

    const Question<Real>& q_;
    Index A_, N_, s_ = 0;
    double order_, budget_ = 0.0;
    State<Real> state_;
    Model model_;
    std::vector<double> far_, price_;    // (N) d, tau
    std::vector<double> still_, moved_;  // (A, N) worths
    std::vector<Bound> rows_;            // (N) B tau and (lambda tau)^2
};

// Rows by mixtures of what is best at two multipliers, and one price for all of a state, or one a kernel.
template <class Row, class Real>
class Shared : public Row {
public:
    explicit Shared(const Question<Real>& q)
        : Row(q.extra, q.sight, q.layout.unlisted, q.layout.longest(q.start, q.stop)), q_(q) {}

    void open(Index s) { s_ = s, Row::open_state(); }
    bool bends(Index a) const {
        const View<const double> own = mixtures(a);
        for (Index k = 0; k < own.size(); k += 3)
            if (own[k] > 0.0 || own[k + 1] > 0.0) return true;
        return false;
    }
    double price(Index i) const {
        double total = 0.0;
        for (Index a = 0; a < q_.layout.A; ++a)
            if (q_.claim.policy[s_][a] > 0.0 && q_.claim.by_action[s_][a] > 0.0) total += q_.claim.by_action[s_][a];
        if (Row::order(q_) == INFINITE) total *= std::max(q_.claim.by_kernel[s_][i], 0.0);
        if (Row::FREE && !(q_.layout.radius[s_] > 0.0)) return 1e-150;  // only moves that cost nothing are made
        return total > 0.0 && total < 1e200 ? total : 0.0;
    }
    Measured measure(const SeenRow<Real>& row, Index a, Index i) {
        const View<const double> own = mixtures(a);
        return Row::mixed(row, own.part(own.size() > 3 ? 3 * i : 0, 3));
    }

private:
    View<const double> mixtures(Index a) const {
        const View<const double> all = q_.claim.by_row[s_];
        const Index width = all.size() / q_.layout.A;
        return all.part(a * width, width);
    }

    const Question<Real>& q_;
    Index s_ = 0;
};

}  // namespace drmdp::judge
