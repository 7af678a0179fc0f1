"""The interfaces of PRIMARY, all made from the registry of operations (`operations` lists the modules).

* `wire` executes the calls of the private socket.
* `public_port` opens the port; `http` serves it, with `http_connections`, `jsonrpc` and `rest`
  (with OpenAPI, from `schemas`).
* `mcp` answers MCP without the SDK, `mcp_sdk` with it, `mcp_server` for every interface; `stdio` is the pipe.
"""
