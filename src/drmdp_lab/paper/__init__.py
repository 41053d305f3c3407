"""The paper's experiments, and what it did not try, as data: a specification, a runner, rows on
disk, pictures and tables of the rows.

`specification` says what is run (instances × methods × rules × seeds), `measure` runs one of them,
`rows` keeps what came out in a file that is only appended to, `runner` goes through what is not
there yet, and `figures`, `tables` and `claims` are functions of the rows alone.
"""
