// A linear program whose columns come in groups, one of which is mixed from each:
//
//     max g   such that   g <= head_a + sum_c l_c gain_ca  (price x_a),    sum_c l_c cost_cr <= budget_r
//             (price m_r),   sum_{c in group} l_c = 1 for every group,   l >= 0.
//
// The simplex method with generalised upper bounds: every group has a key column, whose share is what
// the others of its group leave. The basis W has a row for each budget and action alone; it holds g,
// slacks, and columns less the key of their group. Shares are W^-1 (right-hand side less all keys),
// prices are the row of g in W^-1. A key that has to leave changes places with a column of its group in
// the basis: that row of W^-1 becomes minus the sum of the rows of its group. W^-1 is kept explicitly,
// changed by one row operation a pivot, and made anew each FRESH pivots.
//
// Heads are raised by (a + 1) `tie`/n, so that g rises with every pivot; in the second half of the pivots
// that are allowed, the first column that gains enters. A column that cannot is put aside. Columns may be
// added between two programs; the basis stays. Behind the numbers of a program a column has some of its owner.
//
// A program begins with slacks for its basis, or with columns that exchange amounts between rows whose shares
// are not negative: of the two columns of an exchange the one that is needed.
#pragma once

#include <algorithm>
#include <vector>

#include "elimination.hpp"

namespace drmdp {

class Master {
public:
    // Work space for so many rows and groups, and columns with so many numbers of their owner.
    Master(Index rows, Index groups, Index owned)
        : rows_(rows), stride_(rows + owned), shares_(groups), falls_(groups), key_(groups),
          inverse_(rows * rows), work_(2 * rows * rows), right_(rows), less_(rows), level_(rows),
          price_(rows), along_(rows), kind_(rows) {}

    void begin(Index budgets, Index actions) {
        R_ = budgets, d_ = budgets + actions;
        columns_.clear(), group_.clear(), place_.clear(), next_ = 0;
        std::fill(key_.begin(), key_.end(), Index(-1));
    }
    // A new column, to be filled: costs of the budgets, then the gains of the actions with their signs
    // turned. The first one of a group is its key.
    View<double> add(Index group) {
        const Index column = size();
        group_.push_back(group), place_.push_back(key_[group] < 0 ? KEY : OUT);
        if (key_[group] < 0) key_[group] = column;
        columns_.resize(columns_.size() + stride_);
        return {columns_.data() + column * stride_, d_};
    }
    // Forget the last column again, which is not in use.
    void drop_last() { group_.pop_back(), place_.pop_back(), columns_.resize(columns_.size() - stride_); }
    Index size() const { return Index(group_.size()); }
    Index group(Index column) const { return group_[column]; }
    // Numbers of the owner of a column.
    View<double> owned(Index c) { return {columns_.data() + c * stride_ + rows_, stride_ - rows_}; }
    void set_budget(Index r, double budget) { right_[r] = budget; }
    void set_head(Index a, double head) { right_[R_ + a] = head; }
    // The share of a column in the mixture of its group.
    double share(Index c) const {
        if (place_[c] == KEY) return std::max(shares_[group_[c]], 0.0);
        return place_[c] >= 0 ? std::max(level_[place_[c]], 0.0) : 0.0;
    }
    double price(Index row) const { return price_[row]; }

    // The gain of an action in a column.
    double gain(Index c, Index a) const { return -columns_[c * stride_ + R_ + a]; }
    // What a column gains above its group's key at the prices.
    double worth_above(Index c) const { return worth(c) - worth(key_[group_[c]]); }

    struct Exchange {
        Index row, up, down;  // the row that it lifts, and the two columns
    };

    // Begin with the mixture of keys, which must keep the budgets; false if it breaks down.
    bool start(double tie, const std::vector<Exchange>& exchanges = {}) {
        for (Index a = R_; a < d_; ++a) right_[a] += tie * double(a - R_ + 1) / double(d_ - R_);
        if (!exchanges.empty() && cross(exchanges)) return true;
        slacks();
        return refactor();
    }

    // Solve the program; false if it breaks down. Columns that gain less than `least` do not enter.
    bool solve(double least) {
        for (Index& place : place_) place = place == ASIDE ? OUT : place;
        const Index limit = 50 * (d_ + Index(key_.size())) + 200;
        bool sound = true;
        for (Index pivots = 0; sound && pivots < limit; ++pivots) {
            const Index in = entering(least, pivots > limit / 2);
            if (in == NONE) break;
            if (!enter(in, sound)) {
                if (in < rows_) break;
                place_[in - rows_] = ASIDE;
            }
        }
        return sound;
    }

private:
    static constexpr Index VALUE = -1, OUT = -1, KEY = -2, ASIDE = -3, NONE = -1;
    static constexpr Index FRESH = 40, WINDOW = 64;
    static constexpr double PIVOT = 1e-11, NOISE = 1e-14, SLACK = 1e-12;

    // What is basic: VALUE, a slack by its row, or `rows` + a column.
    bool is_column(Index kind) const { return kind >= rows_; }
    Index group_of(Index kind) const { return group_[kind - rows_]; }
    View<const double> column(Index c) const { return {columns_.data() + c * stride_, d_}; }
    View<double> inverse(Index place) { return {inverse_.data() + place * rows_, d_}; }

    void subtract_keys() {
        for (Index a = 0; a < d_; ++a) less_[a] = right_[a];
        for (Index k : key_)
            for (Index a = 0; a < d_; ++a) less_[a] -= column(k)[a];
    }

    // A basis of slacks, with g in the lowest row.
    void slacks() {
        subtract_keys();
        Index lowest = R_;
        for (Index a = 0; a < d_; ++a) {
            kind_[a] = a;
            if (a > R_ && less_[a] < less_[lowest]) lowest = a;
        }
        kind_[lowest] = VALUE;
        for (Index& place : place_) place = place >= 0 ? OUT : place;
    }

    void put(Index row, Index c) { kind_[row] = rows_ + c, place_[c] = row; }

    // A basis of exchanges; false if it is none, or some share is negative.
    bool cross(const std::vector<Exchange>& exchanges) {
        slacks();
        for (const Exchange& e : exchanges) {
            if (kind_[e.row] == VALUE) return false;
            put(e.row, e.up);
        }
        if (!refactor()) return false;
        bool turned = false;
        for (const Exchange& e : exchanges) {
            if (level_[e.row] >= 0.0) continue;
            place_[e.up] = OUT, turned = true;
            put(e.row, e.down);
        }
        if (turned && !refactor()) return false;
        for (Index p = 0; p < d_; ++p)
            if (kind_[p] != VALUE && !(level_[p] >= -SLACK)) return false;
        for (double share : shares_)
            if (!(share >= -SLACK)) return false;
        return true;
    }

    bool refactor() {
        const Index m = 2 * d_;
        const View<double> work(work_.data(), d_ * m);
        std::fill(work.begin(), work.end(), 0.0);
        for (Index p = 0; p < d_; ++p) {
            const Index kind = kind_[p];
            work[p * m + d_ + p] = 1.0;
            for (Index a = 0; a < d_; ++a) {
                if (kind == VALUE) work[a * m + p] = a >= R_ ? 1.0 : 0.0;
                else if (!is_column(kind)) work[a * m + p] = a == kind ? 1.0 : 0.0;
                else work[a * m + p] = column(kind - rows_)[a] - column(key_[group_of(kind)])[a];
            }
        }
        if (!eliminate(work, d_, m)) return false;
        for (Index p = 0; p < d_; ++p)
            for (Index a = 0; a < d_; ++a) inverse(p)[a] = work[p * m + d_ + a];
        pivots_ = 0;
        subtract_keys();
        levels();
        return true;
    }

    void levels() {
        std::fill(shares_.begin(), shares_.end(), 1.0);
        for (Index p = 0; p < d_; ++p) {
            const View<const double> row = inverse(p);
            double level = 0.0;
            for (Index a = 0; a < d_; ++a) level += row[a] * less_[a];
            level_[p] = level;
            if (is_column(kind_[p])) shares_[group_of(kind_[p])] -= level;
            if (kind_[p] == VALUE) std::copy(row.begin(), row.end(), price_.begin());
        }
    }

    double worth(Index c) const {
        const View<const double> own = column(c);
        double total = 0.0;
        for (Index a = 0; a < d_; ++a) total -= price_[a] * own[a];
        return total;
    }

    // What enters next: a slack of negative price, or the column that gains most of WINDOW, or of all if none of these
    // does; or the first one that gains.
    Index entering(double least, bool first) {
        Index in = NONE;
        double best = least;
        for (Index a = 0; a < d_ && !(first && in != NONE); ++a)
            if (-price_[a] > std::max(in == NONE ? SLACK : best, SLACK)) best = std::max(-price_[a], best), in = a;
        for (Index g = 0; g < Index(key_.size()); ++g) falls_[g] = worth(key_[g]);
        for (Index n = 0; n < size() && !(in != NONE && (first || n > WINDOW)); ++n) {
            const Index c = (n + next_) % size();
            if (place_[c] != OUT) continue;
            const double gain = worth(c) - falls_[group_[c]];
            if (gain > best) best = gain, in = rows_ + c;
        }
        if (is_column(in)) next_ = in - rows_;
        return in;
    }

    // How the basis changes by a unit of what enters.
    void direction(Index in) {
        for (Index p = 0; p < d_; ++p) {
            const View<const double> row = inverse(p);
            if (!is_column(in)) {
                along_[p] = row[in];
                continue;
            }
            const View<const double> own = column(in - rows_), key = column(key_[group_of(in)]);
            double total = 0.0;
            for (Index a = 0; a < d_; ++a) total += row[a] * (own[a] - key[a]);
            along_[p] = total;
        }
    }

    struct Leaving {
        Index place = NONE, group = NONE;  // a basic variable, or the key of a group
    };

    // The ratio test in two passes: of those that leave within rounding of the first, the largest pivot.
    Leaving leaving() const {
        double bound = INFINITE, best = 0.0;
        const auto leaves = [&](Index p) { return kind_[p] != VALUE && along_[p] > PIVOT; };
        const auto reach = [](double level, double fall) { return std::max(level, 0.0) / fall; };
        const Index G = Index(key_.size());
        for (Index p = 0; p < d_; ++p)
            if (leaves(p)) bound = std::min(bound, (std::max(level_[p], 0.0) + NOISE) / along_[p]);
        for (Index g = 0; g < G; ++g)
            if (falls_[g] > PIVOT) bound = std::min(bound, (std::max(shares_[g], 0.0) + NOISE) / falls_[g]);
        Leaving found;
        for (Index p = 0; p < d_; ++p)
            if (leaves(p) && reach(level_[p], along_[p]) <= bound && along_[p] > best)
                best = along_[p], found = {p, NONE};
        for (Index g = 0; g < G; ++g)
            if (falls_[g] > PIVOT && reach(shares_[g], falls_[g]) <= bound && falls_[g] > best)
                best = falls_[g], found = {NONE, g};
        return found;
    }

    // The column of a group in the basis that changes most; NONE if there is none.
    Index partner(Index group, double& most) const {
        Index found = NONE;
        most = 0.0;
        for (Index p = 0; p < d_; ++p)
            if (is_column(kind_[p]) && group_of(kind_[p]) == group && std::fabs(along_[p]) > most)
                most = std::fabs(along_[p]), found = p;
        return found;
    }

    // The column in place p becomes the key of its group, and the key takes its place.
    void change_key(Index group, Index p) {
        const Index c = kind_[p] - rows_, old = key_[group];
        const View<double> row = inverse(p);
        for (Index q = 0; q < d_; ++q)
            if (q != p && is_column(kind_[q]) && group_of(kind_[q]) == group)
                for (Index a = 0; a < d_; ++a) row[a] += inverse(q)[a];
        for (double& x : row) x = -x;
        key_[group] = c, place_[c] = KEY, kind_[p] = rows_ + old, place_[old] = p;
        for (Index a = 0; a < d_; ++a) less_[a] += column(old)[a] - column(c)[a];
    }

    // The column that enters becomes the key of its group at once.
    bool replace_key(Index group, Index c) {
        place_[key_[group]] = OUT, key_[group] = c, place_[c] = KEY;
        for (Index p = 0; p < d_; ++p)
            if (is_column(kind_[p]) && group_of(kind_[p]) == group) return refactor();
        subtract_keys();
        levels();
        return true;
    }

    bool enter(Index in, bool& sound) {
        direction(in);
        const Index own = is_column(in) ? group_of(in) : NONE;
        for (Index g = 0; g < Index(key_.size()); ++g) falls_[g] = g == own ? 1.0 : 0.0;
        for (Index p = 0; p < d_; ++p)
            if (is_column(kind_[p])) falls_[group_of(kind_[p])] -= along_[p];
        Leaving out = leaving();
        if (out.group != NONE) {
            double most = 0.0;
            const Index p = partner(out.group, most);
            if (own == out.group && (p == NONE || most < 1e-9))
                return sound = replace_key(own, in - rows_);
            if (p == NONE) return false;
            change_key(out.group, p);
            out.place = p;
            direction(in);
            if (!(std::fabs(along_[p]) > 1e-13)) {
                sound = refactor();
                return false;
            }
        }
        if (out.place == NONE) return false;
        pivot(in, out.place);
        if (++pivots_ >= FRESH) return sound = refactor();
        levels();
        return true;
    }

    void pivot(Index in, Index at) {
        const View<double> row = inverse(at);
        const double scale = 1.0 / along_[at];
        for (double& x : row) x *= scale;
        for (Index p = 0; p < d_; ++p) {
            if (p == at || along_[p] == 0.0) continue;
            const View<double> other = inverse(p);
            for (Index a = 0; a < d_; ++a) other[a] -= along_[p] * row[a];
        }
        if (is_column(kind_[at])) place_[kind_[at] - rows_] = OUT;
        kind_[at] = in;
        if (is_column(in)) place_[in - rows_] = at;
    }

    Index rows_, stride_, R_ = 0, d_ = 0, pivots_ = 0;
    Index next_ = 0;  // where the search for a column begins
    std::vector<double> columns_;       // (size, stride)
    std::vector<Index> group_, place_;  // of each column: in the basis, OUT of it, KEY, put ASIDE
    std::vector<double> shares_, falls_;  // (groups) of the keys, and how fast they fall
    std::vector<Index> key_;
    std::vector<double> inverse_, work_, right_, less_, level_, price_, along_;
    std::vector<Index> kind_;
};

}  // namespace drmdp
