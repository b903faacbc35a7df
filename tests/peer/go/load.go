package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// load is one client under load until standard input ends; each message is a line, so that others can compare.
//
//	produce NAMESRV TOPIC PREFIX RATE: sends PREFIX-0, PREFIX-1, ... and prints "acked BODY BROKER QUEUE OFFSET"
//	consume NAMESRV TOPIC GROUP: prints "got BODY"
func load(args []string) error {
	rlog.SetLogLevel("error")
	out := &lines{w: bufio.NewWriter(os.Stdout)}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	defer out.flush()
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			out.flush()
		}
	}()
	switch {
	case len(args) == 5 && args[0] == "produce":
		rate, err := strconv.Atoi(args[4])
		if err != nil || rate <= 0 {
			return fmt.Errorf("rate %q is no positive number", args[4])
		}
		return loadProduce(args[1], args[2], args[3], rate, out, ended)
	case len(args) == 4 && args[0] == "consume":
		return loadConsume(args[1], args[2], args[3], out, ended)
	}
	return fmt.Errorf("usage: --load produce NAMESRV TOPIC PREFIX RATE | --load consume NAMESRV TOPIC GROUP")
}

// lines is written from many goroutines.
type lines struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (l *lines) printf(format string, a ...any) {
	l.mu.Lock()
	fmt.Fprintf(l.w, format, a...)
	l.mu.Unlock()
}

func (l *lines) flush() {
	l.mu.Lock()
	_ = l.w.Flush()
	l.mu.Unlock()
}

func loadProduce(ns, topic, prefix string, rate int, out *lines, ended chan struct{}) error {
	p, err := rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{ns})),
		producer.WithGroupName("load-"+prefix), producer.WithInstanceName(prefix), producer.WithRetry(2),
		producer.WithSendMsgTimeout(2*time.Second))
	if err != nil {
		return err
	}
	if err = p.Start(); err != nil {
		return err
	}
	start := time.Now()
	for i := 0; ; i++ {
		select {
		case <-ended:
			return nil
		default:
		}
		body := fmt.Sprintf("%s-%d", prefix, i)
		r, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body)))
		switch {
		case err != nil:
			out.printf("refused %s %q\n", body, err.Error())
			time.Sleep(100 * time.Millisecond)
		case r.Status == primitive.SendOK:
			out.printf("acked %s %s %d %d\n", body, r.MessageQueue.BrokerName, r.MessageQueue.QueueId, r.QueueOffset)
		}
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
	}
}

func loadConsume(ns, topic, group string, out *lines, ended chan struct{}) error {
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{ns})),
		consumer.WithGroupName(group), consumer.WithInstance("load-go"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			out.printf("got %s\n", m.Body)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	if err = c.Start(); err != nil {
		return err
	}
	<-ended
	return nil
}
