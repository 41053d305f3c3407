// Arrays of Python at the border: type, shape, order and writability are checked here, once a call,
// so that routines need not. A routine is a function of views, numbers and structs of them; `define`
// makes a function of Python of it. Its arguments are told with their shapes, "policy[S A]": letters
// stand for sizes, which are known from the first array that has them; "costs[E]?" may be empty,
// "indices[E]<S" are places among S, and "indptr[P+1]^E" rises from 0 to E, the number of entries.
//
// Of arrays that a call reads but some of, the part is looked at that it reads (`expect_steps`,
// `expect_below`); of those of which it reads single numbers, each where it is read.
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

inline std::string name_of(const char* spec) { return {spec, std::strcspn(spec, "[^<")}; }

[[noreturn]] inline void refuse(const char* spec, const std::string& why) {
    throw nb::value_error((name_of(spec) + ": " + why).c_str());
}

inline void expect_range(Index start, Index stop, Index n) {
    if (!(0 <= start && start <= stop && stop <= n))
        refuse("states", "out of range, " + std::to_string(start) + " to " + std::to_string(stop) + " of " +
                             std::to_string(n));
}

// Places among n.
template <class T>
void expect_below(View<const T> places, Index n, const char* spec) {
    if (places.empty() || is_below(places, n)) return;
    Index k = 0;
    while (Index(places[k]) >= 0 && Index(places[k]) < n) ++k;
    refuse(spec, "expected numbers from 0 to " + std::to_string(n - 1) + ", got " + std::to_string(places[k]) +
                     " at " + std::to_string(k));
}

// Parts first ... last - 1 of what `at` divides follow each other inside of `size`.
inline void expect_steps(View<const std::int64_t> at, Index first, Index last, Index size, const char* spec) {
    for (Index k = first; k < last; ++k)
        if (at[k] < 0 || at[k + 1] < at[k] || at[k + 1] > size)
            refuse(spec, "expected places from 0 to " + std::to_string(size) + " that rise, got " +
                             std::to_string(at[k]) + " and " + std::to_string(at[k + 1]) + " at " +
                             std::to_string(k));
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
#define DRMDP_READ(Type, ...)                                              \
    template <>                                                            \
    struct Reader<Type> {                                                  \
        static Type read(const Fields& at) { return {__VA_ARGS__}; }       \
    }

// What is read of the arguments of a call. Buffers are held while a routine reads and writes them
// without the interpreter's lock.
class Arguments {
public:
    Arguments() { std::fill(sizes_, sizes_ + 26, -1); }
    Arguments(const Arguments&) = delete;
    ~Arguments() {
        while (n_held_ > 0) PyBuffer_Release(&held_[--n_held_]);
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
        const View<T> found{static_cast<T*>(own.buf), Index(own.len / Index(sizeof(T)))};
        fit(spec, own, found.size());
        if constexpr (std::is_integral_v<T>) lead(spec, View<const T>(found));
        return found;
    }
    template <class T>
    Table<T> read(nb::handle array, const char* spec, Table<T>*) {
        const View<T> all = read<View<T>>(array, spec);
        const Py_buffer& own = held_[n_held_ - 1];
        if (own.ndim != 2) refuse(spec, "expected rows of numbers");
        return {all, Index(own.shape[1])};
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
        if (n_held_ == MOST) refuse(spec, "too many arrays");
        if (PyObject_GetBuffer(array.ptr(), &held_[n_held_], flags) != 0) {
            PyErr_Clear();
            refuse(spec, std::string("expected a contiguous") +
                             (flags & PyBUF_WRITABLE ? ", writable" : "") + " array");
        }
        return held_[n_held_++];
    }

    void fit(const char* spec, const Py_buffer& own, Index total) {
        const char* at = std::strchr(spec, '[');
        if (!at || (total == 0 && std::strchr(at, '?'))) return;
        const bool alone = !std::strchr(at, ' ');
        Index product = 1;
        bool fits = true;
        for (Index k = 0; *at != ']'; ++k) {
            Index number = at[1] - '0';
            Index& known = number < 10 ? number : size(at[1]);
            const Index more = at[2] == '+';
            at += more ? 4 : 2;
            if (known < 0) known = (alone ? total : k < own.ndim ? Index(own.shape[k]) : 0) - more;
            fits &= !__builtin_mul_overflow(product, known + more, &product);
            fits &= alone || own.ndim == 1 || (k < own.ndim && Index(own.shape[k]) == known + more);
        }
        if (!fits || product != total)
            refuse(spec, "expected " + std::to_string(product) + " numbers, got " + std::to_string(total) +
                             ", or other rows and columns");
    }

    // What places lead to.
    template <class T>
    void lead(const char* spec, View<const T> places) {
        const char* at = std::strpbrk(spec, "<^");
        if (!at) return;
        Index& end = size(at[1]);
        if (*at == '<') return expect_below(places, end, spec);
        if constexpr (sizeof(T) == 8) {
            const Index last = places.size() - 1;
            if (end < 0 && last >= 0) end = places[last];
            if (last < 0 || places[0] != 0 || places[last] != end)
                refuse(spec, "expected to lead from 0 to the number of entries, " + std::to_string(end));
            expect_steps(places, 0, last, end, spec);
        }
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

    static constexpr Index MOST = 48;
    Py_buffer held_[MOST];  // some of them point to themselves: they stay where they are
    Index n_held_ = 0;
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
        if (to.N == 0) refuse("weights", "expected one or more");
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
    expect_steps(layout.indptr, first, last, layout.indices.size(), "indptr");
    const Index from = layout.indptr[first];
    if (first < last) expect_below(layout.indices.part(from, layout.indptr[last] - from), n, "indices");
}

}  // namespace drmdp
