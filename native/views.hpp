// Views of arrays that others own. Builds with DRMDP_CHECKED look at every index; elsewhere a view
// is a pointer and a length.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#if defined(DRMDP_CHECKED)
#define DRMDP_EXPECT(condition)                                                                 \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);       \
            std::abort();                                                                       \
        }                                                                                       \
    } while (false)
#else
#define DRMDP_EXPECT(condition) static_cast<void>(0)
#endif

#define DRMDP_INLINE inline __attribute__((always_inline))

namespace drmdp {

using Index = std::int64_t;

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double EPSILON = std::numeric_limits<double>::epsilon();

// `size` numbers in a row.
template <class T>
class View {
public:
    View() = default;
    View(T* first, Index size) : first_(first), size_(size) {}
    template <class U>
    View(const View<U>& other) : first_(other.data()), size_(other.size()) {}

    DRMDP_INLINE T& operator[](Index k) const {
        DRMDP_EXPECT(0 <= k && k < size_);
        return first_[k];
    }
    // The n numbers from `first` on.
    DRMDP_INLINE View part(Index first, Index n) const {
        DRMDP_EXPECT(0 <= first && 0 <= n && first + n <= size_);
        return {first_ + first, n};
    }
    // Where n numbers begin that may be read at once.
    DRMDP_INLINE T* at(Index first, [[maybe_unused]] Index n) const {
        DRMDP_EXPECT(0 <= first && first + n <= size_);
        return first_ + first;
    }
    DRMDP_INLINE Index size() const { return size_; }
    DRMDP_INLINE bool empty() const { return size_ == 0; }
    DRMDP_INLINE T* data() const { return first_; }
    DRMDP_INLINE T* begin() const { return first_; }
    DRMDP_INLINE T* end() const { return first_ + size_; }

private:
    T* first_ = nullptr;
    Index size_ = 0;
};

// Rows of equal length, one after the other.
template <class T>
class Table {
public:
    Table() = default;
    Table(View<T> all, Index columns) : all_(all), columns_(columns) {}
    template <class U>
    Table(const Table<U>& other) : all_(other.all()), columns_(other.columns()) {}

    DRMDP_INLINE View<T> operator[](Index row) const { return all_.part(row * columns_, columns_); }
    DRMDP_INLINE Index columns() const { return columns_; }
    DRMDP_INLINE View<T> all() const { return all_; }

private:
    View<T> all_;
    Index columns_ = 0;
};

}  // namespace drmdp
