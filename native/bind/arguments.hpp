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
        PyObject* item = PyTuple_GetItem(tuple.ptr(), k);
        if (!item) throw nb::python_error();
        return item;
    }

private:
    template <class T>
    static const char* kind() {
        if (std::is_same_v<T, double>) return "float64";
        if (std::is_same_v<T, float>) return "float32";
        if (std::is_same_v<T, std::uint8_t>) return "bool";
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
        return code == 'i' || code == 'l' || code == 'q';
    }

    std::vector<Py_buffer> held_;
};

// Whether the data of a layout are float32.
inline bool holds_single(nb::handle layout) { return Arrays::is_single(Arrays::field(layout, 2)); }

// The arguments of a routine as views: the fields of drmdp's tuples of arrays, in their order.
class Arguments {
public:
    template <class Real>
    Layout<Real> layout(nb::handle of) {
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
        to.unlisted = nb::cast<bool>(Arrays::field(of, 10));
        to.common = nb::cast<bool>(Arrays::field(of, 11));
        return to;
    }

    Point point(nb::handle of) {
        Point to;
        to.value = take<const double>(of, 0, "value");
        to.top = nb::cast<double>(Arrays::field(of, 1));
        to.span = nb::cast<double>(Arrays::field(of, 2));
        const nb::handle order = Arrays::field(of, 3);
        to.common = take<const double>(order, 0, "common");
        to.order.states = take<const std::int32_t>(order, 1, "states");
        const Index n = to.order.states.size();
        to.order.u = take<const double>(order, 2, "u", n);
        to.order.sum1 = take<const double>(order, 3, "sum1");
        to.order.sum2 = take<const double>(order, 4, "sum2");
        to.order.rank = take<const std::int32_t>(order, 5, "rank");
        to.order.below = take<const std::int32_t>(order, 6, "below", n);
        to.order.second = nb::cast<double>(Arrays::field(order, 7));
        to.order.level = nb::cast<double>(Arrays::field(order, 8));
        to.order.beyond = take<std::int64_t>(order, 9, "beyond", 1);
        return to;
    }

    Memory memory(nb::handle of, Index S) {
        return {table<double>(of, 0, "by_action", S), table<double>(of, 1, "by_kernel", S),
                table<double>(of, 2, "by_row", S)};
    }

    Found found(nb::handle of, Index S) {
        return {take<double>(of, 0, "upper", S), take<double>(of, 1, "lower", S),
                table<double>(of, 2, "policy", S), take<double>(of, 3, "passes", S)};
    }

    Extra extra(nb::handle of) {
        Extra to;
        if (of.is_none()) return to;
        to.order = nb::cast<double>(Arrays::field(of, 0));
        const nb::handle lists = Arrays::field(of, 1);
        if (lists.is_none()) return to;
        to.list_at = take<const std::int64_t>(lists, 0, "ptr");
        to.list_target = take<const std::int32_t>(lists, 1, "target");
        to.list_cost = take<const double>(lists, 2, "cost", to.list_target.size());
        to.list_of = take<const std::int32_t>(of, 2, "source");
        to.free = nb::cast<bool>(Arrays::field(of, 3));
        return to;
    }

    judge::Sight sight(nb::handle of) {
        judge::Sight to;
        to.value = take<const double>(of, 0, "value");
        to.top = nb::cast<double>(Arrays::field(of, 1));
        to.span = nb::cast<double>(Arrays::field(of, 2));
        to.u = take<const double>(of, 3, "u");
        to.place = take<const std::int32_t>(of, 5, "place");
        to.down = take<const double>(of, 6, "down");
        to.rise = take<const double>(of, 7, "rise");
        to.rise2 = take<const double>(of, 8, "rise2");
        to.beyond = take<std::int64_t>(of, 9, "beyond", 1);
        return to;
    }

    judge::Claim claim(nb::handle of, Index S) {
        const nb::handle memory = Arrays::field(of, 1);
        return {table<const double>(of, 0, "policy", S), table<const double>(memory, 0, "by_action", S),
                table<const double>(memory, 1, "by_kernel", S), table<const double>(memory, 2, "by_row", S),
                nb::cast<bool>(Arrays::field(of, 2)), nb::cast<bool>(Arrays::field(of, 3))};
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

    // Rows that are asked for; `A` is the number of actions where states are pairs, else 1.
    Rows rows(nb::handle of, Index S, Index A) {
        const nb::handle target = Arrays::field(of, 2);
        const View<const double> weights = take<const double>(of, 0, "weights");
        const View<const double> share = take<const double>(of, 1, "share");
        if (S == 0 || weights.size() % (S * A) || share.size() % S)
            refuse("question", "weights and share do not fit the states");
        Table<const double> shares(share, share.size() / S);
        if (A > 1 && shares.columns() > 1) shares = {share, share.size() / (S * A)};
        else if (A > 1) {
            share_.resize(S * A);
            for (Index k = 0; k < S * A; ++k) share_[k] = share[k / A];
            shares = {View<const double>(share_.data(), S * A), 1};
        }
        return {{weights, weights.size() / (S * A)}, shares,
                take<const std::int64_t>(target, 0, "entry_at"),
                take<const std::int64_t>(target, 3, "prefix_at"),
                take<std::int32_t>(target, 1, "states"), take<std::int32_t>(target, 4, "length"),
                numbers(target, 2, "mass"), numbers(target, 5, "slope"), numbers(target, 6, "level")};
    }

private:
    template <class T>
    View<T> take(nb::handle tuple, Index k, const char* name, Index size = -1) {
        return arrays_.take<T>(Arrays::field(tuple, k), name, size);
    }
    template <class T>
    Table<T> table(nb::handle tuple, Index k, const char* name, Index rows) {
        const View<T> all = take<T>(tuple, k, name);
        if (rows == 0 || all.size() % rows != 0)
            refuse(name, "expected " + std::to_string(rows) + " rows");
        return {all, all.size() / rows};
    }
    Numbers numbers(nb::handle tuple, Index k, const char* name) {
        const nb::handle array = Arrays::field(tuple, k);
        if (Arrays::is_single(array)) return {{}, arrays_.take<float>(array, name)};
        return {arrays_.take<double>(array, name), {}};
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
