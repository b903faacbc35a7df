#!/usr/bin/env python3
"""Replay captured requests to our servers and hold the answers against the captured ones.

usage: replay.py NAMESRV BROKER DIR...      host:port of each; DIR holds NAME.req.bin and NAME.resp.bin

The broker is called broker-a, of DefaultCluster, and knows another name server than this one, which knows no broker.

Each request is sent in a state that makes its answer what it was: topics, groups, messages, clients are made from what request
and captured answer say.  Then all must be equal but what DIFFERS names, request by request, with the reason.  The type of header
is not compared: the captured broker answered in the one it was started with, ours answers in that of the request.

One line for each exchange: "ok", "not ok" or "skip", name, what differs.  Status 1 if any is "not ok".
"""
import glob, json, os, re, socket, struct, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peer", "disk"))
import rmqstore_dump

# ---- What may differ ---------------------------------------------------------------------------------------------------------
# Names of fields of header or body, wherever they stand; True: only the shape of the body counts (names of members, kinds of values).
EVERYWHERE = {
    "msgId": "made of address and place in the log", "transactionId": "an id", "offsetMsgId": "made of address and place in the log",
    "bornTimestamp": "time", "storeTimestamp": "time", "timestamp": "time", "lastUpdateTimestamp": "time", "lastTimestamp": "time",
    "bornHost": "address", "storeHost": "address", "clientAddr": "address", "brokerAddr": "address",
    "commitLogOffset": "place in the log", "physicOffset": "place in the log", "storeSize": "lengths of names", "physicSize": "the same",
    "preparedTransactionOffset": "place in the log", "bodyCRC": "compared as body",
}
DIFFERS = {
    "HEART_BEAT": {"IS_SUB_CHANGE": "whether the group was known before"},
    "GET_ALL_TOPIC_CONFIG": True,               # topics of that day
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": True,
    "GET_BROKER_CONSUME_STATS": True,
    "GET_BROKER_HA_STATUS": {"masterCommitLogMaxOffset": "size of the log"},
    "QUERY_MESSAGE": {"indexLastUpdateTimestamp": "time", "indexLastUpdatePhyoffset": "place in the log"},
    "GET_COLD_DATA_FLOW_CTR_INFO": {"globalColdReadThreshold": "a setting"},
    "POP_MESSAGE": {"popTime": "time", "reviveQid": "in turn", "restNum": "all of the topic",
                    "startOffsetInfo": "the queue that the turn has come to", "msgOffsetInfo": "the same"},
    "CHANGE_MESSAGE_INVISIBLETIME": {"popTime": "time", "reviveQid": "in turn"},
    "GET_CONSUME_STATS": {"consumeTps": "of the last minute"},
    "VIEW_BROKER_STATS_DATA": True,             # figures of the moment
    "GET_SYSTEM_TOPIC_LIST_FROM_BROKER": {"topicList": "one more for each broker and cluster name, and for what has been used"},
}
# Members that only ours tells.
OURS = {"GET_BROKER_HA_STATUS": {"refused"}} # slaves that were turned away
# Requests whose refusals are explained in words of ours, which name what would be right.
OWN_WORDS = {"SEND_MESSAGE", "SEND_MESSAGE_V2", "UPDATE_AND_CREATE_TOPIC", "CHECK_CLIENT_CONFIG", "PULL_MESSAGE"}
PULL_WORDS = {"FOUND", "NO_MATCHED_MESSAGE", "NO_MESSAGE_IN_QUEUE", "OFFSET_OVERFLOW_ONE", "OFFSET_OVERFLOW_BADLY", "OFFSET_TOO_SMALL",
              "OFFSET_RESET", "NO_MATCHED_LOGIC_QUEUE", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL"} # these count
# What a remark says in the peer where nobody has set one.
UNSET = "not set any response code"
# The words of a remark that may differ, as patterns.
REMARKS = [
    (r"Producer: [^ ]*:\d+", "Producer: HOST"),          # address
    (r"/?\d+\.\d+\.\d+\.\d+:\d+", "HOST"),
    (r"V\d+_\d+_\d+(_SNAPSHOT)?", "VERSION"),
]
# Not served, with the reason; a code of 3 is right.
NOT_SERVED = {2003: "reads of cold data are not limited"}
# Requests that the broker sends to clients; their captures are its own.
TO_CLIENT = {39, 40, 326}
# Settings and figures: the Java servers have some that mean nothing to ours, and the reverse.  By code: name, those that have to be
# there, and how many of theirs at least.
CONFIGS = {26: ("GET_BROKER_CONFIG", r"(broker|auto|flush|file|max|mapped|transaction|listen|default)[A-Z]\w*$", 100),
           319: ("GET_NAMESRV_CONFIG", r"(listenPort|bindAddress|kvConfigPath|orderMessageEnable)$", 5),
           28: ("GET_BROKER_RUNTIME_INFO", r"(msg|commitLog(Max|Min)|putTps|get|boot|broker|start|dispatch)\w*$", 30)}

NAMESRV_CODES = {100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 318, 319, 327}


# ---- Frames ------------------------------------------------------------------------------------------------------------------

class Frame:
    def __init__(self, code, ext, body=b"", flag=0, remark=None, opaque=0, binary=False):
        self.code, self.ext, self.body, self.flag, self.remark, self.opaque, self.binary = code, ext, body, flag, remark, opaque, binary
        self.language, self.version = "JAVA", 453

    @staticmethod
    def parse(raw):
        length, word = struct.unpack_from(">iI", raw, 0)
        head, body = raw[8:8 + (word & 0xFFFFFF)], raw[8 + (word & 0xFFFFFF):4 + length]
        if word >> 24 == 0:
            j = json.loads(head)
            f = Frame(j["code"], j.get("extFields") or {}, body, j.get("flag", 0), j.get("remark"), j.get("opaque", 0))
            f.language, f.version = j.get("language"), j.get("version")
            return f
        code, _, version, opaque, flag, n = struct.unpack_from(">hBhiii", head, 0)
        at = 17
        remark = head[at:at + n].decode() if n else None
        at += n + 4
        ext = {}
        while at < len(head):
            n, = struct.unpack_from(">h", head, at)
            key, at = head[at + 2:at + 2 + n].decode(), at + 2 + n
            n, = struct.unpack_from(">i", head, at)
            ext[key], at = head[at + 4:at + 4 + n].decode(), at + 4 + n
        f = Frame(code, ext, body, flag, remark, opaque, True)
        f.version = version
        return f

    def bytes(self):
        if self.binary:
            ext = b"".join(struct.pack(">h", len(k.encode())) + k.encode() + struct.pack(">i", len(v.encode())) + v.encode()
                           for k, v in self.ext.items())
            remark = (self.remark or "").encode()
            head = struct.pack(">hBhiii", self.code, 0, self.version, self.opaque, self.flag, len(remark)) + remark + struct.pack(">i", len(ext)) + ext
            word = 1 << 24 | len(head)
        else:
            head = json.dumps({"code": self.code, "extFields": self.ext, "flag": self.flag, "language": self.language, "opaque": self.opaque,
                               "serializeTypeCurrentRPC": "JSON", "version": self.version, **({"remark": self.remark} if self.remark else {})},
                              ensure_ascii=False).encode()
            word = len(head)
        return struct.pack(">iI", 4 + len(head) + len(self.body), word) + head + self.body


class Conn:
    """A connection that asks, and answers what it is asked."""

    def __init__(self, address, answers=None):
        host, port = address.rsplit(":", 1)
        self.s = socket.create_connection((host, int(port)), 20)
        self.s.settimeout(20)
        self.answers, self.next, self.got = answers or {}, 1, {}
        self.change = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            f = self.s.makefile("rb")
            while True:
                head = f.read(4)
                if len(head) < 4:
                    break
                frame = Frame.parse(head + f.read(struct.unpack(">i", head)[0]))
                if frame.flag & 1:
                    with self.change:
                        self.got[frame.opaque] = frame
                        self.change.notify_all()
                elif not frame.flag & 2:
                    code, ext, body = self.answers.get(frame.code, (0, {}, b""))
                    self.s.sendall(Frame(code, ext, body, 1, None, frame.opaque, frame.binary).bytes())
        except OSError:
            pass
        with self.change:
            self.got[None] = None
            self.change.notify_all()

    def ask(self, frame, seconds=20):
        frame.opaque, self.next = self.next, self.next + 1
        self.s.sendall(frame.bytes())
        if frame.flag & 2:
            return None
        with self.change:
            if not self.change.wait_for(lambda: frame.opaque in self.got or None in self.got, seconds):
                raise AssertionError("no answer")
            if frame.opaque not in self.got:
                raise AssertionError("the connection was closed")
            return self.got.pop(frame.opaque)

    def do(self, code, ext=None, body=b""):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        r = self.ask(Frame(code, {k: str(v) for k, v in (ext or {}).items()}, body))
        if r.code:
            raise AssertionError("preparing with request %d: code %d %s" % (code, r.code, r.remark))
        return r

    def close(self):
        try:
            self.s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def load(body):
    """JSON as the peer writes it: bare integers and whole objects as names."""
    text = body.decode()
    text = re.sub(r'([{,])(-?\d+):', r'\1"\2":', text)
    text = re.sub(r'([{,])(\{[^{}]*\}):', lambda m: m.group(1) + json.dumps(m.group(2)) + ":", text)
    return json.loads(text)


def records(body):
    at, out = 0, []
    while at < len(body):
        m = rmqstore_dump.message(body, at)
        out.append(m)
        if not m:
            break
        m["body"] = body[at:at + m["storeSize"]]
        n = struct.unpack_from(">i", m["body"], 84 + (12 if m["sysFlag"] & 0x10 else 0) + (12 if m["sysFlag"] & 0x20 else 0))[0]
        start = 88 + (12 if m["sysFlag"] & 0x10 else 0) + (12 if m["sysFlag"] & 0x20 else 0)
        m["body"] = m["body"][start:start + n]
        at += m["storeSize"]
    return out


# ---- A state in which the answer is what it was -----------------------------------------------------------------------------------

PROPS = "UNIQ_KEY\x01%032X\x02WAIT\x01true\x02"
serial = int(time.time() * 1000) << 20


def pairs(text):
    return dict(p.split("\x01", 1) for p in text.split("\x02") if "\x01" in p)


class State:
    def __init__(self, namesrv, broker):
        self.namesrv, self.broker, self.ns, self.b, self.clients = namesrv, broker, Conn(namesrv), Conn(broker), []
        self.registered = []

    def topic(self, name, queues=4, perm=6):
        if name.startswith("SCHEDULE_") or name.endswith("_REPLY_TOPIC") or name.startswith("RMQ_SYS"):
            return
        self.b.do(215, {"topic": name})
        self.b.do(17, {"topic": name, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues, "perm": perm,
                       "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"})

    def group(self, name, **change):
        self.b.do(200, {}, {"groupName": name, "consumeEnable": True, "consumeBroadcastEnable": True, "consumeFromMinEnable": True,
                            "retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
                            "notifyConsumerIdsChangedEnable": True, **change})

    def send(self, topic, queue, body=b"x", props=None, flag=0, sysflag=0, times=0):
        global serial
        serial += 1
        return self.b.do(310, {"a": "prepare", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": sysflag, "g": 1, "h": flag,
                               "i": props if props is not None else PROPS % serial, "j": times, "k": "false", "m": "false"}, body)

    def fill(self, topic, queue, upto, known=(), props=None):
        """The queue has so many messages; those that an answer showed are in it as they were."""
        at = {m["queueOffset"]: m for m in known}
        for i in range(upto):
            m = at.get(i)
            if m:
                p = {k: v for k, v in m["properties"].items() if k not in ("DELAY", "REAL_TOPIC", "REAL_QID", "MSG_REGION", "TRACE_ON", "CLUSTER")
                     and not k.startswith("TIMER_") and k not in ("TRAN_MSG", "REAL_TOPIC", "REAL_QID")}
                self.send(topic, queue, m["body"], "".join("%s\x01%s\x02" % x for x in p.items()), m["flag"], m["sysFlag"] & ~0xC, m["reconsumeTimes"])
            else:
                self.send(topic, queue, props=props)

    def client(self, id, group=None, topic=None, expr="*", version=1, kind="TAG", producer=None, model="CLUSTERING", answers=None):
        c = Conn(self.broker, answers)
        self.clients.append(c)
        consumers = [] if not group else [{
            "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": model, "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "unitMode": False, "subscriptionDataSet": [] if topic is None else [{
                "topic": topic, "subString": expr, "tagsSet": [] if expr == "*" or kind != "TAG" else expr.split("||"), "codeSet": [],
                "classFilterMode": False, "expressionType": kind, "subVersion": version}]}]
        c.do(34, {}, {"clientID": id, "producerDataSet": [{"groupName": producer}] if producer else [], "consumerDataSet": consumers})
        return c

    def register(self, topics, name="broker-a", addr="127.0.0.1:28911", cluster="DefaultCluster"):
        table = {t: {"topicName": t, "readQueueNums": n, "writeQueueNums": n, "perm": p, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0,
                     "order": False, "attributes": {}} for t, n, p in topics}
        who = {"brokerName": name, "brokerAddr": addr, "clusterName": cluster, "brokerId": 0}
        if len(table) == 1: # that of a single topic is only taken of a broker that is known
            table["Another"] = {**table[topics[0][0]], "topicName": "Another"}
        for left in self.registered:
            self.ns.do(104, left)
        self.registered = [who]
        self.ns.do(103, {**who, "haServerAddr": "127.0.0.1:28912", "compressed": "false", "enableActingMaster": "false"},
                   {"topicConfigSerializeWrapper": {"topicConfigTable": table, "dataVersion": {"counter": 1, "stateVersion": 0,
                    "timestamp": int(time.time() * 1000)}}, "filterServerList": []})

    def end(self):
        for c in self.clients:
            c.close()
        if self.clients:
            time.sleep(0.05)
        self.clients = []


PULL, LITE = 11, 361


def prepare(s, q, a):
    """Makes the state for request q with captured answer a (None: it had none); may change times and places in q."""
    code, x = q.code, q.ext
    want = a.code if a else 0
    if code in (10, 310, 320, 324, 325):
        topic, queue = (x["topic"], x["queueId"]) if "topic" in x else (x["b"], x["e"])
        p = pairs(x.get("properties", x.get("i", "")))
        if a and want == 1 and "is illegal" in (a.remark or ""):
            s.topic(topic, int(re.search(r"readQueueNums=(\d+)", a.remark).group(1)))
            return
        s.topic(topic, max(4, int(queue) + 1))
        if a and "queueOffset" in a.ext and moves(q, p) is None:
            s.fill(topic, int(queue), int(a.ext["queueOffset"]))
        if "REPLY_TO_CLIENT" in p and code in (324, 325):
            s.client(p["REPLY_TO_CLIENT"], producer="p")
    elif code in (PULL, LITE):
        prepare_pull(s, q, a, want)
    elif code == 12:
        found = records(a.body)
        s.topic(x["topic"], 4)
        for m in found:
            queue = 0 if x["topic"].startswith("RMQ_SYS_") else m["queueId"]
            s.fill(x["topic"], queue, m["queueOffset"] + 1, [m])
        x["beginTimestamp"], x["endTimestamp"] = "0", str((1 << 63) - 1)
        if not found:
            x["key"] += "-not-there"
        time.sleep(0.02)
    elif code == 14:
        s.topic(x["topic"], 4)
        if want == 0:
            s.group(x["consumerGroup"])
            s.b.do(15, {**x, "commitOffset": a.ext["offset"]})
    elif code == 15:
        s.topic(x["topic"], 4)
        s.group(x["consumerGroup"])
        s.fill(x["topic"], int(x["queueId"]), int(x["commitOffset"]))
    elif code in (29, 30, 31, 32):
        s.topic(x["topic"], 8)
        n = int(a.ext["offset"]) if code in (29, 30) else 1
        s.fill(x["topic"], int(x["queueId"]), n)
        if code == 29:
            x["timestamp"] = str(int(time.time() * 1000) + 5)
            time.sleep(0.02)
            s.fill(x["topic"], int(x["queueId"]), 1)
    elif code == 33 and want == 0:
        m = records(a.body)[0]
        s.topic(m["topic"], max(4, m["queueId"] + 1))
        s.fill(m["topic"], m["queueId"], m["queueOffset"] + 1, [m])
        r = s.b.do(11, {"consumerGroup": "prepare", "topic": m["topic"], "queueId": m["queueId"], "queueOffset": m["queueOffset"], "maxMsgNums": 1,
                        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*"})
        x["offset"] = str(records(r.body)[0]["commitLogOffset"])
    elif code == 36:
        s.topic(x["originTopic"], 4)
        s.group(x["group"])
        s.fill(x["originTopic"], 0, 1)
        r = s.b.do(11, {"consumerGroup": "prepare", "topic": x["originTopic"], "queueId": 0, "queueOffset": 0, "maxMsgNums": 1,
                        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*"})
        x["offset"] = str(records(r.body)[0]["commitLogOffset"])
    elif code == 37:
        r = s.send("Prepare", 0, sysflag=4, props=PROPS % 1 + "TRAN_MSG\x01true\x02PGROUP\x01%s\x02" % x["producerGroup"])
        x["commitLogOffset"], x["tranStateTableOffset"] = str(int(r.ext["msgId"][-16:], 16)), r.ext["queueOffset"]
    elif code == 38:
        ids = load(a.body)["consumerIdList"] if want == 0 else []
        for id in ids:
            s.client(id, x["consumerGroup"], "Prepare")
    elif code in (101, 102) and want == 0:
        s.ns.do(100, {"namespace": x["namespace"], "key": x["key"], "value": a.ext.get("value", "v")})
    elif code == 101:
        s.ns.do(102, {"namespace": x["namespace"], "key": x["key"]})
    elif code == 105:
        if want == 0:
            j = load(a.body)
            d, who = j["queueDatas"][0], j["brokerDatas"][0]
            s.register([(x["topic"], d["readQueueNums"], d["perm"])], who["brokerName"], who["brokerAddrs"]["0"], who["cluster"])
        else:
            s.register([("Other", 4, 6)])
    elif code == 106:
        s.register([("Other", 4, 6)])
    elif code in (205, 327):
        n = int(a.ext.get("wipeTopicCount") or a.ext.get("addTopicCount"))
        s.register([("T%d" % i, 4, 6) for i in range(n)])
    elif code == 206:
        s.register([(t, 4, 6) for t in load(a.body)["topicList"]])
    elif code in (103, 104):
        s.register([("Other", 4, 6)])
        s.ns.do(100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "k", "value": "v"}) # there was one once
        s.ns.do(102, {"namespace": "ORDER_TOPIC_CONFIG", "key": "k"})
    elif code == 202:
        for t, o in load(a.body)["offsetTable"].items():
            mq = json.loads(t)
            if mq["queueId"] == 0:
                s.topic(mq["topic"], len(load(a.body)["offsetTable"]))
        for t, o in load(a.body)["offsetTable"].items():
            mq = json.loads(t)
            s.fill(mq["topic"], mq["queueId"], o["maxOffset"])
    elif code == 203 and want == 0:
        j = load(a.body)
        for t, d in sorted(j["subscriptionTable"].items()):
            if not t.startswith("%RETRY%"):
                break
        c = s.client(j["connectionSet"][0]["clientId"])
        c.do(34, {}, {"clientID": j["connectionSet"][0]["clientId"], "producerDataSet": [], "consumerDataSet": [{
            "groupName": x["consumerGroup"], "consumeType": j["consumeType"], "messageModel": j["messageModel"], "unitMode": False,
            "consumeFromWhere": j["consumeFromWhere"], "subscriptionDataSet": list(j["subscriptionTable"].values())}]})
    elif code == 203:
        s.group(x["consumerGroup"])
    elif code == 204:
        s.client(load(a.body)["connectionSet"][0]["clientId"], producer=x["producerGroup"])
    elif code == 207:
        s.group(x["groupName"])
    elif code == 208:
        table = {json.dumps(json.loads(k), sort_keys=True): v for k, v in load(a.body)["offsetTable"].items()}
        topics = {}
        for k, v in table.items():
            mq = json.loads(k)
            topics.setdefault(mq["topic"], []).append((mq["queueId"], v))
        s.group(x["consumerGroup"])
        for t, queues in topics.items():
            s.topic(t, len(queues))
            for id, v in queues:
                s.fill(t, id, v["brokerOffset"])
                s.b.do(15, {"consumerGroup": x["consumerGroup"], "topic": t, "queueId": id, "commitOffset": v["consumerOffset"]})
                if v["pullOffset"] >= v["consumerOffset"] and v["pullOffset"] > 0:
                    s.b.ask(Frame(11, {"consumerGroup": x["consumerGroup"], "topic": t, "queueId": str(id), "queueOffset": str(v["pullOffset"] - 1),
                            "maxMsgNums": "1", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "subscription": "*"}))
        s.client("c1", x["consumerGroup"], sorted(topics)[-1])
    elif code == 222:
        topics = load(a.body)["offsetTable"]
        s.topic(x["topic"], len(topics))
        s.group(x["group"])
        for k, v in topics.items():
            s.fill(x["topic"], json.loads(k)["queueId"], v)
            s.b.do(15, {"consumerGroup": x["group"], "topic": x["topic"], "queueId": json.loads(k)["queueId"], "commitOffset": 1})
    elif code in (307, 309):
        s.topic(x.get("topic", "Prepare"), 4)
        r = s.send(x.get("topic", "Prepare"), 0)
        if "msgId" in x:
            x["msgId"] = r.ext["msgId"]
        s.client(x["clientId"], x["consumerGroup"], x.get("topic", "Prepare"), answers={code: (0, {}, a.body)})
    elif code == 315 and want == 0:
        s.topic(x["statsKey"], 1)
        s.send(x["statsKey"], 0)
    elif code == 321:
        j = load(a.body)
        s.topic(x["topic"], 4)
        for i in range(j["maxQueueIndex"]):
            s.send(x["topic"], int(x["queueId"]), props=PROPS % (i + 1) + "TAGS\x01tagA\x02")
    elif code == 351:
        j = load(a.body)
        s.topic(x["topic"], j["readQueueNums"], j["perm"])
    elif code in (400, 401):
        j = load(q.body)
        s.topic(j["topic"], 4)
        s.client(j.get("clientId", "c1"), j["consumerGroup"], j["topic"])
        if code == 400:
            s.b.do(401, {}, {"consumerGroup": j["consumerGroup"], "topic": j["topic"], "mode": "POP", "popShareQueueNum": 8})
    elif code == 200050:
        prepare_pop(s, q, a, want)
    elif code in (200051, 200053):
        prepare_ack(s, q)
    elif code == 46:
        s.group(load(q.body)["group"])


def prepare_pull(s, q, a, want):
    x = q.ext
    topic, group, queue = x["topic"], x["consumerGroup"], int(x["queueId"])
    found = records(a.body) if a else []
    kind = x.get("expressionType") or "TAG"
    s.topic(topic, max(4, queue + 1))
    s.group(group, consumeEnable=want != 16)
    if a and "maxOffset" in a.ext:
        tag = "" if want != 20 else "TAGS\x01other\x02"
        s.fill(topic, queue, int(a.ext["maxOffset"]), found, PROPS % 7 + tag)
    if not int(x["sysFlag"]) & 4:
        kind = "SQL92" if want == 27 else kind
        expr = "nothing" if want == 20 and kind == "TAG" else "*"
        if kind == "SQL92":
            expr = "n > 1000000" if want == 20 else "n >" if want == 27 else "TRUE"
        s.client("c1", group, topic, expr, int(x["subVersion"]) - (1 if want == 25 else 0), kind)
    if want == 21:
        if (a.remark or "") == "OFFSET_RESET":
            s.b.do(15, {"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": x["queueOffset"]})
            s.b.do(222, {"topic": topic, "group": group, "timestamp": 0, "isForce": "true", "queueId": queue, "offset": a.ext["nextBeginOffset"]})


def prepare_pop(s, q, a, want):
    x = q.ext
    found = records(a.body) if a else []
    s.topic(x["topic"], 4)
    s.group(x["consumerGroup"])
    s.client("c1", x["consumerGroup"], x["topic"])
    x["bornTime"], x["pollTime"] = str(int(time.time() * 1000)), "100"
    for m in found:
        s.send(x["topic"], m["queueId"], m["body"], "".join("%s\x01%s\x02" % p for p in m["properties"].items() if p[0] in ("UNIQ_KEY", "WAIT", "KEYS", "TAGS")))


def prepare_ack(s, q):
    x = q.ext
    s.topic(x["topic"], 4)
    s.group(x["consumerGroup"])
    s.client("c1", x["consumerGroup"], x["topic"])
    s.send(x["topic"], int(x["queueId"]))
    r = s.b.do(200050, {"pollTime": 100, "invisibleTime": 60000, "queueId": x["queueId"], "bornTime": int(time.time() * 1000), "maxMsgNums": 1,
                        "topic": x["topic"], "expType": "TAG", "exp": "*", "consumerGroup": x["consumerGroup"], "initMode": 0, "order": "false"})
    x["offset"] = "0"
    x["extraInfo"] = "0 %s %s %s 0 broker-a %s 0" % (r.ext["popTime"], r.ext["invisibleTime"], r.ext["reviveQid"], x["queueId"])


def moves(q, p):
    """Why the queue offset of a send is not that of its own queue, or None."""
    if q.code in (324, 325):
        return "of the queue for replies"
    if "DELAY" in p or any(k.startswith("TIMER_D") for k in p):
        return "of the queue for delayed messages"
    if p.get("TRAN_MSG") == "true":
        return "of the queue for half messages"
    return None


# ---- Equal? ------------------------------------------------------------------------------------------------------------------

def shape(v, name=""):
    """Members and kinds of values; what is kept by names of the day (topics, groups) is one kind of each."""
    if isinstance(v, dict):
        if name.endswith("Table") or name.endswith("List"):
            kinds = {json.dumps(shape(x), sort_keys=True) for x in v.values()}
            return {"*": sorted(kinds)}
        return {k: shape(x, k) for k, x in v.items()}
    if isinstance(v, list):
        if name == "consumeStatsList":
            return ["by group"]
        return sorted({json.dumps(shape(x), sort_keys=True) for x in v})
    return "number" if isinstance(v, (int, float)) and not isinstance(v, bool) else type(v).__name__


def scrub(v, skip):
    if isinstance(v, dict):
        out = {}
        for k, x in v.items():
            if k.startswith("{"):
                k = json.dumps(json.loads(k), sort_keys=True)
            out[k] = "..." if k in skip else scrub(x, skip)
        return out
    if isinstance(v, list):
        return sorted((scrub(x, skip) for x in v), key=lambda x: json.dumps(x, sort_keys=True))
    return v


def remark(r):
    r = r if r and r != UNSET else ""
    for pattern, put in REMARKS:
        r = re.sub(pattern, put, r)
    return r


def message_parts(m, skip):
    d = {k: v for k, v in m.items() if k in ("topic", "queueId", "queueOffset", "flag", "sysFlag", "reconsumeTimes", "body", "version")}
    d["sysFlag"] &= ~0xC
    d = {k: v for k, v in d.items() if k not in skip}
    d["properties"] = {k: v for k, v in m["properties"].items() if k not in ("CLUSTER", "REAL_TOPIC", "REAL_QID", "DELAY", "TRAN_MSG")
                       and not k.startswith(("TIMER_", "1ST_POP", "POP_CK"))} # how it came there is not replayed
    return d


def differences(name, q, want, got):
    allowed = DIFFERS.get(name, {})
    skip = set(EVERYWHERE) | (set(allowed) if isinstance(allowed, dict) else set())
    why = moves(q, pairs(q.ext.get("properties", q.ext.get("i", "")))) if q.code in (10, 310, 320, 324, 325) else None
    if why:
        skip.add("queueOffset")
    out = []
    if want.code != got.code:
        out.append("code %d (%s), captured %d (%s)" % (got.code, got.remark, want.code, want.remark))
        return out
    words = want.remark in PULL_WORDS or got.remark in PULL_WORDS or not (name in OWN_WORDS and want.code)
    if words and remark(want.remark) != remark(got.remark):
        out.append("remark %r, captured %r" % (got.remark, want.remark))
    for k in sorted(set(want.ext) | set(got.ext)):
        a, b = want.ext.get(k), got.ext.get(k)
        if k == "version" and q.code == 26:
            continue
        if a is None or b is None or a != b and k not in skip:
            out.append("field %s=%s, captured %s" % (k, b, a))
    if name == "POP_MESSAGE" and want.ext.get("startOffsetInfo", "").startswith("1"):
        skip |= {"queueOffset", "reconsumeTimes"} # came out of the retry topic
    if name == "QUERY_MESSAGE" and q.ext["topic"].startswith("RMQ_SYS_"):
        skip.add("queueId") # there are fewer queues
    if not want.body or not got.body:
        if want.body != got.body:
            out.append("body of %d bytes, captured %d" % (len(got.body), len(want.body)))
    elif q.code in CONFIGS:
        if q.code == 28:
            a, b = (set(load(f.body)["table"]) for f in (want, got))
        else:
            a, b = ({line.split("=")[0] for line in f.body.decode().splitlines()} for f in (want, got))
        missing = {k for k in a - b if re.match(CONFIGS[q.code][1], k)}
        if missing or len(b & a) < CONFIGS[q.code][2]:
            out.append("missing: " + " ".join(sorted(missing or a - b)))
    elif want.body[4:8] == b"\xda\xa3\x20\xa7":
        a, b = ([message_parts(m, skip) for m in records(f.body)] for f in (want, got))
        if a != b:
            for m, n in zip(a, b):
                out += ["message %s=%r, captured %r" % (k, n.get(k), m[k]) for k in m if m[k] != n.get(k)]
            if len(a) != len(b):
                out.append("%d messages, captured %d" % (len(b), len(a)))
    else:
        a, b = load(want.body), load(got.body)
        for k in OURS.get(name, ()):
            b.pop(k, None)
        a, b = (shape(a), shape(b)) if allowed is True else (scrub(a, skip), scrub(b, skip))
        if a != b:
            out += compare(a, b, "")
    return out


def compare(a, b, at):
    if isinstance(a, dict) and isinstance(b, dict):
        out = []
        for k in sorted(set(a) | set(b)):
            if k not in a or k not in b:
                out.append("body %s%s: %s" % (at, k, "not in the captured one" if k in b else "missing"))
            elif a[k] != b[k]:
                out += compare(a[k], b[k], at + k + ".")
        return out
    return ["body %s: %s, captured %s" % (at, json.dumps(b)[:300], json.dumps(a)[:300])]


# ---- All of them ---------------------------------------------------------------------------------------------------------------

def main():
    state = State(sys.argv[1], sys.argv[2])
    state.topic("Prepare")
    bad = 0
    for d in sys.argv[3:]:
        for path in sorted(glob.glob(os.path.join(d, "*.req.bin"))):
            base = os.path.basename(path)[:-8]
            name = re.sub(r"^\d+-|-binary$|_ALL$", "", base)
            show = os.path.join(os.path.basename(d.rstrip("/")), base)
            with open(path, "rb") as f:
                q = Frame.parse(f.read())
            answer = path.replace(".req.bin", ".resp.bin")
            a = None
            if os.path.exists(answer):
                with open(answer, "rb") as f:
                    a = Frame.parse(f.read())
            if q.code in NOT_SERVED:
                print("skip %s: %s" % (show, NOT_SERVED[q.code]))
                continue
            if q.code in TO_CLIENT or q.code in (307, 309) and "jstackEnable" not in q.ext and q.body:
                print("skip %s: a server asks this of a client" % show)
                continue
            try:
                if a is None and not q.flag & 2:
                    print("skip %s: no answer was captured" % show)
                    continue
                prepare(state, q, a)
                conn = Conn(sys.argv[1] if q.code in NAMESRV_CODES else sys.argv[2])
                got = conn.ask(q)
                diff = differences(name, q, a, got) if a else []
                if a is None: # one way: the connection goes on
                    r = conn.ask(Frame(206 if q.code in NAMESRV_CODES else 21, {}))
                    diff = ["the connection answers %d afterwards" % r.code] if r.code else []
                conn.close()
            except Exception as e:
                diff = ["%s: %s" % (type(e).__name__, e)]
            state.end()
            print("%s %s%s" % ("not ok" if diff else "ok", show, "".join("\n    " + x for x in diff)), flush=True)
            bad += bool(diff)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
