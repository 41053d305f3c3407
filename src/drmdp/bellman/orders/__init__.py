"""Wasserstein balls of any finite order: Σ_i w_i d_iᵖ ≤ θᵖ, p ≥ 1, for rows of ℓ1, ℓ2 and ℓ∞.

Normalised as in `drmdp.layout.point`. A point of nature's set is a table of amounts R_ia ≥ 0: row (i, a) is the best one within the distance R_ia of
the data (for ℓ1 within the moved mass R_ia). Its gain g_ia(R_ia) is concave, and the distance d_i of kernel i is a norm of its amounts:

    ℓ1: d_i = 2 Σ_a R_ia,        ℓ2: d_i = √Σ_a R_ia²,        ℓ∞: d_i = max_a R_ia, so that all actions of a kernel share one amount.

Hence mixtures of points are points, and the policy is found by `drmdp.bellman.mixing`. Nature's answer to a policy x (`budget`) is a search in one multiplier:
with φ_i(r) = max {Σ_a x_a g_ia(R_ia) : d_i = r}, kernel i goes to

    λ_i ∈ ∂φ_i(r_i),        λ_i = μ ρ_i^{p−1},        ρ_i = r_i/θ,

and μ is such that T(μ) = Σ_i w_i ρ_iᵖ = 1. For any λ ≥ 0, Hölder's inequality gives with 1/p + 1/p* = 1

    f(x) ≤ U = Σ_a x_a (cost_a + V⁰_a) + Σ_i w_i max_r [φ_i(r) − λ_i r] + θ (Σ_i w_i λ_i^{p*})^{1/p*},

so that U holds wherever the search ends. r_i(μ) may jump, always so for p = 1: there the answers on both sides of the jump are mixed.

`l1`, `l2` and `linf` answer for the kernels at a price μ, `budget` finds μ, `curvature` has the Hessian of f for p > 1, `interior` solves
ℓ2 with p ≤ 2 where Newton's method on f does not, and `sweep` joins all to families.
"""
