"""The least that aiohttp can do for a JSON request: parse the body, answer an empty object. Prints its port."""

from __future__ import annotations

import asyncio

from aiohttp import web


async def _answer(request: web.Request) -> web.Response:
    await request.json()
    return web.json_response({})


async def _serve() -> None:
    app = web.Application()
    app.router.add_post("/", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
