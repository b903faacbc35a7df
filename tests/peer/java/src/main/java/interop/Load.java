package interop;

import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * One client under load until standard input ends; each message is a line, so that others can compare.
 *
 * Arguments: produce NAMESRV TOPIC PREFIX RATE: sends PREFIX-0, PREFIX-1, ... and prints "acked BODY BROKER QUEUE OFFSET";
 * consume NAMESRV TOPIC GROUP: prints "got BODY"; orderly NAMESRV TOPIC GROUP: in order, prints "got BODY QUEUE OFFSET".
 */
public final class Load {
    private static volatile boolean ended;

    public static void main(String[] args) throws Exception {
        Thread input = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (java.io.IOException e) {
                System.err.println("# " + e);
            }
            ended = true;
        });
        input.start();
        if (args[0].equals("produce")) {
            produce(args[1], args[2], args[3], Integer.parseInt(args[4]));
        } else {
            consume(args[1], args[2], args[3], args[0].equals("orderly"));
        }
        input.join();
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void produce(String namesrv, String topic, String prefix, int rate) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("load-" + prefix);
        p.setNamesrvAddr(namesrv);
        p.setInstanceName(prefix);
        p.setPollNameServerInterval(2000);
        p.setSendMsgTimeout(2000);
        p.start();
        long start = System.nanoTime();
        int failures = 0;
        for (int i = 0; !ended; i++) {
            String body = prefix + "-" + i;
            try {
                SendResult r = p.send(Ctx.message(topic, body));
                if (r.getSendStatus() == SendStatus.SEND_OK) {
                    System.out.println("acked " + body + " " + r.getMessageQueue().getBrokerName() + " "
                        + r.getMessageQueue().getQueueId() + " " + r.getQueueOffset());
                }
            } catch (Exception e) {
                System.out.println("refused " + body + " " + Check.brief(e));
                Thread.sleep(100);
                if (++failures > 1000) {
                    break;
                }
            }
            LockSupport.parkNanos(start + i * 1_000_000_000L / rate - System.nanoTime());
        }
    }

    private static void consume(String namesrv, String topic, String group, boolean orderly) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("load-java");
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPollNameServerInterval(2000);
        c.setConsumeThreadMin(2);
        c.setConsumeThreadMax(4);
        c.subscribe(topic, "*");
        if (orderly) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(m -> System.out.println("got " + Inbox.text(m) + " " + m.getQueueId() + " " + m.getQueueOffset()));
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(m -> System.out.println("got " + Inbox.text(m)));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        Ctx.startSurely(c);
    }
}
