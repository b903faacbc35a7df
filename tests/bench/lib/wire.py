"""The little of the protocol that scenes need beside mq-bench and mq-admin: thousands of requests on one connection."""
import json
import socket
import struct
import time

from machine import fail

UPDATE_TOPIC, UPDATE_GROUP, PULL, SEND = 17, 200, 11, 310
AT_ONCE = 100       # requests on their way, so that neither side has to wait for the other to read


class Wire:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.stream = self.socket.makefile("rb")
        self.n = 0

    def send(self, code, fields, body=b""):
        self.n += 1
        head = json.dumps(dict(code=code, language="JAVA", version=453, opaque=self.n, flag=0, extFields=fields)).encode()
        self.socket.sendall(struct.pack(">II", 4 + len(head) + len(body), len(head)) + head + body)

    def answer(self):
        """Header of the next answer."""
        size, head = struct.unpack(">II", self.stream.read(8))
        rest = self.stream.read(size - 4)
        return json.loads(rest[:head & 0xffffff])

    def ask_all(self, requests):
        """Send them all, (code, fields, body) each; every one must succeed."""
        open_ones = 0
        for code, fields, body in requests:
            self.send(code, fields, body)
            open_ones += 1
            while open_ones >= AT_ONCE:
                self.take()
                open_ones -= 1
        for _ in range(open_ones):
            self.take()

    def take(self):
        a = self.answer()
        if a["code"]:
            fail(f"a request was refused: {a['code']} {a.get('remark')}")

    def close(self):
        self.stream.close()
        self.socket.close()


def topic(name, queues):
    return UPDATE_TOPIC, dict(topic=name, defaultTopic="TBW102", readQueueNums=str(queues), writeQueueNums=str(queues), perm="6",
                              topicFilterType="SINGLE_TAG", topicSysFlag="0", order="false"), b""


def group(name):
    return UPDATE_GROUP, {}, json.dumps(dict(groupName=name, consumeEnable=True, consumeBroadcastEnable=True, retryQueueNums=1,
                                             retryMaxTimes=16, brokerId=0, whichBrokerWhenConsumeSlowly=1)).encode()


def send(name, queue):
    return SEND, dict(a="bench", b=name, c="TBW102", d="8", e=str(queue), f="0", g=str(int(time.time() * 1000)), h="0", i="", j="0",
                      k="false", m="false"), b"x" * 128


def pull(name, queue, consumer_group, offset=0, wait_ms=600000):
    return PULL, dict(consumerGroup=consumer_group, topic=name, queueId=str(queue), queueOffset=str(offset), maxMsgNums="32",
                      sysFlag="6", commitOffset="0", suspendTimeoutMillis=str(wait_ms), subscription="*", subVersion="0",
                      expressionType="TAG"), b""
