package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageQueue;

/** A producer and a consumer with names of their own choice that stay until standard input ends, for others to look at. */
public final class Alive {

    /**
     * Arguments: name server, topic, producer group, consumer group, second topic. The first topic gets ten messages, tagA and tagB in
     * turn, key0..9, then the second gets one with a trace;
     * for each a line "sent I UNIQUE-ID OFFSET-ID" is printed, and "started" when the consumer has all and has stored its offsets.
     */
    public static void main(String[] args) throws Exception {
        Ctx c = new Ctx(new Admin(args[0]));
        DefaultMQProducer p = c.configure(new DefaultMQProducer(args[2]));
        p.setClientIP("127.0.0.1");
        p.setInstanceName("alive-producer");
        c.start(p);
        List<MessageQueue> queues = new ArrayList<>(new TreeSet<>(p.fetchPublishMessageQueues(args[1])));
        for (int i = 0; i < 10; i++) {
            SendResult r = p.send(Ctx.message(args[1], i % 4 < 2 ? "tagA" : "tagB", "key" + i, "body" + i), queues.get(i % queues.size()));
            System.out.println("sent " + i + " " + r.getMsgId() + " " + r.getOffsetMsgId());
        }
        DefaultMQProducer traced = c.configure(new DefaultMQProducer(args[2] + "-traced", null, true, null));
        traced.setClientIP("127.0.0.1");
        traced.setInstanceName("alive-traced");
        c.start(traced);
        SendResult one = traced.send(Ctx.message(args[4], "traced"));
        System.out.println("sent 10 " + one.getMsgId() + " " + one.getOffsetMsgId());
        Inbox inbox = new Inbox();
        var consumer = c.consumer(args[3], args[1], "*");
        consumer.setClientIP("127.0.0.1");
        consumer.setInstanceName("alive-consumer");
        consumer.registerMessageListener(inbox.listener(args[3]));
        c.start(consumer);
        inbox.await(10, 30);
        Ctx.storeOffsets(consumer);
        System.out.println("started");
        System.out.flush();
        System.in.readAllBytes();
        Runtime.getRuntime().halt(0);
    }
}
