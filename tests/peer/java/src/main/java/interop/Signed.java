package interop;

import java.lang.reflect.Field;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Accounts, for servers that check rights. INTEROP_ACL=ADMIN:SECRET,USER:SECRET makes the administration sign as the first and every
 * client as the second; without it nothing is signed.
 */
public final class Signed {
    private static final String[] ACCOUNTS = System.getenv("INTEROP_ACL") == null ? null : System.getenv("INTEROP_ACL").split(",");

    private Signed() {
    }

    public static boolean wanted() {
        return ACCOUNTS != null;
    }

    public static RPCHook admin() {
        return wanted() ? hook(ACCOUNTS[0]) : null;
    }

    public static RPCHook hook(String account) {
        String[] keys = account.split(":");
        return new AclClientRPCHook(new SessionCredentials(keys[0], keys[1]));
    }

    public static <C extends ClientConfig> C sign(C client) {
        return wanted() ? sign(client, hook(ACCOUNTS[1])) : client;
    }

    /** As if the client had been made with the hook: only some of its constructors take one. */
    public static <C extends ClientConfig> C sign(C client, RPCHook hook) {
        try {
            for (Class<?> type = client.getClass(); type != ClientConfig.class; type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getName().endsWith("Impl")) {
                        field.setAccessible(true);
                        Field inner = field.get(client).getClass().getDeclaredField("rpcHook");
                        inner.setAccessible(true);
                        inner.set(field.get(client), hook);
                        return client;
                    }
                }
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        throw new IllegalStateException(client.getClass() + " has no place for a hook");
    }
}
