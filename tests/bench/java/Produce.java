// Produce NAMESRV TOPIC THREADS SECONDS WARMUP_SECONDS SIZE: the unmodified Java producer, one instance, one synchronous send at a time
// in each thread.  When the warm-up is over it prints "begin", at the end "end MESSAGES SECONDS FAILURES".
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

public class Produce {
    static volatile boolean over;

    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench_producer");
        byte[] body = new byte[Integer.parseInt(args[5])];
        LongAdder sent = new LongAdder(), failed = new LongAdder();
        Thread[] threads = new Thread[Integer.parseInt(args[2])];

        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                while (!over) {
                    try {
                        producer.send(new Message(args[1], body));
                        sent.increment();
                    } catch (Exception e) {
                        failed.increment();
                    }
                }
            });
            threads[i].start();
        }
        Thread.sleep(1000 * Long.parseLong(args[4]));
        System.out.println("begin");
        long before = sent.sum(), begun = System.nanoTime();
        Thread.sleep(1000 * Long.parseLong(args[3]));
        long messages = sent.sum() - before, nanos = System.nanoTime() - begun;
        System.out.println("end " + messages + " " + nanos / 1e9 + " " + failed.sum());
        over = true;
        for (Thread t : threads)
            t.join();
        producer.shutdown();
    }
}
