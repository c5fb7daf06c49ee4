import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/** a -> b -> c -> d of one key within ten seconds, one event object per call, in five rounds. */
public class Sequence {
    public record A(int key) { public int getKey() { return key; } }
    public record B(int key) { public int getKey() { return key; } }
    public record C(int key) { public int getKey() { return key; } }
    public record D(int key) { public int getKey() { return key; } }

    static final String QUERY = "@name('sequence') select a.key from pattern ["
        + "every a=A -> (b=B(key=a.key) -> c=C(key=a.key) -> d=D(key=a.key)) where timer:within(10 sec)]";

    public static void main(String[] arguments) throws Exception {
        var rows = ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0])))
            .order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
        int count = rows.remaining() / 3;
        var configuration = new Configuration();
        for (var type : new Class<?>[] {A.class, B.class, C.class, D.class}) {
            configuration.getCommon().addEventType(type);
        }
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        for (int round = 0; round < 5; round++) {
            EPRuntime runtime = EPRuntimeProvider.getRuntime("round" + round, configuration);
            var service = runtime.getEventService();
            service.advanceTime(0);
            var compiled = EPCompilerProvider.getCompiler()
                .compile(QUERY, new CompilerArguments(configuration));
            long[] matches = {0};
            runtime.getDeploymentService().deploy(compiled).getStatements()[0]
                .addListener((added, removed, statement, source) -> matches[0] += added.length);
            Object[] events = new Object[count];
            for (int at = 0; at < count; at++) {
                int key = rows.get(3 * at + 1);
                events[at] = switch (rows.get(3 * at)) {
                    case 0 -> new A(key);
                    case 1 -> new B(key);
                    case 2 -> new C(key);
                    default -> new D(key);
                };
            }
            long start = System.nanoTime();
            long now = 0;
            for (int at = 0; at < count; at++) {
                long time = rows.get(3 * at + 2);
                if (time != now) {
                    now = time;
                    service.advanceTime(now);
                }
                service.sendEventBean(events[at], events[at].getClass().getSimpleName());
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            System.out.printf("{\"round\": %d, \"events\": %d, \"matches\": %d, \"events_per_s\": %.0f}%n",
                round, count, matches[0], count / seconds);
            runtime.destroy();
        }
    }
}
