"""Security: checks of untrusted input.

* `secrets`: finding and redacting credentials; `rules` and `formats` are its tables, `credentials` judges a value,
  `names` the name before it, `randomness` its characters.
* `absolute_paths`: checking and normalizing paths.
* `patterns`: users' globs and regular expressions, at bounded cost; `ignore_globs`: the globs of a hook, without a
  library.
"""
