#!/usr/bin/env python3
"""seeds.py NAME OUT: seeds of a harness made from tests/golden, which real programs of the peer wrote.

What has none there (or more than fits) has its seeds in seeds/NAME; what a harness takes its first bytes for says its head."""
import glob, io, json, os, struct, subprocess, sys, tarfile

here = os.path.dirname(os.path.abspath(__file__))
golden = os.path.join(here, '..', 'golden')
name, out = sys.argv[1:3]
os.makedirs(out, exist_ok=True)
count = 0


def put(data):
    global count
    with open('%s/golden-%04d' % (out, count), 'wb') as f:
        f.write(data)
    count += 1


def wire():
    for path in sorted(glob.glob(golden + '/wire/*/*.bin')):
        data = open(path, 'rb').read()
        head = struct.unpack('>I', data[4:8])[0]
        kind, n = head >> 24, head & 0xffffff
        yield os.path.basename(path), kind, data[8:8 + n], data[8 + n:]


def store(which):
    """{path below store/: bytes}; sparse files come whole."""
    raw = subprocess.run(['zstd', '-dcq', '%s/store/%s/store.tar.zst' % (golden, which)], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {m.name.split('store/', 1)[1]: tar.extractfile(m).read()
                for m in tar.getmembers() if m.isfile() and 'store/' in m.name and m.size < 1 << 20}


def records(log):
    at = 0
    while at + 8 <= len(log):
        n, magic = struct.unpack('>II', log[at:at + 8])
        if magic not in (0xdaa320a7, 0xdaa320ab) or n > len(log) - at:
            break
        yield log[at:at + n]
        at += n


decoders = ('topic topic_table topic_list route cluster members group group_table group_list heartbeat client_check consumer_list '
            'consumer_connection producer_connection producer_table topic_stats consume_stats broker_progress kv offset_table '
            'delay_table reset consumer_status lock locked acks modes assignment version broker_stats register register_packed ck ack mode '
            'query json').split()
bodies = {
    'CHECK_CLIENT_CONFIG.req': 'client_check', 'GET_ALL_PRODUCER_INFO.resp': 'producer_table',
    'GET_ALL_SUBSCRIPTIONGROUP_CONFIG.resp': 'group_table', 'GET_ALL_TOPIC_CONFIG.resp': 'topic_table',
    'GET_ALL_TOPIC_LIST_FROM_NAMESERVER.resp': 'topic_list', 'GET_BROKER_CLUSTER_INFO.resp': 'cluster',
    'GET_BROKER_CONSUME_STATS.resp': 'broker_progress', 'GET_BROKER_RUNTIME_INFO.resp': 'kv',
    'GET_CONSUMER_CONNECTION_LIST.resp': 'consumer_connection', 'GET_CONSUMER_LIST_BY_GROUP.resp': 'consumer_list',
    'GET_CONSUME_STATS.resp': 'consume_stats', 'GET_PRODUCER_CONNECTION_LIST.resp': 'producer_connection',
    'GET_ROUTEINFO_BY_TOPIC.resp': 'route', 'GET_SYSTEM_TOPIC_LIST_FROM_BROKER.resp': 'topic_list',
    'GET_TOPIC_CONFIG.resp': 'topic', 'GET_TOPIC_STATS_INFO.resp': 'topic_stats', 'HEART_BEAT.req': 'heartbeat',
    'INVOKE_BROKER_TO_RESET_OFFSET.resp': 'reset', 'LOCK_BATCH_MQ.req': 'lock', 'LOCK_BATCH_MQ.resp': 'locked',
    'QUERY_TOPIC_CONSUME_BY_WHO.resp': 'group_list', 'REGISTER_BROKER.req': 'register_packed', 'REGISTER_BROKER.resp': 'kv',
    'QUERY_ASSIGNMENT.req': 'query', 'QUERY_ASSIGNMENT.resp': 'assignment', 'SET_MESSAGE_REQUEST_MODE.req': 'mode',
    'UNLOCK_BATCH_MQ.req': 'lock', 'UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.req': 'group', 'VIEW_BROKER_STATS_DATA.resp': 'broker_stats',
    'REGISTER_BROKER_ALL.req': 'register',
}

if name == 'body':
    seen = set()
    for file, kind, header, body in wire():
        which = bodies.get(file.rsplit('.', 1)[0].replace('-binary', ''))
        if body and which and len(body) < 8192 and (which, body) not in seen:
            seen.add((which, body))
            at = bytes([decoders.index(which)])
            put(at + (b'\x04' if which.startswith('register') else b'') + body)
            if which != 'register_packed':
                put(bytes([decoders.index('json')]) + body)
elif name == 'message':
    for which in ('clean', 'features', 'ipv6'):
        kinds = set()
        for path, data in sorted(store(which).items()):
            if not path.startswith('commitlog/'):
                continue
            for r in records(data):
                flag, size = struct.unpack('>I', r[36:40])[0], len(r)
                kind = (r[4:8], flag, r[12:20] != bytes(8), size > 400)
                if size < 2048 and kind not in kinds:
                    kinds.add(kind)
                    put(b'\0' + r)
                    put(b'\2' + r[-200:])
    for file, kind, header, body in wire():
        if file.startswith('SEND_BATCH_MESSAGE') and body:
            put(b'\1' + body)
elif name == 'log':
    for which in ('clean', 'features', 'ipv6', 'torn'):
        files = store(which)
        first = min(p for p in files if p.startswith('commitlog/0'))
        put(b'\0' + files[first][:8192])
        put(b'\1' + files[first][:3000])
elif name == 'queue':
    for path, data in sorted(store('features').items()):
        if path.startswith('batchconsumequeue/'):
            put(b'\1' + data.rstrip(b'\0')[:460])
            break
    for path, data in sorted(store('clean').items()):
        if path.startswith('consumequeue/TopicTest') or path.startswith('consumequeue/SCHEDULE'):
            put(b'\0' + data[:200])
elif name == 'index':
    for which in ('clean', 'crashed'):
        for path, data in sorted(store(which).items()):
            if path.startswith('index/'):
                put(b'\0' + data[:40 + 4 * 16] + data[40 + 4 * 500:][:20 * 12])
elif name == 'checkpoint':
    for which in ('clean', 'crashed', 'trimmed'):
        put(b'\0' + store(which)['checkpoint'][:48])
elif name == 'table':
    tables = ['topics', 'subscriptionGroup', 'consumerOffset', 'delayOffset', 'consumerFilter', 'messageRequestMode',
              'consumerOrderInfo']
    for which in ('clean', 'features'):
        for path, data in sorted(store(which).items()):
            base = os.path.basename(path).split('.json')[0]
            if path.startswith('config/') and base in tables and len(data) < 16384:
                put(bytes([tables.index(base)]) + data)
elif name == 'wheel':
    for which in ('clean', 'features'):
        files = store(which)
        check = files.get('config/timercheck', bytes(56))[:56]
        logs = sorted(p for p in files if p.startswith('timerlog/'))
        for path in logs[:2]:
            put(bytes([1 + 8, 0]) + check + files[path][:4096].rstrip(b'\0'))
            put(bytes([0, 0]) + check + files[path][:52 * 8])
