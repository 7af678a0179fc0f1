"""The processes behind `nudge serve`, and the private wire between them.

* `role` decides which of both a process is: `primary` owns the store and answers; `proxy` carries the messages of one
  client to it. `spawn` finds or starts a PRIMARY; `endpoint` says how to reach it, `server_process`
  whether a pid is it.
* `wire` defines the lines of the private wire; `client` calls an operation over a `connection`; `wire_server` listens
  in PRIMARY, and `wire_connection` is its end of one connection.
* `background` is what PRIMARY does for the database meanwhile, `diagnostics` what it reports about itself.
* `owned_files` changes Nudge's own files while no server runs; `backup_rows` checks what it restores.

Hooks and PROXYs load the standard library only: everything but `primary`, `background`, `owned_files`, `backup_rows`
and the two modules of PRIMARY's end of the wire.
"""
