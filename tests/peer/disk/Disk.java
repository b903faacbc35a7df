import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What a store holds, as a Java client sees it through whichever broker serves it.
 *
 *   fill NAMESRV ROUND N FILE   send about N messages of every kind, consume some; FILE: what was acknowledged
 *   list NAMESRV FILE           all there is: M lines for messages, Q for queues, O for the offsets of groups
 *   query NAMESRV LIST [STEP [noindex]]   find every STEP-th message of such a list by its keys, its ids and its time;
 *                               noindex: by its place and its time only
 *
 *   manifest NAMESRV FILE       the same as a manifest.json of tests/golden/store
 *   await NAMESRV FILE          wait until what was sent as "later" (for in half a minute) has been delivered
 *
 * A line of FILE is the same whichever broker tells it, so two lists are compared as text. Status 1: something was not so.
 */
@SuppressWarnings("deprecation")
public final class Disk {
    private static String namesrv;
    private static DefaultMQAdminExt admin;
    private static String broker;
    private static String addr;
    private static int bad;
    private static final List<String> out = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        namesrv = args[1];
        System.setProperty("rocketmq.namesrv.addr", namesrv);
        admin = new DefaultMQAdminExt("disk" + System.nanoTime());
        admin.setNamesrvAddr(namesrv);
        admin.setInstanceName("a" + System.nanoTime());
        admin.start();
        broker = again(() -> admin.examineBrokerClusterInfo().getBrokerAddrTable().keySet().iterator().next());
        addr = admin.examineBrokerClusterInfo().getBrokerAddrTable().get(broker).getBrokerAddrs().get(0L);
        try {
            switch (args[0]) {
                case "fill" -> {
                    fill(args[2], Integer.parseInt(args[3]));
                    Files.write(Path.of(args[4]), out);
                }
                case "list" -> {
                    list();
                    Files.write(Path.of(args[2]), out);
                }
                case "await" -> later(Files.readAllLines(Path.of(args[2])));
                case "manifest" -> Files.writeString(Path.of(args[2]), manifest());
                case "query" -> query(Files.readAllLines(Path.of(args[2])), args.length > 3 ? Integer.parseInt(args[3]) : 1,
                    args.length <= 4);
                default -> throw new IllegalArgumentException(args[0]);
            }
        } catch (Throwable e) {
            e.printStackTrace();
            bad++;
        }
        System.out.flush();
        Runtime.getRuntime().halt(bad == 0 ? 0 : 1); // a client's own end takes seconds
    }

    private static void wrong(String what) {
        if (++bad <= 20) {
            System.out.println(what);
        }
    }

    private static <T> T again(java.util.concurrent.Callable<T> action) throws Exception {
        for (int left = 80; ; left--) {
            try {
                return action.call();
            } catch (Exception e) {
                if (left == 0) {
                    throw e;
                }
                Thread.sleep(250);
            }
        }
    }

    private interface Question {
        boolean ask() throws Exception;
    }

    private static boolean await(int seconds, String what, Question q) throws Exception {
        for (long end = System.currentTimeMillis() + seconds * 1000L; ; ) {
            try {
                if (q.ask()) {
                    return true;
                }
            } catch (MQClientException e) {
                if (System.currentTimeMillis() > end) {
                    throw e;
                }
            }
            if (System.currentTimeMillis() > end) {
                wrong("not within " + seconds + " s: " + what);
                return false;
            }
            Thread.sleep(100);
        }
    }

    private static String hex(byte[] bytes) throws Exception {
        StringBuilder s = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes == null ? new byte[0] : bytes)) {
            s.append(String.format("%02x", b));
        }
        return s.substring(0, 32);
    }

    private static String props(Map<String, String> p) {
        Map<String, String> sorted = new TreeMap<>(p);
        sorted.keySet().removeAll(Set.of("MIN_OFFSET", "MAX_OFFSET")); // of the pull
        StringBuilder s = new StringBuilder();
        // Light messages end with junk where no checksum was asked for; that is no text to compare
        sorted.forEach((k, v) -> {
            if (k.matches("[\\x21-\\x7e]+")) {
                s.append(k).append('=').append(v.replace("\t", "\\t").replace("\n", "\\n")).append(';');
            }
        });
        return s.toString();
    }

    // ---- Everything there is ---------------------------------------------------------------------------------------------

    private static String line(MessageExt m) throws Exception {
        String id = MessageDecoder.createMessageId(m.getStoreHost(), m.getCommitLogOffset());
        return String.join("\t", "M", m.getTopic(), "" + m.getQueueId(), "" + m.getQueueOffset(), "" + m.getCommitLogOffset(),
            "" + m.getStoreSize(), String.valueOf(m.getProperty("UNIQ_KEY")), id, String.valueOf(m.getKeys()), "" + m.getFlag(),
            "" + m.getSysFlag(), "" + m.getBornTimestamp(), "" + m.getStoreTimestamp(), m.getBornHost().toString(),
            m.getStoreHost().toString(), "" + m.getReconsumeTimes(), "" + m.getPreparedTransactionOffset(), "" + m.getBodyCRC(),
            hex(m.getBody()), props(m.getProperties()));
    }

    private static DefaultMQPullConsumer puller() throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer("disk-look");
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("p" + System.nanoTime());
        c.start();
        return c;
    }

    private static String manifest() throws Exception {
        DefaultMQPullConsumer c = puller();
        List<String> queues = new ArrayList<>(), messages = new ArrayList<>(), keys = new ArrayList<>(), times = new ArrayList<>();
        Set<String> asked = new TreeSet<>();
        JSONObject offsets = new JSONObject(true);
        list();
        for (String s : out) {
            String[] f = s.split("\t", -1);
            if (f[0].equals("O")) {
                ((JSONObject) offsets.computeIfAbsent(f[1], k -> new JSONObject(true))).put(f[2] + "@" + f[3], Long.parseLong(f[4]));
            } else if (f[0].equals("Q")) {
                if (!f[3].equals(f[4])) {
                    queues.add(object("topic", f[1], "queueId", num(f[2]), "minOffset", num(f[3]), "maxOffset", num(f[4]),
                        "pulled", num(f[4]) - num(f[3])).toString());
                }
            } else {
                MessageQueue mq = new MessageQueue(f[1], broker, Integer.parseInt(f[2]));
                MessageExt m = c.pull(mq, "*", num(f[3]), 1).getMsgFoundList().get(0);
                Map<String, String> p = new TreeMap<>(m.getProperties());
                p.keySet().removeAll(Set.of("MIN_OFFSET", "MAX_OFFSET"));
                StringBuilder sum = new StringBuilder();
                for (byte b : MessageDigest.getInstance("SHA-256").digest(m.getBody())) {
                    sum.append(String.format("%02x", b));
                }
                messages.add(object("topic", f[1], "queueId", num(f[2]), "queueOffset", num(f[3]), "commitLogOffset", num(f[4]),
                    "storeSize", num(f[5]), "bodyCRC", m.getBodyCRC(), "flag", m.getFlag(), "sysFlag", m.getSysFlag(),
                    "bornTimestamp", m.getBornTimestamp(), "bornHost", f[13], "storeTimestamp", m.getStoreTimestamp(), "storeHost", f[14],
                    "reconsumeTimes", m.getReconsumeTimes(), "preparedTransactionOffset", m.getPreparedTransactionOffset(),
                    "msgId", f[6].equals("null") ? f[7] : f[6], "offsetMsgId", f[7], "keys", m.getKeys(), "tags", m.getTags(),
                    "properties", p, "bodyLen", m.getBody().length, "bodySha256", sum.toString()).toString());
                if (m.getKeys() != null && f[1].startsWith("Disk") && keys.size() < 40 && asked.add(f[1] + m.getKeys().split(" ")[0])) {
                    String key = m.getKeys().split(" ")[0];
                    keys.add(object("topic", f[1], "key", key, "commitLogOffsets", byKey(c, f[1], key)).toString());
                }
                if (f[1].startsWith("Disk") && times.size() < 40) {
                    times.add(object("topic", f[1], "queueId", num(f[2]), "timestamp", m.getStoreTimestamp(),
                        "offset", c.searchOffset(mq, m.getStoreTimestamp())).toString());
                }
            }
        }
        return "{\n\"format\": 1,\n\"minCommitLogOffset\": 0,\n" + array("queues", queues) + array("messages", messages)
            + array("queryByKey", keys) + array("searchOffset", times) + "\"consumerOffsets\": " + offsets + "\n}\n";
    }

    private static long num(String s) {
        return Long.parseLong(s);
    }

    private static JSONObject object(Object... pairs) {
        JSONObject o = new JSONObject(true);
        for (int i = 0; i < pairs.length; i += 2) {
            o.put((String) pairs[i], pairs[i + 1]);
        }
        return o;
    }

    private static String array(String name, List<String> lines) {
        return "\"" + name + "\": [\n  " + String.join(",\n  ", lines) + "\n],\n";
    }

    private static void list() throws Exception {
        TopicConfigSerializeWrapper topics = again(() -> admin.getAllTopicConfig(addr, 10_000));
        DefaultMQPullConsumer c = puller();
        List<String> found = new ArrayList<>();
        for (TopicConfig t : topics.getTopicConfigTable().values()) {
            if (t.getTopicName().equals("TBW102") || t.getAttributes() != null && !t.getAttributes().isEmpty()
                    && !"NORMAL".equals(t.getAttributes().get("message.type"))) {
                continue; // queues of other kinds are not served by both
            }
            for (int q = 0; q < Math.max(t.getReadQueueNums(), t.getWriteQueueNums()); q++) {
                MessageQueue mq = new MessageQueue(t.getTopicName(), broker, q);
                long min = again(() -> c.minOffset(mq));
                long max = again(() -> c.maxOffset(mq));
                found.add("Q\t" + mq.getTopic() + "\t" + q + "\t" + min + "\t" + max);
                if ((t.getPerm() & 4) == 0) {
                    continue;
                }
                for (long at = min; at < max; ) {
                    PullResult r = c.pull(mq, "*", at, 32, 10_000);
                    if (r.getPullStatus() == PullStatus.FOUND) {
                        for (MessageExt m : r.getMsgFoundList()) {
                            found.add(line(m));
                        }
                    } else {
                        wrong("pull " + mq + " at " + at + " of " + max + ": " + r.getPullStatus());
                    }
                    if (r.getNextBeginOffset() <= at) {
                        wrong("pull " + mq + " at " + at + " does not go on");
                        break;
                    }
                    at = r.getNextBeginOffset();
                }
            }
        }
        for (String group : new TreeSet<>(admin.getAllSubscriptionGroup(addr, 10_000).getSubscriptionGroupTable().keySet())) {
            try {
                admin.examineConsumeStats(group).getOffsetTable().forEach((mq, o) ->
                    found.add("O\t" + group + "\t" + mq.getTopic() + "\t" + mq.getQueueId() + "\t" + o.getConsumerOffset()));
            } catch (MQClientException e) {
                continue; // has consumed nothing
            } catch (MQBrokerException e) {
                if (e.getResponseCode() != 3) { // a broker of 4.x does not know what this asks first
                    throw e;
                }
            }
        }
        java.util.Collections.sort(found);
        out.addAll(found);
        System.out.println(found.stream().filter(s -> s.startsWith("M")).count() + " messages");
    }

    // ---- Found again ------------------------------------------------------------------------------------------------------

    private static Set<Long> byKey(DefaultMQPullConsumer c, String topic, String key) throws Exception {
        Set<Long> offsets = new TreeSet<>();
        try {
            for (MessageExt m : c.queryMessage(topic, key, 64, 0, Long.MAX_VALUE).getMessageList()) {
                offsets.add(m.getCommitLogOffset());
            }
        } catch (MQClientException e) {
            if (e.getResponseCode() != 208) { // no message
                throw e;
            }
        }
        return offsets;
    }

    private static void query(List<String> lines, int step, boolean index) throws Exception {
        DefaultMQPullConsumer c = puller();
        Map<String, TreeMap<Long, Long>> times = new HashMap<>(); // of a queue: offset -> store time
        Map<String, Integer> sharing = new HashMap<>(); // how many messages have a key
        var api = c.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory().getMQClientAPIImpl();
        int n = 0;
        for (String s : lines) {
            String[] f = s.split("\t", -1);
            if (f[0].equals("M")) {
                times.computeIfAbsent(f[1] + "\t" + f[2], k -> new TreeMap<>()).put(Long.parseLong(f[3]), Long.parseLong(f[12]));
                for (String key : f[8].split(" ")) {
                    sharing.merge(f[1] + "\t" + key, 1, Integer::sum);
                }
            }
        }
        for (String s : lines) {
            String[] f = s.split("\t", -1);
            if (!f[0].equals("M") || n++ % step != 0) {
                continue;
            }
            long at = Long.parseLong(f[4]);
            Set<String> keys = new LinkedHashSet<>();
            if (index && !f[8].equals("null")) {
                keys.addAll(Arrays.asList(f[8].split(" ")));
            }
            keys.remove("");
            for (String key : keys) {
                if (sharing.get(f[1] + "\t" + key) <= 32 && !byKey(c, f[1], key).contains(at)) {
                    wrong(f[1] + " at " + at + " is not found by key " + key);
                }
            }
            if (index && !f[6].equals("null") && !f[1].startsWith("RMQ_SYS_TRANS") && !f[1].startsWith("SCHEDULE_")) {
                try {
                    MessageExt m = c.viewMessage(f[1], f[6]);
                    if (!hex(m.getBody()).equals(f[18]) && m.getCommitLogOffset() == at) {
                        wrong(f[1] + " at " + at + " by id " + f[6] + " has another body");
                    }
                } catch (Exception e) {
                    wrong(f[1] + " at " + at + " is not found by id " + f[6] + ": " + e.getMessage());
                }
            }
            MessageExt m = api.viewMessage(addr, at, 10_000); // not by the address in the id: another broker may have written it
            if (!hex(m.getBody()).equals(f[18]) || m.getStoreTimestamp() != Long.parseLong(f[12])) {
                wrong(f[1] + " at " + at + " by offset id " + f[7] + " is another one");
            }
            TreeMap<Long, Long> queue = times.get(f[1] + "\t" + f[2]);
            long time = Long.parseLong(f[12]), first = Long.parseLong(f[3]);
            while (queue.get(first - 1) != null && queue.get(first - 1) >= time) {
                first--;
            }
            long got = c.searchOffset(new MessageQueue(f[1], broker, Integer.parseInt(f[2])), time);
            if (got != first) {
                wrong(f[1] + " queue " + f[2] + " at " + time + ": offset " + got + ", not " + first);
            }
        }
        System.out.println((n + step - 1) / step + " messages asked for");
    }

    // ---- Messages of every kind -------------------------------------------------------------------------------------------

    private static void topic(String name, int queues) throws Exception {
        TopicConfig t = new TopicConfig(name);
        t.setReadQueueNums(queues);
        t.setWriteQueueNums(queues);
        admin.createAndUpdateTopicConfig(addr, t);
    }

    private static void acked(String kind, Message m, SendResult r) throws Exception {
        String[] ids = String.valueOf(r.getOffsetMsgId()).split(",");
        out.add(String.join("\t", kind, m.getTopic(), "" + r.getMessageQueue().getQueueId(), "" + r.getQueueOffset(), ids[0],
            String.valueOf(r.getMsgId()), hex(m.getBody())));
    }

    private static byte[] text(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] noise(Random random, int n) {
        byte[] b = new byte[n];
        random.nextBytes(b);
        return b;
    }

    private static void send(DefaultMQProducer p, String kind, Message m) throws Exception {
        acked(kind, m, p.send(m, 15_000));
    }

    private static <P extends DefaultMQProducer> P producer(P p) throws Exception {
        p.setNamesrvAddr(namesrv);
        p.setInstanceName("f" + System.nanoTime());
        p.setRetryTimesWhenSendFailed(3);
        p.addRetryResponseCode(2);
        p.start();
        return p;
    }

    private static void fill(String round, int n) throws Exception {
        String[] topics = {"DiskPlain", "DiskKeyed", "DiskBatch", "DiskOrder", "DiskZip", "DiskBig", "DiskDelay", "DiskTimer", "DiskTran",
            "DiskBack"};
        for (String t : topics) {
            again(() -> {
                topic(t, t.equals("DiskBack") ? 1 : 4);
                return null;
            });
        }
        DefaultMQProducer p = producer(new DefaultMQProducer("disk-fill"));
        for (String t : topics) {
            again(() -> p.fetchPublishMessageQueues(t));
        }
        Random random = new Random(round.hashCode());
        int part = n / 10;
        for (int i = 0; i < 3 * part; i++) {
            Message m = new Message("DiskPlain", i % 3 == 0 ? "TagA" : i % 3 == 1 ? "标签😀" : null, null, text("plain " + round + i));
            m.setFlag(i % 7 - 3);
            if (i % 5 == 0) {
                m.putUserProperty("region", i % 2 == 0 ? "东京" : "north");
                m.putUserProperty("n", "" + i);
            }
            if (i % 50 == 49) {
                p.sendOneway(m);
            } else {
                send(p, "normal", m);
            }
        }
        for (int i = 0; i < 2 * part; i++) {
            send(p, "keyed", new Message("DiskKeyed", "T" + i % 4, "order-" + round + i + (i % 2 == 0 ? " all" + i % 17 + " 键" + round + i : ""),
                text("keyed " + round + i)));
        }
        for (int i = 0; i < 2 * part; i += 20) {
            List<Message> batch = new ArrayList<>();
            for (int j = 0; j < 20; j++) {
                batch.add(new Message("DiskBatch", "B" + j % 2, "b-" + round + (i + j), noise(random, 1 + random.nextInt(200))));
            }
            acked("batch", batch.get(0), p.send(batch, 15_000));
        }
        for (int i = 0; i < part; i++) {
            Message m = new Message("DiskOrder", null, "o-" + round + i, text("order " + round + i));
            m.putUserProperty("step", "" + i);
            int shard = i % 5;
            acked("ordered", m, p.send(m, (queues, x, arg) -> queues.get(Math.abs(arg.hashCode()) % queues.size()), "shard" + shard, 15_000));
        }
        for (int i = 0; i < part / 4; i++) {
            send(p, "compressed", new Message("DiskZip", "Z", "z-" + round + i, text(("compress me " + round + i + " ").repeat(600 + i))));
        }
        for (int i = 0; i < 5; i++) {
            send(p, "big", new Message("DiskBig", null, "big-" + round + i, noise(random, n < 500 ? 1000 : 20_000 + 8000 * i)));
        }
        int soon = part / 4;
        for (int i = 0; i < part / 2; i++) {
            Message m = new Message("DiskDelay", "D", "d-" + round + i, text("delayed " + round + i));
            m.setDelayTimeLevel(i < soon ? 1 + i % 2 : 16 + i % 3);
            send(p, "delayed", m);
        }
        for (int i = 0; i < soon; i++) {
            Message m = new Message("DiskTimer", "W", "w-" + round + i, text("timer " + round + i));
            if (i % 5 == 0) {
                m.setDelayTimeSec(3600 + i);
            } else {
                m.setDelayTimeMs(1000 + 50 * i);
            }
            send(p, i % 5 == 0 ? "waiting" : "delayed", m);
        }
        for (int i = 0; i < 6; i++) {
            Message m = new Message(i % 2 == 0 ? "DiskDelay" : "DiskTimer", null, "l-" + round + i, text("later of " + round + i));
            if (i % 2 == 0) {
                m.setDelayTimeLevel(4);
            } else {
                m.setDelayTimeSec(30);
            }
            send(p, "later", m);
        }
        TransactionMQProducer tp = new TransactionMQProducer("disk-tran");
        tp.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                return (LocalTransactionState) arg;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return LocalTransactionState.UNKNOW;
            }
        });
        producer(tp);
        LocalTransactionState[] states = {LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.COMMIT_MESSAGE,
            LocalTransactionState.ROLLBACK_MESSAGE, LocalTransactionState.UNKNOW};
        for (int i = 0; i < part / 2; i++) {
            Message m = new Message("DiskTran", "T", "t-" + round + i, text("transaction " + round + i));
            SendResult r = tp.sendMessageInTransaction(m, states[i % 4]);
            out.add(String.join("\t", i % 4 < 2 ? "committed" : i % 4 == 2 ? "rolled-back" : "pending", "DiskTran", "-1", "-1", "-",
                r.getMsgId(), hex(m.getBody())));
        }
        for (int i = 0; i < 6; i++) {
            send(p, "retried", new Message("DiskBack", null, "r-" + round + i, text("back " + round + i)));
        }
        consume(round);
        // What was due has been delivered, and what was committed is there
        DefaultMQPullConsumer c = puller();
        long want = soon;
        await(40, want + " delayed messages", () -> seen(c, "DiskDelay", "delayed " + round) >= want);
        await(40, soon - (soon + 4) / 5 + " timers", () -> seen(c, "DiskTimer", "timer " + round) >= soon - (soon + 4) / 5);
        await(40, part / 4 + " committed messages", () -> seen(c, "DiskTran", "transaction " + round) >= part / 4);
        Thread.sleep(1500); // offsets of groups are saved and indexes made
        System.out.println(out.size() + " acknowledged");
    }

    private static void later(List<String> sent) throws Exception {
        DefaultMQPullConsumer c = puller();
        for (String topic : List.of("DiskDelay", "DiskTimer")) {
            List<String> wanted = new ArrayList<>();
            for (String s : sent) {
                String[] f = s.split("\t");
                if (f[0].equals("later") && f[1].equals(topic)) {
                    wanted.add(f[5]);
                }
            }
            await(60, wanted.size() + " messages of " + topic, () -> {
                Set<String> there = new TreeSet<>();
                each(c, topic, m -> there.add(String.valueOf(m.getProperty("UNIQ_KEY"))));
                return there.containsAll(wanted);
            });
        }
    }

    private static long seen(DefaultMQPullConsumer c, String topic, String what) throws Exception {
        AtomicInteger n = new AtomicInteger();
        each(c, topic, m -> n.addAndGet(new String(m.getBody(), StandardCharsets.UTF_8).startsWith(what) ? 1 : 0));
        return n.get();
    }

    private static void each(DefaultMQPullConsumer c, String topic, java.util.function.Consumer<MessageExt> see) throws Exception {
        for (int q = 0; q < 4; q++) {
            MessageQueue mq = new MessageQueue(topic, broker, q);
            for (long at = c.minOffset(mq), max = c.maxOffset(mq); at < max; ) {
                try {
                    PullResult r = c.pull(mq, "*", at, 32, 10_000);
                    if (r.getPullStatus() == PullStatus.FOUND) {
                        r.getMsgFoundList().forEach(see);
                    }
                    at = Math.max(at + 1, r.getNextBeginOffset());
                } catch (Exception e) {
                    throw new MQClientException(1, e.toString());
                }
            }
        }
    }

    private static DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("c" + System.nanoTime());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setConsumeThreadMin(1);
        c.setConsumeThreadMax(2);
        return c;
    }

    /** A start can lose its heartbeats for half a minute: ask for more. */
    private static void start(DefaultMQPushConsumer c) throws Exception {
        c.start();
        var instance = c.getDefaultMQPushConsumerImpl().getmQClientFactory();
        for (int delay : new int[] {500, 1500, 3000, 6000, 12_000}) {
            CompletableFuture.delayedExecutor(delay, TimeUnit.MILLISECONDS).execute(() -> {
                instance.updateTopicRouteInfoFromNameServer();
                instance.sendHeartbeatToAllBrokerWithLock();
                instance.rebalanceImmediately();
            });
        }
    }

    /** Groups: one that fails (retries, dead letters), one with an SQL92 filter, one in order. */
    private static void consume(String round) throws Exception {
        topic("%RETRY%disk-back", 1);
        Map<String, AtomicInteger> tries = new ConcurrentHashMap<>();
        DefaultMQPushConsumer failing = consumer("disk-back");
        failing.setMaxReconsumeTimes(2);
        failing.subscribe("DiskBack", "*");
        failing.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            for (MessageExt m : msgs) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                int n = tries.computeIfAbsent(body, k -> new AtomicInteger()).incrementAndGet();
                if (body.endsWith("0") || body.endsWith("1") && n < 2) { // the first fails always, the second once
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQPushConsumer sql = consumer("disk-sql");
        sql.subscribe("DiskPlain", MessageSelector.bySql("region = '东京' AND n > 20"));
        AtomicInteger chosen = new AtomicInteger();
        sql.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            chosen.addAndGet(msgs.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQPushConsumer ordered = consumer("disk-order");
        ordered.subscribe("DiskOrder", "*");
        AtomicInteger inOrder = new AtomicInteger();
        ordered.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
            inOrder.addAndGet(msgs.size());
            return ConsumeOrderlyStatus.SUCCESS;
        });
        for (DefaultMQPushConsumer c : List.of(failing, sql, ordered)) {
            start(c);
        }
        await(60, "the second of round " + round + " tried twice, the first three times", () ->
            count(tries, "back " + round + "0") >= 3 && count(tries, "back " + round + "1") >= 2 && count(tries, "back " + round + "5") >= 1);
        await(60, "consumed with SQL92 and in order", () -> chosen.get() > 0 && inOrder.get() > 0);
        Thread.sleep(500);
        for (DefaultMQPushConsumer c : List.of(failing, sql, ordered)) {
            c.getDefaultMQPushConsumerImpl().persistConsumerOffset();
        }
    }

    private static int count(Map<String, AtomicInteger> tries, String body) {
        AtomicInteger n = tries.get(body);
        return n == null ? 0 : n.get();
    }
}
