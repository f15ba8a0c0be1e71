"""A proxy between an agent and its processes. It delivers their lines late, twice, in another order, in pieces, or
cut in the middle with the connection closed after that. The layer `detour` brings processes to the proxy."""
import collections
import random
import socket
import threading
import time


class MessageFaults:
    """`rates` maps "late", "twice", "pieces", "stall" and "cut" to their probability for each line."""

    def __init__(self, path, seed, rates):
        self.rates, self.seed = rates, seed
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        for number in range(1 << 30):
            try:
                process, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(process, number), daemon=True).start()

    def connect(self, process, number):
        path = b""
        while not path.endswith(b"\n"):
            byte = process.recv(1)
            if not byte:
                return process.close()
            path += byte
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            agent.connect(path[:-1].decode())
        except OSError:
            return process.close()
        link = Link(self, (process, agent))
        for name, source, target in (("up", process, agent), ("down", agent, process)):
            rng = random.Random(f"{self.seed} {number} {name}")
            threading.Thread(target=link.pump, args=(source, target, rng), daemon=True).start()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


class Link:
    def __init__(self, faults, ends):
        self.faults, self.ends = faults, ends
        self.locks = {end: threading.Lock() for end in ends}

    def cut(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pump(self, source, target, rng):
        rest, first = b"", True
        while True:
            try:
                got = source.recv(65536)
            except OSError:
                got = b""
            if not got:
                return self.cut()
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                self.deliver(target, line + b"\n", rng, first)
                first = False

    def deliver(self, target, line, rng, first):
        rates = self.faults.rates
        happens = {what: rng.random() < rate for what, rate in rates.items()}
        for what in happens:
            if happens[what] and not (first and what in ("late", "cut")):
                self.faults.count(what)
        self.faults.count("lines")
        if happens["stall"]:
            time.sleep(rng.uniform(0, 0.2))
        if happens["twice"]:
            self.later(rng.uniform(0, 0.3), target, line)
        if first:  # a process that does not say hello first is not listened to
            self.send(target, line)
        elif happens["cut"]:
            self.send(target, line[:len(line) // 2])
            self.cut()
        elif happens["late"]:  # later lines overtake this one
            self.later(rng.uniform(0, 0.3), target, line)
        elif happens["pieces"] and len(line) > 2:
            middle = rng.randrange(1, len(line) - 1)
            with self.locks[target]:
                self.send_locked(target, line[:middle])
                time.sleep(0.01)
                self.send_locked(target, line[middle:])
        else:
            self.send(target, line)

    def later(self, seconds, target, line):
        timer = threading.Timer(seconds, self.send, (target, line))
        timer.daemon = True
        timer.start()

    def send(self, target, line):
        with self.locks[target]:
            self.send_locked(target, line)

    @staticmethod
    def send_locked(target, line):
        try:
            target.sendall(line)
        except OSError:
            pass
