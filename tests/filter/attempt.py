"""Tries system calls, one per line of stdin, each in a child of its own, and prints what came of each.

A line is a number (or `int80:number`, the i386 way in) and its arguments: integers, or text in
double quotes, which is passed as a pointer. The answer is an errno, 0 for success, or `signal N`.
"""
import ctypes, mmap, os, shlex, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def word(token):
    if token.startswith('"'):
        return ctypes.c_char_p(token[1:-1].encode())
    return ctypes.c_ulong(int(token, 0) & 0xFFFFFFFFFFFFFFFF)


def through_int80(number):
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, number; xor ebx, ebx; int 0x80; pop rbx; ret
    code.write(b"\x53\xb8" + number.to_bytes(4, "little") + b"\x31\xdb\xcd\x80\x5b\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return -result if -4096 < result < 0 else 0


def attempt(call, arguments):
    if call.startswith("int80:"):
        return through_int80(int(call[6:]))
    result = libc.syscall(ctypes.c_long(int(call, 0)), *map(word, arguments))
    return ctypes.get_errno() if result == -1 else 0


for line in sys.stdin:
    call, *arguments = shlex.split(line, posix=False)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(attempt(call, arguments)).encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 100).decode()
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        answer = f"signal {os.WTERMSIG(status)}"
    print(answer or "nothing", flush=True)
