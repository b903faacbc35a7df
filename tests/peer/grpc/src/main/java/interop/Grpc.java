package interop;

import static interop.World.await;
import static interop.World.equal;
import static interop.World.message;
import static interop.World.receive;
import static interop.World.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** The scenarios: each line of output is the verdict on one. */
public final class Grpc {
    private interface Body {
        void run(World w) throws Exception;
    }

    private static final int SECONDS = 60; // at most for one scenario
    private static final Map<String, Body> bodies = new LinkedHashMap<>();
    private static final Map<String, String> descriptions = new LinkedHashMap<>();

    private static void add(String name, String description, Body body) {
        bodies.put(name, body);
        descriptions.put(name, description);
    }

    static {
        add("send", "a message of each kind of text arrives in the store with tag, keys and properties", Grpc::send);
        add("receive", "100 messages are received by a simple consumer, each once", Grpc::receives);
        add("tag-filter", "a simple consumer gets only the tag that it asks for", Grpc::tags);
        add("ack", "what is acknowledged does not come again, what is not comes after its invisible time", Grpc::acks);
        add("change-invisible", "a message is hidden for longer, and for shorter", Grpc::invisible);
        add("push", "a push consumer gets all; what it refuses comes again", Grpc::push);
        add("fifo", "messages of a message group come in order, also after a refusal", Grpc::fifo);
        add("delay", "a message comes at its delivery time", Grpc::delay);
        add("tx-commit", "a transactional message comes when it is committed, and only then", Grpc::commit);
        add("tx-rollback", "one that is rolled back never comes", Grpc::rollback);
        add("tx-check", "one that is left open is asked about and then comes", Grpc::check);
        add("wrong-type", "a topic for ordinary messages refuses others", Grpc::wrongType);
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("--list")) {
            descriptions.forEach((name, text) -> System.out.printf("%-20s %s%n", name, text));
            return;
        }
        List<String> names = args.length > 2 ? Arrays.asList(args).subList(2, args.length) : new ArrayList<>(bodies.keySet());
        int passed = 0;
        int failed = 0;
        for (String name : names) {
            long start = System.currentTimeMillis();
            Throwable problem = run(bodies.get(name), args[0], args[1]);
            if (problem == null) {
                passed++;
                System.out.println("ok " + name + "  (" + (System.currentTimeMillis() - start) + " ms)");
            } else {
                failed++;
                System.out.println("not ok " + name + ": " + String.valueOf(problem).replaceAll("\\s*\\R\\s*", " | "));
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.out.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    private static Throwable run(Body body, String endpoint, String namesrv) throws InterruptedException {
        if (body == null) {
            return new IllegalArgumentException("there is no such scenario");
        }
        World w = new World(endpoint, namesrv);
        Throwable[] problem = {new AssertionError("not done within " + SECONDS + " s")};
        Thread work = new Thread(() -> {
            try {
                body.run(w);
                problem[0] = null;
            } catch (Throwable e) {
                problem[0] = e;
            }
        });
        work.setDaemon(true);
        work.start();
        work.join(SECONDS * 1000L);
        Throwable verdict = problem[0];
        Thread closing = new Thread(w::close);
        closing.setDaemon(true);
        closing.start();
        closing.join(500); // a client's end takes as long as its last poll
        return verdict;
    }

    private static Set<String> numbered(String prefix, int n) {
        Set<String> all = new HashSet<>();
        for (int i = 0; i < n; i++) {
            all.add(prefix + i);
        }
        return all;
    }

    private static void send(World w) throws Exception {
        String topic = w.topic("NORMAL");
        Producer p = w.producer(topic);
        String[] texts = {"plain", "grüße, 世界, \uD83D\uDE00", "two\nlines\t", "x".repeat(100_000)};
        for (int i = 0; i < texts.length; i++) {
            SendReceipt r = p.send(message(topic, texts[i]).setTag("tag" + i).setKeys("key" + i).addProperty("colour", "blue" + i).build());
            String id = r.getMessageId().toString();
            await(5, "the message of key" + i + " is found", () -> w.admin("queryMsgByKey", "-t", topic, "-k", "key0").contains("\t"));
            that(!id.isEmpty(), "no message id");
        }
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        Map<String, MessageView> got = new TreeMap<>();
        await(20, "all received", () -> {
            for (MessageView m : c.receive(16, Duration.ofSeconds(20))) {
                got.put(m.getTag().orElse("none"), m);
                c.ack(m);
            }
            return got.size() == texts.length;
        });
        for (int i = 0; i < texts.length; i++) {
            MessageView m = got.get("tag" + i);
            equal("body", texts[i], World.text(m));
            equal("keys", List.of("key" + i), new ArrayList<>(m.getKeys()));
            equal("property", "blue" + i, m.getProperties().get("colour"));
            equal("topic", topic, m.getTopic());
        }
    }

    private static void receives(World w) throws Exception {
        String topic = w.topic("NORMAL");
        Producer p = w.producer(topic);
        for (int i = 0; i < 100; i++) {
            p.send(message(topic, "m" + i).build());
        }
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        List<String> got = receive(c, 100, 30);
        equal("received", 100, got.size());
        equal("different ones", numbered("m", 100), new HashSet<>(got));
    }

    private static void tags(World w) throws Exception {
        String topic = w.topic("NORMAL");
        Producer p = w.producer(topic);
        for (int i = 0; i < 40; i++) {
            p.send(message(topic, "m" + i).setTag(i % 4 == 0 ? "want" : "other").build());
        }
        SimpleConsumer c = w.consumer(w.group(false), topic, "want");
        List<String> got = receive(c, 10, 20);
        got.addAll(receive(c, 1, 3));
        equal("received", 10, got.size());
        that(got.stream().allMatch(m -> Integer.parseInt(m.substring(1)) % 4 == 0), "wrong ones: " + got);
    }

    private static void acks(World w) throws Exception {
        String topic = w.topic("NORMAL");
        w.producer(topic).send(message(topic, "kept").build());
        w.producer(topic).send(message(topic, "done").build());
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        List<MessageView> first = new ArrayList<>();
        long[] at = new long[1];
        await(20, "both received", () -> {
            at[0] = System.currentTimeMillis();
            first.addAll(c.receive(16, Duration.ofSeconds(10)));
            return first.size() >= 2;
        });
        for (MessageView m : first) {
            if (World.text(m).equals("done")) {
                c.ack(m);
            }
        }
        List<MessageView> again = new ArrayList<>();
        await(30, "one comes again", () -> again.addAll(c.receive(16, Duration.ofSeconds(10))));
        equal("again", "kept", World.text(again.get(0)));
        that(again.get(0).getDeliveryAttempt() >= 2, "delivery attempt " + again.get(0).getDeliveryAttempt());
        that(System.currentTimeMillis() - at[0] > 8000, "it came before its invisible time was over");
        c.ack(again.get(0));
        equal("after both are acknowledged", List.of(), receive(c, 1, 13));
    }

    private static void invisible(World w) throws Exception {
        String topic = w.topic("NORMAL");
        w.producer(topic).send(message(topic, "m").build());
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        List<MessageView> got = new ArrayList<>();
        await(20, "received", () -> got.addAll(c.receive(16, Duration.ofSeconds(60))));
        long start = System.currentTimeMillis();
        c.changeInvisibleDuration(got.get(0), Duration.ofSeconds(10));
        List<MessageView> again = new ArrayList<>();
        await(30, "it comes again", () -> again.addAll(c.receive(16, Duration.ofSeconds(60))));
        long took = System.currentTimeMillis() - start;
        that(took > 8000 && took < 25_000, "it came again after " + took + " ms");
        c.ack(again.get(0));
    }

    private static void push(World w) throws Exception {
        String topic = w.topic("NORMAL");
        String group = w.group(false);
        Map<String, AtomicInteger> seen = Collections.synchronizedMap(new TreeMap<>());
        w.closed(World.PROVIDER.newPushConsumerBuilder().setClientConfiguration(w.configuration).setConsumerGroup(group)
            .setSubscriptionExpressions(World.expressions(topic, "*")).setConsumptionThreadCount(4)
            .setMessageListener(m -> {
                int times = seen.computeIfAbsent(World.text(m), k -> new AtomicInteger()).incrementAndGet();
                return World.text(m).equals("m7") && times == 1 ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build());
        Producer p = w.producer(topic);
        for (int i = 0; i < 50; i++) {
            p.send(message(topic, "m" + i).build());
        }
        await(20, "all received", () -> seen.keySet().containsAll(numbered("m", 50)));
        await(35, "the refused one comes again", () -> seen.get("m7").get() == 2);
        that(seen.values().stream().mapToInt(AtomicInteger::get).sum() == 51, "received: " + seen);
    }

    private static void fifo(World w) throws Exception {
        String topic = w.topic("FIFO");
        String group = w.group(true);
        Producer p = w.producer(topic);
        for (int i = 0; i < 30; i++) {
            p.send(message(topic, "g" + i % 3 + "-" + i / 3).setMessageGroup("g" + i % 3).build());
        }
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger refused = new AtomicInteger();
        w.closed(World.PROVIDER.newPushConsumerBuilder().setClientConfiguration(w.configuration).setConsumerGroup(group)
            .setSubscriptionExpressions(World.expressions(topic, "*")).setConsumptionThreadCount(4)
            .setMessageListener(m -> {
                if (World.text(m).equals("g1-4") && refused.incrementAndGet() == 1) {
                    return ConsumeResult.FAILURE;
                }
                got.add(World.text(m));
                return ConsumeResult.SUCCESS;
            }).build());
        await(50, "30 received", () -> got.size() >= 30);
        for (int g = 0; g < 3; g++) {
            String prefix = "g" + g + "-";
            List<String> expected = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                expected.add(prefix + i);
            }
            equal("order of group " + g, expected, got.stream().filter(m -> m.startsWith(prefix)).toList());
        }
        that(refused.get() >= 2, "the refused one came only once");
    }

    private static void delay(World w) throws Exception {
        String topic = w.topic("DELAY");
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        long due = System.currentTimeMillis() + 6000;
        w.producer(topic).send(message(topic, "later").setDeliveryTimestamp(due).build());
        equal("received", List.of("later"), receive(c, 1, 20));
        long late = System.currentTimeMillis() - due;
        that(late >= -1100 && late < 4000, "it came " + late + " ms after its time");
    }

    private static void commit(World w) throws Exception {
        String topic = w.topic("TRANSACTION");
        Producer p = w.producer(topic, m -> TransactionResolution.UNKNOWN);
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        Transaction t = p.beginTransaction();
        p.send(message(topic, "paid").build(), t);
        equal("before the commit", List.of(), receive(c, 1, 2));
        t.commit();
        equal("after the commit", List.of("paid"), receive(c, 1, 20));
    }

    private static void rollback(World w) throws Exception {
        String topic = w.topic("TRANSACTION");
        Producer p = w.producer(topic, m -> TransactionResolution.UNKNOWN);
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        Transaction t = p.beginTransaction();
        p.send(message(topic, "undone").build(), t);
        t.rollback();
        t = p.beginTransaction();
        p.send(message(topic, "paid").build(), t);
        t.commit();
        List<String> got = receive(c, 1, 20);
        got.addAll(receive(c, 1, 6));
        equal("received", List.of("paid"), got);
    }

    private static void check(World w) throws Exception {
        String topic = w.topic("TRANSACTION");
        AtomicInteger asked = new AtomicInteger();
        Producer p = w.producer(topic, m -> {
            asked.incrementAndGet();
            return TransactionResolution.COMMIT;
        });
        SimpleConsumer c = w.consumer(w.group(false), topic, "*");
        p.send(message(topic, "open").build(), p.beginTransaction());
        equal("received", List.of("open"), receive(c, 1, 50));
        that(asked.get() >= 1, "the producer was not asked");
    }

    private static void wrongType(World w) throws Exception {
        String topic = w.topic("NORMAL");
        Producer p = w.producer(topic);
        p.send(message(topic, "fits").build());
        try {
            p.send(message(topic, "does not").setMessageGroup("g").build());
        } catch (Exception e) {
            that(String.valueOf(e).toLowerCase().contains("message type"), "refused with another reason: " + e);
            return;
        }
        throw new AssertionError("a FIFO message went to a NORMAL topic");
    }
}
