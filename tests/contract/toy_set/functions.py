"""The rows of contamination, functions of ctypes: a share r of the mass goes to the top, where the
stake is 0, so that the value is (1 − r) ŷ·u.

The cost of a row is the largest share that an entry has lost. y, z and a sum of K are off by `off`
ε and K ε, relatively.
"""

from ctypes import CFUNCTYPE, POINTER, c_double, c_int64

EPS = 2.0**-52
ROW = POINTER(c_double)


@CFUNCTYPE(c_double, c_double, ROW, ROW, c_int64, ROW, ROW)
def row(radius, y, u, K, z, more):
    share = min(radius, 1.0)
    for j in range(K):
        z[j] = (1.0 - share) * y[j]
    return share


@CFUNCTYPE(c_double, c_double, ROW, ROW, c_int64, c_double)
def bound(radius, y, u, K, off):
    return (
        (1.0 - min(radius, 1.0)) * sum(y[j] * u[j] for j in range(K)) * (1.0 - (off + K + 4) * EPS)
    )


@CFUNCTYPE(c_double, ROW, ROW, c_int64, c_double, c_double)
def cost(y, z, K, top, off):
    lost = [1.0 - z[j] / y[j] for j in range(K) if y[j] > 0.0]
    return max([top, *lost]) + (2 * off + 4) * EPS
