//! Drives the unmodified `rocketmq-client-rust` against a RocketMQ-compatible
//! server: run NAMESRV_ADDR [SCENARIO...] | run --list

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::{Command, exit};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use rocketmq_client_rust::{
    ClientResult, ClientRuntime, ClientRuntimeConfig, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext, ConsumeOrderlyStatus, DefaultMQProducer, DefaultMQPushConsumer, MQPushConsumer,
    MessageListenerConcurrently, MessageListenerOrderly, MessageQueueSelector, SelectMessageQueueByHash, SendStatus,
};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_single::Message;
use rocketmq_observability::TelemetryRuntimeGuard;
use rocketmq_runtime::RuntimeOwner;

type Fault = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Fault>;

// No tag filter here: this client's tag hashes are not Java's (65 for "A"), so
// the real broker filters everything away.
const SCENARIOS: [(&str, u64, &str); 5] = [
    ("send-consume", 25, "topic made by its first send; tags, keys, properties, CJK"),
    ("send-batch", 25, "a batch makes its topic and comes back whole"),
    ("batch-delay", 25, "a batch, and a message of delay level 1"),
    ("orderly", 28, "queue chosen by a key, orderly consumer"),
    ("retry", 30, "a message to be consumed later comes again after 10 s"),
];

#[derive(Clone, Debug)]
struct Got {
    body: String,
    tags: String,
    keys: String,
    x: String,
    times: i32,
    at: Instant,
}

#[derive(Clone, Default)]
struct Inbox(Arc<Mutex<Vec<Got>>>);

impl Inbox {
    fn add(&self, m: &MessageExt) {
        let text = |name: &str| m.properties().get(name).map(|v| v.to_string()).unwrap_or_default();
        self.0.lock().unwrap().push(Got {
            body: String::from_utf8_lossy(&m.body().unwrap_or_default()).into_owned(),
            tags: text("TAGS"),
            keys: text("KEYS"),
            x: text("x"),
            times: m.reconsume_times(),
            at: Instant::now(),
        });
    }

    fn all(&self) -> Vec<Got> {
        self.0.lock().unwrap().clone()
    }

    async fn exactly(&self, mut want: Vec<String>, limit: Duration) -> Outcome {
        let end = Instant::now() + limit;
        while self.all().len() < want.len() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut got: Vec<String> = self.all().into_iter().map(|g| g.body).collect();
        got.sort();
        want.sort();
        expect("messages", got, want)
    }
}

struct Plain(Inbox, fn(&MessageExt) -> bool);

impl MessageListenerConcurrently for Plain {
    fn consume_message(&self, ms: &[&MessageExt], _: &ConsumeConcurrentlyContext) -> ClientResult<ConsumeConcurrentlyStatus> {
        let mut good = true;
        for m in ms {
            self.0.add(m);
            good &= self.1(m);
        }
        Ok(if good { ConsumeConcurrentlyStatus::ConsumeSuccess } else { ConsumeConcurrentlyStatus::ReconsumeLater })
    }
}

struct InOrder(Inbox);

impl MessageListenerOrderly for InOrder {
    fn consume_message(&self, ms: &[&MessageExt], _: &mut ConsumeOrderlyContext) -> ClientResult<ConsumeOrderlyStatus> {
        ms.iter().for_each(|m| self.0.add(m));
        Ok(ConsumeOrderlyStatus::Success)
    }
}

fn expect<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, want {want:?}").into()) }
}

struct Env {
    ns: String,
    tag: String,
    runtime: Arc<ClientRuntime>,
}

impl Env {
    fn topic(&self, hint: &str) -> String {
        format!("ITRust_{hint}_{}", self.tag)
    }

    async fn producer(&self) -> Result<DefaultMQProducer, Fault> {
        let mut p = DefaultMQProducer::builder(self.runtime.clone())
            .producer_group(self.topic("P"))
            .name_server_addr(self.ns.as_str())
            .build();
        p.start().await?;
        Ok(p)
    }

    fn consumer(&self, group: &str) -> DefaultMQPushConsumer {
        DefaultMQPushConsumer::builder(self.runtime.clone())
            .consumer_group(self.topic(group))
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .name_server_addr(self.ns.as_str())
            .build()
    }

    async fn consume(&self, topic: &str, expression: &str, group: &str, good: fn(&MessageExt) -> bool) -> Result<(Inbox, DefaultMQPushConsumer), Fault> {
        let inbox = Inbox::default();
        let mut c = self.consumer(group);
        c.subscribe(topic, expression).await?;
        c.register_message_listener_concurrently(Plain(inbox.clone(), good));
        c.start().await?;
        Ok((inbox, c))
    }
}

fn message(topic: &str, tag: &str, body: &str) -> Result<Message, Fault> {
    Ok(Message::builder().topic(topic).tags(tag).keys(vec![format!("key-{body}")]).raw_property("x", "值")?.body_slice(body.as_bytes()).build()?)
}

async fn send(p: &DefaultMQProducer, m: Message) -> Outcome {
    let r = p.send_with_timeout(m, 5000).await?.ok_or("no send result")?;
    expect("send status", r.send_status, SendStatus::SendOk)
}

async fn scenario(name: &str, e: &Env) -> Outcome {
    let topic = e.topic(name);
    let p = e.producer().await?;
    let fine: fn(&MessageExt) -> bool = |_| true;
    match name {
        "send-consume" => {
            let bodies: Vec<String> = (0..20).map(|i| format!("消息 {i}")).collect();
            for b in &bodies {
                send(&p, message(&topic, "T", b)?).await?;
            }
            let (inbox, _c) = e.consume(&topic, "*", "G", fine).await?;
            inbox.exactly(bodies, Duration::from_secs(12)).await?;
            for g in inbox.all() {
                expect("tags, keys, property", (g.tags, g.keys, g.x), ("T".into(), format!("key-{}", g.body), "值".into()))?;
            }
        }
        "send-batch" => {
            let bodies: Vec<String> = (0..8).map(|i| format!("batch {i}")).collect();
            let batch: Result<Vec<Message>, Fault> = bodies.iter().map(|b| message(&topic, "T", b)).collect();
            let r = p.send_batch_with_timeout(batch?, 5000).await?;
            expect("batch status", r.send_status, SendStatus::SendOk)?;
            let (inbox, _c) = e.consume(&topic, "*", "G", fine).await?;
            inbox.exactly(bodies, Duration::from_secs(12)).await?;
        }
        "batch-delay" => {
            send(&p, message(&topic, "T", "first")?).await?;
            let batch: Result<Vec<Message>, Fault> = (0..8).map(|i| message(&topic, "T", &format!("batch {i}"))).collect();
            expect("batch status", p.send_batch_with_timeout(batch?, 5000).await?.send_status, SendStatus::SendOk)?;
            let (inbox, _c) = e.consume(&topic, "*", "G", fine).await?;
            let mut late = message(&topic, "T", "late")?;
            late.set_delay_time_level(1);
            let sent = Instant::now();
            send(&p, late).await?;
            let want = (0..8).map(|i| format!("batch {i}")).chain(["first".into(), "late".into()]).collect();
            inbox.exactly(want, Duration::from_secs(12)).await?;
            let took = inbox.all().iter().find(|g| g.body == "late").map(|g| g.at - sent).unwrap_or_default();
            if took < Duration::from_millis(950) || took > Duration::from_secs(12) {
                return Err(format!("delay level 1 took {took:?}").into());
            }
        }
        "orderly" => {
            let mut want = Vec::new();
            for n in 0..20 {
                for key in 0..4 {
                    let body = format!("{key} {n:03}");
                    let r = p.send_with_selector(message(&topic, "T", &body)?, |mqs, m, arg| SelectMessageQueueByHash.select(mqs, m, arg), &key).await?;
                    expect("send status", r.ok_or("no send result")?.send_status, SendStatus::SendOk)?;
                    want.push(body);
                }
            }
            let inbox = Inbox::default();
            let mut c = e.consumer("G");
            c.subscribe(topic.as_str(), "*").await?;
            c.register_message_listener_orderly(InOrder(inbox.clone()));
            c.start().await?;
            inbox.exactly(want, Duration::from_secs(20)).await?;
            let mut last: BTreeMap<String, String> = BTreeMap::new();
            for g in inbox.all() {
                let key = g.body[..1].to_string();
                if let Some(before) = last.insert(key, g.body.clone()) {
                    if before >= g.body {
                        return Err(format!("{} came after {before}", g.body).into());
                    }
                }
            }
        }
        "retry" => {
            send(&p, message(&topic, "T", "again")?).await?;
            let (inbox, _c) = e.consume(&topic, "*", "G", |m| m.reconsume_times() > 0).await?;
            inbox.exactly(vec!["again".into(), "again".into()], Duration::from_secs(26)).await?;
            let got = inbox.all();
            expect("reconsume times", (got[0].times, got[1].times), (0, 1))?;
            expect("second delivery within 9 s", got[1].at - got[0].at < Duration::from_secs(9), false)?;
        }
        _ => return Err("unknown scenario".into()),
    }
    Ok(())
}

/// One scenario in this process; prints its verdict as the last line.
fn child(name: &str, limit: u64, ns: &str) -> Outcome {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(limit + 4));
        println!("\nverdict hung");
        exit(0);
    });
    let owner = RuntimeOwner::new()?;
    let telemetry = TelemetryRuntimeGuard::noop();
    let runtime = ClientRuntime::try_new(owner.root_context().component("interop"), ClientRuntimeConfig::default(), telemetry.handle())?;
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let env = Env { ns: ns.into(), tag: format!("{:x}{}", nanos & 0xff_ffff_ffff, std::process::id()), runtime };
    owner.block_on(async {
        match tokio::time::timeout(Duration::from_secs(limit), scenario(name, &env)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("time limit of {limit} s passed").into()),
        }
    })
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["--list"] {
        SCENARIOS.iter().for_each(|(n, l, about)| println!("{n:14} {l:3}s  {about}"));
        return;
    }
    if args.len() == 3 && args[0] == "--one" {
        let limit = SCENARIOS.iter().find(|s| s.0 == args[1]).map_or(20, |s| s.1);
        match child(&args[1], limit, &args[2]) {
            Ok(()) => println!("\nverdict ok"),
            Err(e) => println!("\nverdict {}", e.to_string().replace('\n', " ")),
        }
        exit(0); // without the client's own shutdown: it waits for long polls
    }
    if args.is_empty() || args[0].starts_with('-') {
        eprintln!("usage: run NAMESRV_ADDR [SCENARIO...]\n       run --list");
        exit(2);
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, _, _) in SCENARIOS.iter().filter(|s| args.len() == 1 || args[1..].contains(&s.0.to_string())) {
        let start = Instant::now();
        let out = Command::new(std::env::current_exe().expect("own path")).args(["--one", name, &args[0]]).output().expect("child");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        match text.lines().rev().find_map(|l| l.strip_prefix("verdict ")) {
            Some("ok") => {
                passed += 1;
                println!("ok {name} ({} ms)", start.elapsed().as_millis());
            }
            verdict => {
                failed += 1;
                let err = String::from_utf8_lossy(&out.stderr).into_owned();
                let crash = format!("client crashed: {}", err.lines().last().unwrap_or(""));
                println!("not ok {name}: {}", verdict.unwrap_or(&crash));
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    exit(if failed > 0 { 1 } else { 0 });
}
