package interop;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.TransactionChecker;

/** What one scenario works with: fresh topics and groups, clients of the proxy, and their end. */
final class World implements AutoCloseable {
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    final ClientConfiguration configuration;
    private final String namesrv;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    World(String endpoint, String namesrv) {
        this.namesrv = namesrv;
        configuration = ClientConfiguration.newBuilder().setEndpoints(endpoint).enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(10)).build();
    }

    private static String fresh(String prefix) {
        return prefix + "_" + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
    }

    /** Runs mq-admin on the cluster behind the proxy. */
    String admin(String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of("mq-admin", "-n", namesrv));
        command.addAll(List.of(args));
        Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (p.waitFor() != 0) {
            throw new IllegalStateException(String.join(" ", command) + ": " + said.trim());
        }
        return said;
    }

    /** A topic for messages of that type: NORMAL, FIFO, DELAY, TRANSACTION. */
    String topic(String type) throws Exception {
        String name = fresh("T");
        admin("updateTopic", "-c", "DefaultCluster", "-t", name, "-r", "4", "-w", "4", "-a", "+message.type=" + type);
        return name;
    }

    String group(boolean inOrder) throws Exception {
        String name = fresh("G");
        admin("updateSubGroup", "-c", "DefaultCluster", "-g", name, "-o", Boolean.toString(inOrder));
        return name;
    }

    <C extends AutoCloseable> C closed(C client) {
        open.push(client);
        return client;
    }

    Producer producer(String topic) throws Exception {
        return closed(PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build());
    }

    Producer producer(String topic, TransactionChecker checker) throws Exception {
        return closed(PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic)
            .setTransactionChecker(checker).build());
    }

    SimpleConsumer consumer(String group, String topic, String tags) throws Exception {
        SimpleConsumer c = closed(PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(expressions(topic, tags)).build());
        Thread.sleep(1500); // the proxy 5.2.0 fails at an acknowledgement that comes before the client's first heartbeat
        return c;
    }

    static Map<String, FilterExpression> expressions(String topic, String tags) {
        return Collections.singletonMap(topic, new FilterExpression(tags, FilterExpressionType.TAG));
    }

    static MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(MessageView m) {
        byte[] bytes = new byte[m.getBody().remaining()];
        m.getBody().duplicate().get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Receives until N have come or the time is up, and acknowledges each; bodies in the order of their coming. */
    static List<String> receive(SimpleConsumer c, int n, int seconds) throws Exception {
        List<String> all = new ArrayList<>();
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (all.size() < n && System.nanoTime() < end) {
            for (MessageView m : c.receive(16, Duration.ofSeconds(30))) {
                all.add(text(m));
                c.ack(m);
            }
        }
        return all;
    }

    static void that(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    static void equal(String what, Object expected, Object actual) {
        that(expected.equals(actual), what + ": expected " + expected + ", got " + actual);
    }

    static void await(int seconds, String what, Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + seconds * 1_000_000_000L; !condition.call(); Thread.sleep(50)) {
            that(System.nanoTime() < end, "not within " + seconds + " s: " + what);
        }
    }

    @Override
    public void close() {
        while (!open.isEmpty()) {
            try {
                open.pop().close();
            } catch (Exception e) {
                System.err.println("# clean-up: " + e);
            }
        }
    }
}
