"""The server as a client of the PyPI `mcp` package sees it; what to start comes from the environment."""

import json
import os
import sys

from mcp import Client, StdioServerParameters


class Refused(Exception):
    """A tool error: its code, and the message behind it."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


def connect(mode):
    """A client in `legacy`, `auto` or `2026-07-28` mode, not entered yet."""
    command, *arguments = json.loads(os.environ["SERVE"])
    parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    return Client(parameters, mode=mode, read_timeout_seconds=30)


async def call(client, tool, progress=None, **arguments):
    """The structured content of a call; a tool error is raised."""
    result = await client.call_tool(tool, arguments, progress_callback=progress)
    if result.is_error:
        raise Refused(json.loads(result.content[0].text)["error"])
    return result.structured_content


def expect(holds, *facts):
    """An assertion that shows what it looked at, and ends at once: task groups would bury it."""
    if not holds:
        line = sys._getframe(1).f_lineno
        print(f"line {line}: not as expected:", *facts, sep="\n", file=sys.stderr, flush=True)
        os._exit(1)
