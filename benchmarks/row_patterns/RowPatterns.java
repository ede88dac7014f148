import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Counts the rows of a query over a CSV file of ticks on Flink SQL, twice, and prints rows and seconds of the processor. */
public final class RowPatterns {
    private static final OperatingSystemMXBean MACHINE =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private RowPatterns() {
    }

    public static void main(String[] words) throws Exception {
        Configuration options = new Configuration();
        options.setString("parallelism.default", "1");
        TableEnvironment tables = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(options).build());
        tables.executeSql("CREATE TABLE ticks (symbol BIGINT, t TIMESTAMP(3), price BIGINT, "
                + "WATERMARK FOR t AS t - INTERVAL '0.001' SECOND) "
                + "WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '" + words[0] + "')");
        String counted = "SELECT COUNT(*) FROM (" + Files.readString(Path.of(words[1])) + ")";
        for (int round = 0; round < 2; round++) {
            long begin = MACHINE.getProcessCpuTime();
            long rows = 0;
            try (CloseableIterator<Row> found = tables.executeSql(counted).collect()) {
                while (found.hasNext()) {
                    rows = ((Number) found.next().getField(0)).longValue();
                }
            }
            System.out.printf("RESULT %d %.3f%n", rows, (MACHINE.getProcessCpuTime() - begin) / 1e9);
        }
        System.exit(0);
    }
}
