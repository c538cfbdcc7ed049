"""Conversations that an agent has through the server, one per program; the first argument names it."""

import asyncio
import sys

from server import call, connect, expect


class Talk:
    """One process and what is said to it."""

    def __init__(self, client, proc_id):
        self.client = client
        self.proc_id = proc_id

    @classmethod
    async def begin(cls, client, argv, until, **arguments):
        started = await call(
            client, "proc_start", argv=argv, until=until, initial_read_timeout_ms=5000, **arguments
        )
        talk = cls(client, started["proc_id"])
        if "matched" not in started:
            await talk.hear(until)
        return talk

    async def hear(self, until):
        heard = await call(
            self.client, "proc_read", proc_id=self.proc_id, until=until, timeout_ms=10_000, strip_ansi=True
        )
        expect("matched" in heard, f"`{until}` never came", heard)
        return heard["output"]

    async def ask(self, text, until, **arguments):
        """Says a line and waits for the answer, in one call."""
        sent = await call(
            self.client, "proc_send", proc_id=self.proc_id, input=text, until=until, wait_ms=10_000,
            strip_ansi=True, **arguments,
        )
        expect("matched" in sent, f"`{until}` never came after `{text}`", sent)
        return sent["output"]

    async def type(self, keys):
        """Says something whose effect is on the screen."""
        sent = await call(self.client, "proc_send", proc_id=self.proc_id, input=keys, newline=False)
        expect(sent["acknowledged"], sent)

    async def leave(self, text, code=0, **arguments):
        """Says the last word; the program must then end by itself."""
        sent = await call(
            self.client, "proc_send", proc_id=self.proc_id, input=text, wait_ms=10_000, **arguments
        )
        expect(sent["state"] == "exited" and sent["exit_code"] == code, sent)

    async def screen(self):
        read = await call(self.client, "proc_read", proc_id=self.proc_id, format="screen", timeout_ms=0)
        return read["screen"].splitlines()


async def python3(client):
    for pty in (False, True):
        # The prompt goes to stderr; in one pipe it keeps its place behind the answer.
        argv = ["python3", "-iq"] if pty else ["sh", "-c", "exec python3 -iq 2>&1"]
        talk = await Talk.begin(client, argv, ">>> $", pty=pty)
        expect("42" in await talk.ask("6 * 7", ">>> $"))
        await talk.ask("import math; x = math.factorial(20)", ">>> $")
        expect("2432902008176640000" in await talk.ask("x", ">>> $"), "it remembers")
        expect("ZeroDivisionError" in await talk.ask("1 / 0", ">>> $"))
        await talk.ask("def square(n):", r"\.\.\. $")
        await talk.ask("    return n * n", r"\.\.\. $")
        await talk.ask("", ">>> $")
        expect("144" in await talk.ask("square(12)", ">>> $"))
        await talk.ask("input('name? ')", r"name\? $")
        expect("'Ada'" in await talk.ask("Ada", ">>> $"))
        await talk.leave("exit(3)", code=3)


async def bash(client):
    talk = await Talk.begin(client, ["bash", "--norc", "-i"], "say> $", pty=True, env={"PS1": "say> "})
    await talk.ask("cd /tmp && x=7", "say> $")
    expect("/tmp 7" in await talk.ask("echo $PWD $x", "say> $"), "it remembers")
    expect("status 1" in await talk.ask("false; echo status $?", "say> $"))
    # What says that it has begun is what gets the key: a shell between two commands would lose it.
    await talk.ask("sh -c 'echo be\"\"gun; exec sleep 1000'", "begun\n")
    await talk.ask("\x03", "say> $", newline=False)
    expect("[1]+" in await talk.ask("sleep 1000 & jobs", "say> $"), "jobs can be controlled")
    expect("Terminated" in await talk.ask("kill %1; wait %1", "say> $"))
    await talk.leave("exit 5", code=5)


async def node(client):
    talk = await Talk.begin(client, ["node", "-i"], "> $")
    expect("[ 1, 4, 9 ]" in await talk.ask("[1, 2, 3].map(n => n * n)", "> $"))
    await talk.ask("const later = await Promise.resolve(42)", "> $")
    expect("42" in await talk.ask("later", "> $"), "it remembers")
    expect("ReferenceError" in await talk.ask("nothing", "> $"))
    await talk.leave(".exit")


async def sqlite3(client):
    argv = ["sh", "-c", "exec sqlite3 -interactive test.db 2>&1"]
    talk = await Talk.begin(client, argv, "sqlite> $")
    await talk.ask("create table t (n integer, word text);", "sqlite> $")
    await talk.ask("insert into t values (1, 'one'), (2, 'two');", "sqlite> $")
    expect("two|2" in await talk.ask("select word, n from t where n = 2;", "sqlite> $"))
    expect("no such table" in await talk.ask("select * from missing;", "sqlite> $"))
    # It remembers that a statement failed.
    await talk.leave(".quit", code=1)
    ran = await call(client, "run", argv=["sqlite3", "test.db", "select count(*) from t"])
    expect(ran["stdout"] == "2\n", ran)


PROGRAM = r"""
#include <stdio.h>
int square(int n) {
    int result = n * n;
    return result;
}
int main(void) {
    int total = 0;
    for (int i = 1; i <= 3; i++) total += square(i);
    printf("total %d\n", total);
    return 0;
}
"""


async def gdb(client):
    await call(client, "run", argv=["tee", "program.c"], stdin=PROGRAM)
    built = await call(client, "run", argv=["gcc", "-g", "-O0", "-o", "program", "program.c"])
    expect(built["exit_code"] == 0, built)
    argv = ["gdb", "--quiet", "--nx", "-ex", "set pagination off", "-ex", "set debuginfod enabled off", "./program"]
    talk = await Talk.begin(client, argv, r"\(gdb\) $")
    expect("Breakpoint 1" in await talk.ask("break square", r"\(gdb\) $"))
    expect("square (n=1)" in await talk.ask("run", r"\(gdb\) $"))
    registers = await talk.ask("info registers", r"\(gdb\) $")
    expect("rip" in registers or "pc" in registers, registers)
    expect("return result" in await talk.ask("step", r"\(gdb\) $"))
    expect("= 1" in await talk.ask("print result", r"\(gdb\) $"))
    trace = await talk.ask("backtrace", r"\(gdb\) $")
    expect("#0  square" in trace and "#1 " in trace and "main" in trace, trace)
    expect("square (n=2)" in await talk.ask("continue", r"\(gdb\) $"))
    await talk.ask("delete", r"\(gdb\) $")
    expect("total 14" in await talk.ask("continue", r"\(gdb\) $"))
    await talk.leave("quit")


async def vim(client):
    argv = ["vim", "-u", "NONE", "-N", "text"]
    talk = await Talk.begin(client, argv, "text", pty=True, rows=12, cols=60, env={"TERM": "xterm"})
    screen = await talk.screen()
    expect(screen[1] == "~", "an empty file", screen)
    await talk.type("ifirst line\rsecond line")
    await settled(talk, "second line")
    await talk.type("\x1b:set number\r")
    screen = await settled(talk, "1 first line")
    expect("2 second line" in screen[1], screen)
    await talk.leave(":wq\r", newline=False)
    ran = await call(client, "run", argv=["cat", "text"])
    expect(ran["stdout"] == "first line\nsecond line\n", ran)


async def settled(talk, text):
    """The screen once the text is on it."""
    for _ in range(50):
        screen = await talk.screen()
        if any(text in line for line in screen):
            return screen
        await call(talk.client, "proc_read", proc_id=talk.proc_id, quiet_ms=50, timeout_ms=200)
    expect(False, f"`{text}` is not on the screen", screen)


async def main(name):
    async with connect("auto") as client:
        await globals()[name](client)
        running = await call(client, "proc_list", state="running")
        expect(running["processes"] == [], running)


asyncio.run(main(sys.argv[1]))
