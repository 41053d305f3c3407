// Arrays of Python at the border: type, shape, order and writability are checked here, once a call,
// so that routines need not. A routine is a function of views, numbers and structs of them; `define`
// makes a function of Python of it. Its arguments are told with their shapes, "policy[S A]": letters
// stand for sizes, which are known from the first array that has them; "costs[E]?" may be empty.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../data.hpp"
#include "../vectors.hpp"

namespace drmdp {

namespace nb = nanobind;

using Reals = View<const double>;
using Flags = View<const std::uint8_t>;
using States = View<const std::int32_t>;
using Wholes = View<const std::int64_t>;

inline std::string name_of(const char* spec) { return {spec, std::strcspn(spec, "[")}; }

[[noreturn]] inline void refuse(const char* spec, const std::string& why) {
    throw nb::value_error((name_of(spec) + ": " + why).c_str());
}

inline void expect_range(Index start, Index stop, Index n) {
    if (!(0 <= start && start <= stop && stop <= n)) refuse("states", "out of range");
}

class Arguments;

// The fields of a tuple of Python: at(2, "policy[S A]") becomes what a member of a struct is.
struct Fields {
    Arguments& from;
    nb::handle of;

    struct One {
        const Fields& fields;
        Index k;
        const char* spec;
        template <class T>
        operator T() const;
    };
    One operator()(Index k, const char* spec) const { return {*this, k, spec}; }
    nb::handle operator[](Index k) const {
        if (!PyTuple_Check(of.ptr()) || PyTuple_Size(of.ptr()) <= k)
            refuse("arguments", "expected a tuple with more than " + std::to_string(k) + " fields");
        return PyTuple_GetItem(of.ptr(), k);
    }
};

// How a struct is read: `static T read(const Fields&)`.
template <class T>
struct Reader;

// What is read of the arguments of a call. Buffers are held while a routine reads and writes them
// without the interpreter's lock.
class Arguments {
public:
    Arguments() { std::fill(sizes_, sizes_ + 26, -1), held_.reserve(40); }
    Arguments(const Arguments&) = delete;
    ~Arguments() {
        for (Py_buffer& buffer : held_) PyBuffer_Release(&buffer);
    }

    template <class T>
    T read(nb::handle of, const char* spec) {
        return read(of, spec, static_cast<T*>(nullptr));
    }
    Index& size(char letter) { return sizes_[letter - 'A']; }

    // Whether an array, or the third field of a tuple, is of float32.
    static bool is_single(nb::handle of) {
        Arguments own;
        const nb::handle array = PyObject_CheckBuffer(of.ptr()) ? of : Fields{own, of}[2];
        return matches<float>(own.buffer(array, "data", PyBUF_C_CONTIGUOUS | PyBUF_FORMAT));
    }

    double kept = 0.0;  // a number that a view of one shows

private:
    template <class T>
    View<T> read(nb::handle array, const char* spec, View<T>*) {
        constexpr bool writable = !std::is_const_v<T>;
        constexpr int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
        using Plain = std::remove_const_t<T>;
        const Py_buffer& own = buffer(array, spec, flags);
        if (!matches<Plain>(own))
            refuse(spec, std::string("expected numbers of type '") + kind<Plain>() + "', got '" +
                             (own.format ? own.format : "?") + "'");
        const Index total = Index(own.len / Index(sizeof(T)));
        fit(spec, own, total);
        return {static_cast<T*>(own.buf), total};
    }
    template <class T>
    Table<T> read(nb::handle array, const char* spec, Table<T>*) {
        const View<T> all = read<View<T>>(array, spec);
        if (held_.back().ndim != 2) refuse(spec, "expected rows of numbers");
        return {all, Index(held_.back().shape[1])};
    }
    double read(nb::handle of, const char* spec, double*) {
        const double x = PyFloat_AsDouble(of.ptr());
        if (PyErr_Occurred()) PyErr_Clear(), refuse(spec, "expected a number");
        return x;
    }
    bool read(nb::handle of, const char* spec, bool*) {
        const int is = PyObject_IsTrue(of.ptr());
        if (is < 0) PyErr_Clear(), refuse(spec, "expected True or False");
        return is == 1;
    }
    template <class T>
    T read(nb::handle of, const char*, T*) {
        return Reader<T>::read(Fields{*this, of});
    }

    const Py_buffer& buffer(nb::handle array, const char* spec, int flags) {
        Py_buffer own;
        if (PyObject_GetBuffer(array.ptr(), &own, flags) != 0) {
            PyErr_Clear();
            refuse(spec, std::string("expected a contiguous") +
                             (flags & PyBUF_WRITABLE ? ", writable" : "") + " array");
        }
        held_.push_back(own);
        return held_.back();
    }

    void fit(const char* spec, const Py_buffer& own, Index total) {
        const char* at = std::strchr(spec, '[');
        if (!at || (total == 0 && std::strchr(at, '?'))) return;
        const bool alone = !std::strchr(at, ' ');
        Index product = 1;
        for (Index k = 0; *at != ']'; ++k) {
            Index number = at[1] - '0';
            Index& known = number < 10 ? number : size(at[1]);
            const Index more = at[2] == '+';
            at += more ? 4 : 2;
            if (known < 0) known = (alone ? total : k < own.ndim ? Index(own.shape[k]) : 0) - more;
            product *= known + more;
        }
        if (product != total)
            refuse(spec, "expected " + std::to_string(product) + " numbers, got " + std::to_string(total));
    }

    template <class T>
    static const char* kind() {
        if (std::is_same_v<T, double>) return "float64";
        if (std::is_same_v<T, float>) return "float32";
        if (std::is_same_v<T, std::uint8_t>) return "bool";
        if (std::is_same_v<T, std::uint16_t>) return "uint16";
        return sizeof(T) == 4 ? "int32" : "int64";
    }
    template <class T>
    static bool matches(const Py_buffer& own) {
        if (own.itemsize != Index(sizeof(T)) || !own.format) return false;
        const char code = own.format[own.format[0] == '<' || own.format[0] == '='];
        if (std::is_same_v<T, double>) return code == 'd';
        if (std::is_same_v<T, float>) return code == 'f';
        if (std::is_same_v<T, std::uint8_t>) return code == '?' || code == 'B';
        if (std::is_same_v<T, std::uint16_t>) return code == 'H';
        return code == 'i' || code == 'l' || code == 'q';
    }

    std::vector<Py_buffer> held_;
    Index sizes_[26];
};

template <class T>
Fields::One::operator T() const {
    return fields.from.read<T>(fields[k], spec);
}

template <class T>
using Given = std::conditional_t<std::is_arithmetic_v<T> || std::is_pointer_v<T> ||
                                     std::is_same_v<T, std::string>, T, nb::handle>;

template <class T, class G>
T read_one(Arguments& read, const G& given, const char* spec) {
    if constexpr (std::is_same_v<G, nb::handle>) return read.read<T>(given, spec);
    else return given;
}

template <class R, class... P, class... G, class... Specs>
R call(R (*routine)(P...), std::tuple<const G&...> given, Specs... specs) {
    Arguments read;
    const std::tuple<std::decay_t<P>...> own = std::apply([&](const G&... one) {
        return std::tuple<std::decay_t<P>...>{read_one<std::decay_t<P>>(read, one, specs)...};
    }, given);
    const nb::gil_scoped_release released;
    return std::apply(routine, own);
}

// The function `name` of Python: a routine, with the names and shapes of its arguments.
template <class R, class... P, class... Specs>
void define(nb::module_& module, const char* name, R (*routine)(P...), Specs... specs) {
    module.def(name, [=](Given<std::decay_t<P>>... given) -> R {
        return call(routine, std::tie(std::as_const(given)...), specs...);
    }, nb::arg(name_of(specs).c_str()).none()...);
}

// One of two routines, by the precision of the first array, or of the data of the first tuple.
template <class R, class... P, class... Q, class... Specs>
void define(nb::module_& module, const char* name, R (*wide)(P...), R (*single)(Q...), Specs... specs) {
    module.def(name, [=](Given<std::decay_t<P>>... given) -> R {
        const auto all = std::tie(std::as_const(given)...);
        nb::handle data;
        const auto seek = [&](const auto& one) {
            if constexpr (std::is_same_v<decltype(one), const nb::handle&>)
                if (!data.is_valid()) data = one;
        };
        (seek(given), ...);
        return Arguments::is_single(data) ? call(single, all, specs...) : call(wide, all, specs...);
    }, nb::arg(name_of(specs).c_str()).none()...);
}

// Part k of what `at` divides has at least `least` places and lies inside of `size`.
inline void expect_step(Wholes at, Index k, Index least, Index size, const char* name) {
    if (at[k] < 0 || at[k + 1] - at[k] < least || at[k + 1] > size || at[k + 1] < at[k])
        refuse(name, "places of pair " + std::to_string(k) + " are not where they should be");
}

// Sizes: S, A, N, P = S A pairs, E entries, M = N E.
template <class Real>
struct Reader<Layout<Real>> {
    static Layout<Real> read(const Fields& at) {
        Layout<Real> to;
        Arguments& from = at.from;
        to.available = at(5, "available[S A]"), to.S = from.size('S'), to.A = from.size('A');
        const Index pairs = from.size('P') = to.S * to.A;
        to.indptr = at(0, "indptr[P+1]"), to.indices = at(1, "indices[E]"), to.weights = at(4, "weights[N]");
        to.N = to.weights.size(), from.size('M') = to.N * to.indices.size();
        if (to.indptr[0] != 0 || to.indptr[pairs] != to.indices.size())
            refuse("indptr", "expected to lead from 0 to the number of entries");
        to.data = at(2, "data[M]"), to.mean = at(3, "mean[E]");
        to.costs = at(6, "costs[P]"), to.next_costs = at(7, "next_costs[E]?"), to.radius = at(8, "radius");
        if (to.radius.size() != to.S && to.radius.size() != pairs)
            refuse("radius", "expected one a state, or one a pair");
        if (!PyFloat_Check(at[9].ptr())) to.discounts = at(9, "discount[P]");
        else from.kept = at(9, "discount"), to.discounts = {&from.kept, 1};
        to.unlisted = at(10, "unlisted"), to.common = at(11, "common");
        return to;
    }
};

// The states start ... stop - 1 are there, and their entries name some of n states.
template <class Real>
void expect_states(const Layout<Real>& layout, Index start, Index stop, Index n) {
    expect_range(start, stop, layout.S);
    const Index first = start * layout.A, last = stop * layout.A;
    for (Index k = first; k < last; ++k) expect_step(layout.indptr, k, 0, layout.indices.size(), "indptr");
    if (first == last) return;
    const Reach used = reach_of(layout.indices.part(layout.indptr[first], layout.indptr[last] - layout.indptr[first]));
    if (used.least < 0 || used.most >= n)
        refuse("indices", "expected numbers from 0 to " + std::to_string(n - 1));
}

}  // namespace drmdp
