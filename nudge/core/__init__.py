"""What every room shares.

* Plain values, standard library only: `errors`, `limits`, `clock`, `context`, `repos`, `paths`, `text`, `words`,
  `files`, `streams`, `locks`, and the readers of JSON (`thin_json`, `strict_json`, `json_reader`).
* Decisions that several rooms take: `visibility` (what a caller may see of private projects), `branches` (where what
  was made on one branch holds), `scoring` (the parts of every score), `programs` (which programs do which job).
* The application: `operation` is the registry, `call` says who calls and has the base models of parameters and
  results, `aliases` the other names of parameters, and `app` executes operations on one hint lifetime and one database.
"""
