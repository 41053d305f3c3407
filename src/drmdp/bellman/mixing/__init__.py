"""A policy against a mixture of the N kernels: the saddle point of a matrix game whose columns nature may weight within a ball.

`answers` has nature's answer to a policy, for each kind of ball; `newton` finds the policy where that answer is smooth, `play` where it is not, and
`interior` where both stall. All of them see a `Game`: numbers A × N, whatever the number of states.
"""
