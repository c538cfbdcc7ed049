"""The PyPI `mcp` client against the server, in the era named by the first argument."""

import asyncio
import sys
import time

import anyio
from mcp import MCPError
from server import Refused, call, connect, expect


async def lists(client, mode):
    version = client.protocol_version
    expect((version == "2026-07-28") == (mode != "legacy"), mode, version)
    # A client that says at once which version it speaks has not been greeted.
    expect(mode == "2026-07-28" or len(client.instructions.splitlines()) >= 5, client.instructions)
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    expect({"run", "proc_start", "proc_send", "proc_read", "proc_stop", "health"} <= tools.keys(), tools.keys())
    expect(all(tool.output_schema and tool.annotations for tool in tools.values()), tools)


async def runs(client):
    ran = await call(client, "run", argv=["printf", "%s", "a b $HOME é"])
    expect(ran["stdout"] == "a b $HOME é" and ran["exit_code"] == 0, ran)
    ran = await call(client, "run", command="yes | head -c 300000", max_output_bytes=200_000)
    expect(ran["stdout_bytes"] == 300_000 and len(ran["stdout"]) > 150_000, ran["stdout_bytes"], len(ran["stdout"]))
    ran = await asyncio.gather(*[call(client, "run", command=f"sleep 0.2; echo {n}") for n in range(4)])
    expect([one["stdout"] for one in ran] == [f"{n}\n" for n in range(4)], ran)


async def refuses(client):
    for arguments in [{}, {"argv": ["sudo", "id"]}, {"argv": ["true"], "cwd": "/etc"}, {"argv": ["true"], "no": 1}]:
        try:
            expect(False, await call(client, "run", **arguments))
        except Refused as refused:
            expect(refused.code in ("INVALID_ARGUMENT", "COMMAND_NOT_ALLOWED", "PATH_NOT_ALLOWED"), refused)
    try:
        expect(False, await client.call_tool("no_such_tool", {}))
    except MCPError as error:
        expect(error.error.code == -32602, error)


async def talks(client):
    started = await call(client, "proc_start", argv=["cat"], initial_read_timeout_ms=0)
    for word in ("one", "two"):
        sent = await call(
            client, "proc_send", proc_id=started["proc_id"], input=word, wait_ms=5000, until="\n"
        )
        expect(sent["output"] == f"{word}\n", sent)
    stopped = await call(client, "proc_stop", proc_id=started["proc_id"])
    expect(stopped["success"] and stopped["reason"] == "stopped", stopped)


async def progresses(client):
    told = []

    async def progress(figure, total, message):
        told.append((figure, message))

    script = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done"
    ran = await call(client, "run", progress=progress, command=script)
    expect(told and told == sorted(told) and ran["stdout_bytes"] == 56, told, ran)


async def cancels(client):
    with anyio.move_on_after(0.5):
        await call(client, "run", command="setsid sleep 1001 & sleep 1001")
        expect(False, "it was not canceled")
    deadline = time.monotonic() + 5
    while (await call(client, "proc_list", state="running"))["processes"]:
        expect(time.monotonic() < deadline, "a canceled command still runs")
    last = (await call(client, "proc_list"))["processes"][-1]
    expect(last["reason"] == "canceled", last)


async def main(mode):
    async with connect(mode) as client:
        await lists(client, mode)
        await runs(client)
        await refuses(client)
        await talks(client)
        await progresses(client)
        await cancels(client)
        await call(client, "proc_start", argv=["sleep", "1002"], initial_read_timeout_ms=0)
        leaving = time.monotonic()
    # The package waits two seconds before it kills.
    took = time.monotonic() - leaving
    expect(took < 1.9, f"the server took {took:.1f} s to end")


asyncio.run(main(sys.argv[1]))
