import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A Java client beside our tools, in one group with them or at the other end.
 *
 *   orderly NAMESRV GROUP TOPIC FILE   consume in order until standard input ends; a line of FILE for each: ms, body
 *   reply NAMESRV GROUP TOPIC          answer requests with "java:BODY" until standard input ends
 *   request NAMESRV TOPIC BODY...      ask, one after the other; print what is answered
 */
public final class Together {
    private static DefaultMQPushConsumer consumer(String namesrv, String group, String topic) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, "*");
        return c;
    }

    private static String text(MessageExt m) {
        return new String(m.getBody(), StandardCharsets.UTF_8);
    }

    private static void untilTold() throws Exception {
        System.out.println("ready");
        while (System.in.read() >= 0) {
            continue;
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "orderly": {
                PrintWriter out = new PrintWriter(args[4], "UTF-8");
                DefaultMQPushConsumer c = consumer(args[1], args[2], args[3]);
                c.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
                    for (MessageExt m : msgs) {
                        synchronized (out) {
                            out.println(System.currentTimeMillis() + " " + text(m));
                            out.flush();
                        }
                    }
                    return ConsumeOrderlyStatus.SUCCESS;
                });
                c.start();
                untilTold();
                c.shutdown();
                break;
            }
            case "reply": {
                DefaultMQProducer p = new DefaultMQProducer("together-reply");
                p.setNamesrvAddr(args[1]);
                p.start();
                DefaultMQPushConsumer c = consumer(args[1], args[2], args[3]);
                c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
                    for (MessageExt m : msgs) {
                        try {
                            p.send(MessageUtil.createReplyMessage(m, ("java:" + text(m)).getBytes(StandardCharsets.UTF_8)), 5000);
                        } catch (Exception e) {
                            e.printStackTrace();
                            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                        }
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                c.start();
                untilTold();
                c.shutdown();
                p.shutdown();
                break;
            }
            case "request": {
                DefaultMQProducer p = new DefaultMQProducer("together-request");
                p.setNamesrvAddr(args[1]);
                p.start();
                for (String body : List.of(args).subList(3, args.length)) {
                    Message reply = p.request(new Message(args[2], body.getBytes(StandardCharsets.UTF_8)), 20_000);
                    System.out.println(new String(reply.getBody(), StandardCharsets.UTF_8));
                }
                p.shutdown();
                break;
            }
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }
}
