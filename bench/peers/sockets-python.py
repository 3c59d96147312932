"""websockets of Python for bench/workloads/sockets.rb: echo."""
import asyncio
import sys

import websockets


async def echo(websocket, *_):
    async for message in websocket:
        await websocket.send(message)


async def main():
    host, port = sys.argv[1].split(":")
    async with websockets.serve(echo, host, int(port), compression=None, ping_interval=None, backlog=4096):
        await asyncio.Future()


asyncio.run(main())
