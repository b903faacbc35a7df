package interop.suites;

import static interop.Check.contains;
import static interop.Check.equal;
import static interop.Check.fails;
import static interop.Check.that;
import static interop.Ctx.message;

import interop.Admin;
import interop.Check;
import interop.Ctx;
import interop.Signed;
import interop.Suite;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.MessageQueue;

/** A server that checks rights: aclEnable=true and the accounts of INTEROP_ACL. */
public class AclSuite extends Suite {

    public AclSuite() {
        if (!Signed.wanted()) {
            return;
        }
        add("acl-refused", "without an account, with an unknown one, or a wrong secret nothing is stored; the answer says why",
            this::refused);
        add("acl-admin-codes", "an account that is no admin changes no topic, group or configuration", this::adminCodes);
        add("acl-accounts", "mqadmin updateAclConfig, deleteAclConfig; rights are those that were given",
            this::accounts);
        add("acl-versions", "mqadmin clusterAclConfigVersion (5.2.0 itself leaves out what its mqadmin shows)", this::versions);
        add("acl-white", "mqadmin updateGlobalWhiteAddr: from such an address nothing has to be signed", this::white);
    }

    private static void denied(String what, String why, Check.Action action) {
        MQBrokerException e = fails(what, MQBrokerException.class, action);
        equal("code of " + what, 1, e.getResponseCode());
        contains("answer to " + what, e.getErrorMessage(), "org.apache.rocketmq.acl.common.AclException: " + why);
    }

    private static DefaultMQProducer producer(Ctx c, String account) throws Exception {
        DefaultMQProducer p = c.configure(new DefaultMQProducer(c.group()));
        p.setRetryTimesWhenSendFailed(0);
        return c.start(Signed.sign(p, account == null ? null : Signed.hook(account)));
    }

    private void refused(Ctx c) throws Exception {
        String topic = c.topic(1);
        MessageQueue q = new MessageQueue(topic, c.admin.brokerName, 0);
        denied("an unsigned send", "No accessKey is configured", () -> producer(c, null).send(message(topic, "a"), q));
        denied("an unknown account", "No acl config for nobody-here", () -> producer(c, "nobody-here:some-secret").send(message(topic, "b"), q));
        denied("a wrong secret", "Check signature failed for accessKey=interop-user",
            () -> producer(c, "interop-user:not-this-one").send(message(topic, "c"), q));
        equal("messages stored", 0L, c.admin.api.maxOffset(q));
        equal("a right one", SendStatus.SEND_OK, c.producer().send(message(topic, "d"), q).getSendStatus());
        equal("messages stored", 1L, c.admin.api.maxOffset(q));
    }

    private void adminCodes(Ctx c) throws Exception {
        String topic = c.topicName();
        var user = new org.apache.rocketmq.tools.admin.DefaultMQAdminExt(Signed.hook("interop-user:user-secret"));
        user.setNamesrvAddr(c.admin.namesrv);
        user.setInstanceName(topic);
        user.start();
        c.onClose(user::shutdown);
        var config = new org.apache.rocketmq.common.TopicConfig(topic);
        MQBrokerException e = fails("a topic", MQBrokerException.class, () -> {
            try {
                user.createAndUpdateTopicConfig(c.admin.brokerAddr, config);
            } catch (org.apache.rocketmq.client.exception.MQClientException x) { // 5.x wraps it
                throw new MQBrokerException(x.getResponseCode(), x.getErrorMessage());
            }
        });
        contains("answer", e.getErrorMessage(), "Need admin permission for request code=17, but accessKey=interop-user is not");
        fails("a configuration", Exception.class,
            () -> user.updateBrokerConfig(c.admin.brokerAddr, new java.util.Properties() {{ setProperty("fileReservedTime", "1"); }}));
        fails("a group", Exception.class, () -> user.deleteSubscriptionGroup(c.admin.brokerAddr, "G", false));
        that(!user.fetchAllTopicList().getTopicList().contains(topic), "the topic is there");
    }

    private void accounts(Ctx c) throws Exception {
        String open = c.topic(1), shut = c.topic(1), group = c.group(), name = "made-" + open, account = name + ":made-secret";
        contains("update", Admin.mqadmin("updateAclConfig", "-n", c.admin.namesrv, "-b", c.admin.brokerAddr, "-a", name, "-s", "made-secret",
            "-t", open + "=PUB|SUB," + shut + "=SUB", "-g", group + "=SUB", "-m", "false"),
            "create or update plain access config to " + c.admin.brokerAddr + " success.");
        MessageQueue q = new MessageQueue(open, c.admin.brokerName, 0), closed = new MessageQueue(shut, c.admin.brokerName, 0);
        DefaultMQProducer p = producer(c, account);
        equal("send", SendStatus.SEND_OK, p.send(message(open, "a"), q).getSendStatus());
        denied("send to what may only be read", "No permission for topic:" + shut, () -> p.send(message(shut, "b"), closed));
        DefaultMQPullConsumer reader = Signed.sign(c.configure(new DefaultMQPullConsumer(group)), Signed.hook(account));
        reader.start();
        c.onClose(reader::shutdown);
        equal("read", 1, reader.pull(q, "*", 0, 32).getMsgFoundList().size());
        DefaultMQPullConsumer other = Signed.sign(c.configure(new DefaultMQPullConsumer(c.group())), Signed.hook(account));
        other.start();
        c.onClose(other::shutdown);
        denied("a group without rights", "No default permission for group:" + other.getConsumerGroup(), () -> other.pull(q, "*", 0, 32));
        contains("delete", Admin.mqadmin("deleteAclConfig", "-n", c.admin.namesrv, "-b", c.admin.brokerAddr, "-a", name),
            "delete plain access config account from " + c.admin.brokerAddr + " success.");
        Check.await(10, "the account is gone", () -> {
            try {
                p.send(message(open, "c"), q);
                return false;
            } catch (MQBrokerException e) {
                contains("answer", e.getErrorMessage(), "No acl config for " + name);
                return true;
            }
        });
    }

    private void versions(Ctx c) throws Exception {
        contains("versions", Admin.mqadmin("clusterAclConfigVersion", "-n", c.admin.namesrv, "-b", c.admin.brokerAddr),
            "plain_acl.yml", "get broker's plain access config version success. Address:" + c.admin.brokerAddr);
    }

    private void white(Ctx c) throws Exception {
        String topic = c.topic(1);
        MessageQueue q = new MessageQueue(topic, c.admin.brokerName, 0);
        DefaultMQProducer p = producer(c, null);
        denied("an unsigned send", "No accessKey is configured", () -> p.send(message(topic, "a"), q));
        try {
            contains("update", Admin.mqadmin("updateGlobalWhiteAddr", "-n", c.admin.namesrv, "-b", c.admin.brokerAddr,
                "-g", "10.9.8.7,127.0.0.1"), "update global white remote addresses to " + c.admin.brokerAddr + " success.");
            Check.await(10, "unsigned sends", () -> {
                try {
                    return p.send(message(topic, "b"), q).getSendStatus() == SendStatus.SEND_OK;
                } catch (MQBrokerException e) {
                    return false;
                }
            });
        } finally {
            Admin.mqadmin("updateGlobalWhiteAddr", "-n", c.admin.namesrv, "-b", c.admin.brokerAddr, "-g", "10.9.8.7,10.9.8.6");
        }
        Check.await(10, "no unsigned sends", () -> {
            try {
                p.send(message(topic, "c"), q);
                return false;
            } catch (MQBrokerException e) {
                return true;
            }
        });
    }
}
