"""The private wire between the processes of one user, and which of them is PRIMARY.

`client.Client` calls an operation; `server.WireServer` answers, on the lines that `protocol` defines: `connection` is
the client's end of a connection, `server_connection` PRIMARY's. `spawn` finds or starts a PRIMARY, `nudge.locks`
decides which process is one, `endpoint` says how to reach it, and `holder` whether a pid is the server. Everything but
`server` and `server_connection` is standard library: hooks and PROXYs load it.
"""
