"""PRIMARY and PROXY: the processes behind `nudge serve`, and the interfaces of the one that holds the store.

`role.serve` decides which of both a process is. PRIMARY (`primary`) composes the application with its interfaces: the
private wire (`ipc_handler`), HTTP (`http`, `jsonrpc`, `rest`), and its own client's pipe (`mcp_server`). PROXY
(`proxy`) carries one client's messages to it. MCP is answered by `mcp` without the SDK, by `mcp_server` for every
interface, and by `mcp_sdk`. Every interface is made from `operations`, a table of `operation.Operation`. `diagnostics`
is what PRIMARY reports about itself.
"""
