// Whether this processor has what a module is compiled for: DRMDP_X86_64_V is 2 or 3, or nothing.
#pragma once

#if defined(DRMDP_X86_64_V)
#include <cpuid.h>
#endif

namespace drmdp {

#if defined(DRMDP_X86_64_V)

struct Features {
    unsigned first = 0, more = 0, extended = 0;  // ecx of leaf 1, ebx of leaf 7, ecx of leaf 80000001h
    unsigned saved = 0;                          // registers that the system saves
};

inline Features features() {
    Features found;
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) found.first = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) found.more = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) found.extended = c;
    if (found.first & bit_OSXSAVE) {
        __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        found.saved = a;
    }
    return found;
}

inline bool has_level() {
    const auto all = [](unsigned have, unsigned needed) { return (have & needed) == needed; };
    const Features found = features();
    bool has = all(found.first, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) &&
               all(found.extended, 1u);  // LAHF
    if (DRMDP_X86_64_V >= 3)
        has = has && all(found.saved, 6u) && all(found.more, bit_AVX2 | bit_BMI | bit_BMI2) &&
              all(found.first, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE) &&
              all(found.extended, 1u << 5);  // LZCNT
    return has;
}

#else

inline bool has_level() { return true; }

#endif

}  // namespace drmdp
