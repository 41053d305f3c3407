// Arrays of Python at the border: type, shape, order and writability are checked here, once a call,
// so that routines need not.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <type_traits>
#include <vector>

#include "../data.hpp"
#include "../judge/sums.hpp"
#include "../nature.hpp"
#include "../routines.hpp"

namespace drmdp {

namespace nb = nanobind;

[[noreturn]] inline void refuse(const char* name, const std::string& why) {
    throw nb::value_error((std::string(name) + ": " + why).c_str());
}

// Buffers, held while a routine reads and writes them without the interpreter's lock.
class Arrays {
public:
    Arrays() = default;
    Arrays(const Arrays&) = delete;
    ~Arrays() {
        for (Py_buffer& buffer : held_) PyBuffer_Release(&buffer);
    }

    // `size` numbers of type T, or any number of them.
    template <class T>
    View<T> take(nb::handle array, const char* name, Index size = -1) {
        constexpr bool writable = !std::is_const_v<T>;
        constexpr int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
        Py_buffer buffer;
        if (PyObject_GetBuffer(array.ptr(), &buffer, flags) != 0) {
            PyErr_Clear();
            refuse(name, std::string("expected a contiguous") + (writable ? ", writable" : "") +
                             " array");
        }
        held_.push_back(buffer);
        if (!matches<std::remove_const_t<T>>(buffer))
            refuse(name, std::string("expected numbers of type '") + kind<std::remove_const_t<T>>() +
                             "', got '" + (buffer.format ? buffer.format : "?") + "'");
        const Index length = Index(buffer.len / Index(sizeof(T)));
        if (size >= 0 && length != size)
            refuse(name, "expected " + std::to_string(size) + " numbers, got " +
                             std::to_string(length));
        return {static_cast<T*>(buffer.buf), length};
    }

    // Numbers in a row of an array of two dimensions.
    static Index columns(nb::handle array) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_ND) != 0) {
            PyErr_Clear();
            refuse("available", "expected a contiguous array");
        }
        const Index n = buffer.ndim == 2 ? Index(buffer.shape[1]) : 0;
        PyBuffer_Release(&buffer);
        return n;
    }

    // Rows of an array of two dimensions.
    template <class T>
    Table<T> table(nb::handle array, const char* name, Index rows = -1, Index columns = -1) {
        const View<T> all = take<T>(array, name);
        const Py_buffer& buffer = held_.back();
        const bool flat = buffer.ndim == 2;
        if (!flat || (rows >= 0 && buffer.shape[0] != rows) || (columns >= 0 && buffer.shape[1] != columns))
            refuse(name, "expected " + (rows < 0 ? "some" : std::to_string(rows)) + " rows of " +
                             (columns < 0 ? "some" : std::to_string(columns)) + " numbers");
        return {all, Index(buffer.shape[1])};
    }

    static bool is_single(nb::handle array) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
            PyErr_Clear();
            refuse("data", "expected a contiguous array");
        }
        const bool single = matches<float>(buffer);
        PyBuffer_Release(&buffer);
        return single;
    }

    static nb::handle field(nb::handle tuple, Index k) {
        if (!PyTuple_Check(tuple.ptr()) || PyTuple_Size(tuple.ptr()) <= k)
            refuse("arguments", "expected a tuple with more than " + std::to_string(k) + " fields");
        return PyTuple_GetItem(tuple.ptr(), k);
    }
    static double number(nb::handle tuple, Index k, const char* name) {
        const double x = PyFloat_AsDouble(field(tuple, k).ptr());
        if (PyErr_Occurred()) {
            PyErr_Clear();
            refuse(name, "expected a number");
        }
        return x;
    }
    static bool flag(nb::handle tuple, Index k, const char* name) {
        const int is = PyObject_IsTrue(field(tuple, k).ptr());
        if (is < 0) {
            PyErr_Clear();
            refuse(name, "expected True or False");
        }
        return is == 1;
    }

private:
    template <class T>
    static const char* kind() {
        if (std::is_same_v<T, double>) return "float64";
        if (std::is_same_v<T, float>) return "float32";
        if (std::is_same_v<T, std::uint8_t>) return "bool";
        if (std::is_same_v<T, std::uint16_t>) return "uint16";
        return sizeof(T) == 4 ? "int32" : "int64";
    }
    template <class T>
    static bool matches(const Py_buffer& buffer) {
        if (buffer.itemsize != Index(sizeof(T)) || !buffer.format) return false;
        const char code = buffer.format[0] == '<' || buffer.format[0] == '=' ? buffer.format[1]
                                                                             : buffer.format[0];
        if (std::is_same_v<T, double>) return code == 'd';
        if (std::is_same_v<T, float>) return code == 'f';
        if (std::is_same_v<T, std::uint8_t>) return code == '?' || code == 'B';
        if (std::is_same_v<T, std::uint16_t>) return code == 'H';
        return code == 'i' || code == 'l' || code == 'q';
    }

    std::vector<Py_buffer> held_;
};

// Whether the data of a layout are float32.
inline bool holds_single(nb::handle layout) { return Arrays::is_single(Arrays::field(layout, 2)); }

// The arguments of a routine as views: the fields of drmdp's tuples of arrays, in their order.
class Arguments {
public:
    // The states start ... stop - 1 will be read, and `next` states may be listed.
    template <class Real>
    Layout<Real> layout(nb::handle of, Index start, Index stop, Index next) {
        Layout<Real> to;
        to.indptr = take<const std::int64_t>(of, 0, "indptr");
        to.indices = take<const std::int32_t>(of, 1, "indices");
        to.weights = take<const double>(of, 4, "weights");
        to.available = take<const std::uint8_t>(of, 5, "available");
        to.radius = take<const double>(of, 8, "radius");
        const Index pairs = to.available.size(), entries = to.indices.size();
        to.A = Arrays::columns(Arrays::field(of, 5)), to.S = to.A ? pairs / to.A : 0, to.N = to.weights.size();
        if (to.indptr.size() != pairs + 1 || (to.radius.size() != to.S && to.radius.size() != pairs))
            refuse("layout", "the lengths of radius, available and indptr do not fit");
        if (to.indptr[0] != 0 || to.indptr[pairs] != entries)
            refuse("indptr", "expected to lead from 0 to the number of entries");
        to.data = take<const Real>(of, 2, "data", to.N * entries);
        to.mean = take<const double>(of, 3, "mean", entries);
        to.costs = take<const double>(of, 6, "costs", pairs);
        to.next_costs = take<const double>(of, 7, "next_costs");
        if (!to.next_costs.empty() && to.next_costs.size() != entries)
            refuse("next_costs", "expected one an entry, or none");
        discount(Arrays::field(of, 9), pairs, to.discounts);
        to.unlisted = Arrays::flag(of, 10, "unlisted");
        to.common = Arrays::flag(of, 11, "common");
        if (!(0 <= start && start <= stop && stop <= to.S)) refuse("states", "out of range");
        check_entries(to, start * to.A, stop * to.A, next);
        return to;
    }

    Point point(nb::handle of) {
        Point to;
        to.value = take<const double>(of, 0, "value");
        to.top = Arrays::number(of, 1, "top");
        to.span = Arrays::number(of, 2, "span");
        to.common = take<const double>(Arrays::field(of, 3), 0, "common");
        to.order = order(Arrays::field(of, 3), to.value.size());
        return to;
    }

    // `next` states, or none of them, in descending order of v.
    Order order(nb::handle of, Index next) {
        Order to;
        to.states = take<const std::int32_t>(of, 1, "states");
        const Index n = to.states.size();
        to.u = take<const double>(of, 2, "u", n);
        to.sum1 = take<const double>(of, 3, "sum1", n + (n > 0));
        to.sum2 = take<const double>(of, 4, "sum2", n + (n > 0));
        to.rank = take<const std::int32_t>(of, 5, "rank", n > 0 ? next : 0);
        to.below = take<const std::int32_t>(of, 6, "below", n);
        to.second = Arrays::number(of, 7, "second");
        to.level = Arrays::number(of, 8, "level");
        to.beyond = take<std::int64_t>(of, 9, "beyond", 1);
        return to;
    }

    // Of a layout (of pairs), with what a routine keeps.
    template <class Real>
    Memory memory(nb::handle of, const Layout<Real>& layout, const Keeps& keeps) {
        return remembered<double>(of, layout, keeps);
    }

    Found found(nb::handle of, Index S, Index A) {
        return {take<double>(of, 0, "upper", S), take<double>(of, 1, "lower", S),
                table<double>(of, 2, "policy", S, A), take<double>(of, 3, "passes", S)};
    }

    Extra extra(nb::handle of) {
        Extra to;
        if (of.is_none()) return to;
        to.order = Arrays::number(of, 0, "order");
        const nb::handle lists = Arrays::field(of, 1);
        if (lists.is_none()) return to;
        to.list_at = take<const std::int64_t>(lists, 0, "ptr");
        to.list_target = take<const std::int32_t>(lists, 1, "target");
        to.list_cost = take<const double>(lists, 2, "cost", to.list_target.size());
        to.list_of = take<const std::int32_t>(of, 2, "source");
        to.free = Arrays::flag(of, 3, "free");
        return to;
    }

    judge::Sight sight(nb::handle of) {
        judge::Sight to;
        to.value = take<const double>(of, 0, "value");
        to.top = Arrays::number(of, 1, "top");
        to.span = Arrays::number(of, 2, "span");
        to.u = take<const double>(of, 3, "u");
        to.down = take<const double>(of, 6, "down");
        const Index n = to.down.size();
        to.place = take<const std::int32_t>(of, 5, "place", n > 0 ? to.value.size() : 0);
        to.rise = take<const double>(of, 7, "rise", n + (n > 0));
        to.rise2 = take<const double>(of, 8, "rise2", n + (n > 0));
        to.beyond = take<std::int64_t>(of, 9, "beyond", 1);
        return to;
    }

    template <class Real>
    judge::Claim claim(nb::handle of, const Layout<Real>& layout, const Keeps& keeps) {
        const auto memory = remembered<const double>(Arrays::field(of, 1), layout, keeps);
        return {table<const double>(of, 0, "policy", layout.S, layout.A), memory.by_action,
                memory.by_kernel, memory.by_row, Arrays::flag(of, 2, "every"),
                Arrays::flag(of, 3, "fixed")};
    }

    judge::Proved proved(nb::handle of, Index S) {
        return {take<double>(of, 0, "low", S), take<double>(of, 1, "high", S),
                table<double>(of, 2, "share", S)};
    }

    // Every pair as a state with one action.
    template <class Real>
    Layout<Real> by_pair(Layout<Real> layout) {
        const Index S = layout.S, A = layout.A;
        layout.S = S * A, layout.A = 1;
        if (layout.radius.size() == S && A != 1) {
            radius_.resize(S * A);
            for (Index k = 0; k < S * A; ++k) radius_[k] = layout.radius[k / A];
            layout.radius = {radius_.data(), S * A};
        }
        return layout;
    }

    // Rows that are asked for of the states start ... stop - 1; `A` is the number of actions where
    // states are pairs, else 1.
    template <class Real>
    Rows rows(nb::handle of, const Layout<Real>& layout, Index start, Index stop, Index A) {
        const Index S = layout.S / A, pairs = layout.S * layout.A;
        const nb::handle target = Arrays::field(of, 2);
        const View<const double> weights = take<const double>(of, 0, "weights");
        const View<const double> share = take<const double>(of, 1, "share");
        if (weights.size() != pairs || S == 0 || share.empty() || share.size() % S)
            refuse("question", "weights and share do not fit the states");
        Table<const double> shares(share, share.size() / S);
        if (A > 1 && shares.columns() > 1) shares = {share, share.size() / (S * A)};
        else if (A > 1) {
            share_.resize(S * A);
            for (Index k = 0; k < S * A; ++k) share_[k] = share[k / A];
            shares = {View<const double>(share_.data(), S * A), 1};
        }
        const auto states = take<std::int32_t>(target, 1, "states");
        const auto length = take<std::int32_t>(target, 4, "length");
        const Rows to{{weights, layout.A}, shares,
                      take<const std::int64_t>(target, 0, "entry_at", pairs + 1),
                      take<const std::int64_t>(target, 3, "prefix_at", pairs + 1), states, length,
                      numbers(target, 2, "mass", states.size()),
                      numbers(target, 5, "slope", length.size()),
                      numbers(target, 6, "level", length.size())};
        for (Index k = start * layout.A; k < stop * layout.A; ++k) {
            check_step(to.entry_at, k, weights[k] > 0.0 ? layout.length(k) : 0, states.size(), "entry_at");
            check_step(to.prefix_at, k, 0, length.size(), "prefix_at");
        }
        return to;
    }

    // v and the layout belong together.
    template <class Real>
    static void check_seen(const Layout<Real>& layout, Index next, View<const double> common, Index ordered) {
        if (layout.common && common.size() != next) refuse("common", "expected one number a state");
        if (layout.unlisted && ordered == 0) refuse("order", "expected states in descending order of v");
    }

private:
    template <class T>
    View<T> take(nb::handle tuple, Index k, const char* name, Index size = -1) {
        return arrays_.take<T>(Arrays::field(tuple, k), name, size);
    }
    template <class T>
    Table<T> table(nb::handle tuple, Index k, const char* name, Index rows, Index columns = 0) {
        const View<T> all = take<T>(tuple, k, name);
        if (rows == 0) return {all, columns};
        if (all.size() % rows != 0 || all.size() / rows < columns)
            refuse(name, "expected " + std::to_string(rows) + " rows of at least " +
                             std::to_string(columns) + " numbers, got " + std::to_string(all.size()));
        return {all, all.size() / rows};
    }
    template <class T>
    struct Remembered {
        Table<T> by_action, by_kernel, by_row;
        operator Memory() const { return {by_action, by_kernel, by_row}; }
    };
    template <class T, class Real>
    Remembered<T> remembered(nb::handle of, const Layout<Real>& layout, const Keeps& keeps) {
        return {table<T>(of, 0, "by_action", layout.S, layout.A),
                table<T>(of, 1, "by_kernel", layout.S, keeps.by_kernel ? layout.N : 0),
                table<T>(of, 2, "by_row", layout.S,
                         keeps.of_pair * layout.A * (keeps.by_row ? layout.N : 1))};
    }
    Numbers numbers(nb::handle tuple, Index k, const char* name, Index size) {
        const nb::handle array = Arrays::field(tuple, k);
        if (Arrays::is_single(array)) return {{}, arrays_.take<float>(array, name, size)};
        return {arrays_.take<double>(array, name, size), {}};
    }
    // Part k of what `at` divides has at least `least` places and lies inside of `size`.
    static void check_step(View<const std::int64_t> at, Index k, Index least, Index size, const char* name) {
        if (at[k] < 0 || at[k + 1] - at[k] < least || at[k + 1] > size || at[k + 1] < at[k])
            refuse(name, "places of pair " + std::to_string(k) + " are not where they should be");
    }
    // Entries of some pairs are where they should be, and name one of n states.
    template <class Real>
    static void check_entries(const Layout<Real>& layout, Index start, Index stop, Index n) {
        for (Index k = start; k < stop; ++k) check_step(layout.indptr, k, 0, layout.indices.size(), "indptr");
        if (start == stop) return;
        const Index first = layout.indptr[start], last = layout.indptr[stop];
        const std::uint32_t most = n > INT32_MAX ? INT32_MAX : std::uint32_t(n);
        bool inside = true;
        for (Index j = first; j < last; ++j) inside &= std::uint32_t(layout.indices[j]) < most;
        if (!inside) refuse("indices", "expected numbers from 0 to " + std::to_string(n - 1));
    }
    void discount(nb::handle of, Index pairs, View<const double>& to) {
        if (PyFloat_Check(of.ptr())) {
            one_ = nb::cast<double>(of);
            to = {&one_, 1};
        } else {
            to = arrays_.take<const double>(of, "discount", pairs);
        }
    }

    Arrays arrays_;
    double one_ = 0.0;
    std::vector<double> radius_, share_;
};

}  // namespace drmdp
