// Functions from outside at the border: SciPy's LowLevelCallables, tuples of which the first part is a
// capsule. Its name is the signature, its context the pointer to the function's data.
#pragma once

#include "arguments.hpp"

namespace drmdp {

template <>
struct Reader<Outside> {
    static Outside read(const Fields& at) {
        Outside to;
        take({at.from, at[0]}, "row", "double (double, double *, double *, int64_t, double *, double *)", to.row);
        take({at.from, at[1]}, "bound", "double (double, double *, double *, int64_t, double)", to.bound);
        take({at.from, at[2]}, "cost", "double (double *, double *, int64_t, double, double)", to.cost);
        return to;
    }

private:
    template <class To>
    static void take(const Fields& of, const char* name, const std::string& wanted, To& to) {
        PyObject* capsule = of[0].ptr();
        if (!PyCapsule_CheckExact(capsule)) refuse(name, "expected a LowLevelCallable");
        const char* signature = PyCapsule_GetName(capsule);
        const std::string given = signature ? plain(signature) : "", own = plain(wanted);
        to.takes_data = given == own.substr(0, own.size() - 1) + ",void*)";
        if (given != own && !to.takes_data)
            refuse(name, "expected " + wanted + ", with void * for a last argument or without, got " +
                             (signature ? signature : "no signature"));
        to.address = PyCapsule_GetPointer(capsule, signature), to.data = PyCapsule_GetContext(capsule);
    }

    // Without spaces and const, and with one word for whole numbers of 8 bytes.
    static std::string plain(std::string text) {
        const auto replace = [&](const std::string& from, const char* to) {
            for (std::size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
        };
        replace("const", ""), replace(" ", "");
        for (const char* whole : {"longlong", "int64_t", "npy_intp", "intptr_t", "Py_ssize_t", "ssize_t"})
            replace(std::string(",") + whole + ",", ",#,");
        if (sizeof(long) == 8) replace(",long,", ",#,");
        return text;
    }
};

inline std::string shown(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", x);
    return text;
}

inline std::string shown(const std::vector<double>& numbers) {
    constexpr std::size_t MOST = 8;
    std::string text = "[";
    for (std::size_t j = 0; j < numbers.size() && j < MOST; ++j) text += (j ? ", " : "") + shown(numbers[j]);
    return text + (numbers.size() > MOST ? ", ...]" : "]");
}

// No function did what it must not do; the interpreter's lock is not held.
inline void expect_sound(const Fault& fault) {
    if (!fault.function) return;
    const bool cost = fault.function == std::string("cost");
    const std::string text = std::string(fault.function) + ": expected " + fault.expected + ", got " +
                             shown(fault.got) + "; y = " + shown(fault.y) + (cost ? ", z = " : ", u = ") +
                             shown(fault.u) + (cost ? ", top = " : ", size = ") + shown(fault.size);
    const nb::gil_scoped_acquire held;
    PyErr_SetString(nb::module_::import_("drmdp.errors").attr("InputError").ptr(), text.c_str());
    throw nb::python_error();
}

}  // namespace drmdp
