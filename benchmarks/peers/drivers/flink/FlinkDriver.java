import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/** Runs one case on Flink in this process and prints one line of JSON: a job to warm up, then the job that is measured. */
public final class FlinkDriver {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Schema BY_TIME = Schema.newBuilder()
            .columnByExpression("moment", "TO_TIMESTAMP_LTZ(timeUs / 1000, 3)")
            .watermark("moment", "moment - INTERVAL '0.001' SECOND")
            .build();
    private static final OperatingSystemMXBean MACHINE =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static volatile Event[] held = {};
    private static double cpuSeconds;

    private FlinkDriver() {
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> options = options(words);
        int parallelism = Integer.parseInt(options.get("parallelism"));
        StreamExecutionEnvironment first = environment(parallelism);
        first.fromSequence(1, 10).sinkTo(new DiscardingSink<>());
        first.execute();
        double ready = System.currentTimeMillis() / 1000.0;
        double warmUp = measure(options, options.get("warm"), parallelism);
        double seconds = measure(options, options.get("events"), parallelism);
        System.out.printf(
                "RESULT {\"ready_at\": %.3f, \"warm_up_s\": %.3f, \"seconds\": %.4f, \"cpu_s\": %.4f, \"matches\": %d, "
                        + "\"digest\": \"%s\"}%n",
                ready, warmUp, seconds, cpuSeconds, Found.matches(), Found.digest());
        System.exit(0);
    }

    private static Map<String, String> options(String[] words) {
        Map<String, String> options = new TreeMap<>();
        for (int place = 0; place < words.length; place += 2) {
            options.put(words[place].substring(2), words[place + 1]);
        }
        return options;
    }

    /** Seconds of one job over a file; what is held in memory is read before the clock starts. */
    private static double measure(Map<String, String> options, String file, int parallelism) throws Exception {
        if (file.isEmpty()) {
            return 0.0;
        }
        boolean isInMemory = options.get("source").equals("memory");
        if (isInMemory) {
            held = read(Path.of(file));
        }
        Found.clear();
        long begin = System.nanoTime();
        long spent = MACHINE.getProcessCpuTime();
        StreamExecutionEnvironment env = environment(parallelism);
        if (options.containsKey("sql")) {
            StreamTableEnvironment tables = StreamTableEnvironment.create(env);
            tables.getConfig().set("table.local-time-zone", "UTC");
            if (isInMemory) {
                tables.createTemporaryView("events", memory(env), BY_TIME);
            } else {
                declareLines(tables, Path.of(file), options.getOrDefault("types", ""));
            }
            declareSql(tables, Files.readString(Path.of(options.get("sql"))));
        } else {
            declareCep(isInMemory ? memory(env) : file(env, file, parallelism), options.get("query"));
        }
        env.execute();
        cpuSeconds = (MACHINE.getProcessCpuTime() - spent) / 1e9;
        return (System.nanoTime() - begin) / 1e9;
    }

    private static StreamExecutionEnvironment environment(int parallelism) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        env.getConfig().enableObjectReuse();
        return env;
    }

    private static Event[] read(Path path) throws Exception {
        List<Event> events = new ArrayList<>();
        Parse parse = new Parse();
        try (BufferedReader reader = Files.newBufferedReader(path)) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                events.add(parse.map(line));
            }
        }
        return events.toArray(new Event[0]);
    }

    private static WatermarkStrategy<Event> byTime() {
        return WatermarkStrategy.<Event>forMonotonousTimestamps()
                .withTimestampAssigner((event, before) -> event.timeUs / 1000);
    }

    private static DataStream<Event> memory(StreamExecutionEnvironment env) {
        return env.fromSource(
                        new NumberSequenceSource(0, held.length - 1), WatermarkStrategy.noWatermarks(), "memory", Types.LONG)
                .setParallelism(1)
                .map(new Fetch())
                .returns(Event.class)
                .setParallelism(1)
                .assignTimestampsAndWatermarks(byTime())
                .setParallelism(1);
    }

    /** One reader, which keeps the order of the file; lines are parsed by all tasks. */
    private static DataStream<Event> file(StreamExecutionEnvironment env, String file, int parallelism) {
        FileSource<String> source = FileSource.forRecordStreamFormat(
                        new TextLineInputFormat(), new org.apache.flink.core.fs.Path(file))
                .build();
        DataStream<String> lines =
                env.fromSource(source, WatermarkStrategy.noWatermarks(), "file").setParallelism(1);
        DataStream<String> dealt = parallelism > 1 ? lines.rebalance() : lines;
        return dealt.map(new Parse()).assignTimestampsAndWatermarks(byTime());
    }

    private static void declareCep(DataStream<Event> events, String query) {
        int place = 0;
        for (Pattern<Event, ?> pattern : Queries.of(query)) {
            PatternStream<Event> found = CEP.pattern(
                    events.keyBy(event -> event.key), pattern, (one, other) -> Long.compare(one.number, other.number));
            found.process(new Digest(place)).sinkTo(new DiscardingSink<>());
            place++;
        }
    }

    private static void declareLines(StreamTableEnvironment tables, Path file, String types) {
        tables.executeSql("CREATE TABLE lines (id STRING, `type` STRING, `time` BIGINT, `key` STRING, "
                + "data ROW<`value` DOUBLE>, number AS CAST(SUBSTRING(id FROM 2) AS BIGINT), data_value AS data.`value`, "
                + "moment AS TO_TIMESTAMP_LTZ(`time` / 1000, 3), WATERMARK FOR moment AS moment - INTERVAL '0.001' SECOND) "
                + "WITH ('connector' = 'filesystem', 'path' = '" + file.toUri() + "', 'format' = 'json')");
        String filter = types.isEmpty() ? "" : " WHERE `type` IN (" + types + ")";
        tables.executeSql("CREATE TEMPORARY VIEW events AS SELECT number, `type`, `key`, data_value AS `value`, moment "
                + "FROM lines" + filter);
    }

    private static void declareSql(StreamTableEnvironment tables, String query) {
        Table table = tables.sqlQuery(query);
        tables.toDataStream(table).map(new RowDigest()).returns(Types.LONG).sinkTo(new DiscardingSink<>());
    }

    /** The event of a line. */
    public static final class Parse implements MapFunction<String, Event> {
        @Override
        public Event map(String line) throws Exception {
            JsonNode node = MAPPER.readTree(line);
            JsonNode value = node.get("data").get("value");
            return new Event(
                    Long.parseLong(node.get("id").textValue().substring(1)),
                    node.get("type").textValue(),
                    node.get("time").longValue(),
                    node.get("key").textValue(),
                    value == null ? Double.NaN : value.doubleValue());
        }
    }

    /** The event that is held at a place. */
    public static final class Fetch implements MapFunction<Long, Event> {
        @Override
        public Event map(Long place) {
            return held[place.intValue()];
        }
    }

    /** Counts and hashes matches of a pattern. */
    public static final class Digest extends PatternProcessFunction<Event, Long> {
        private final int place;

        public Digest(int place) {
            this.place = place;
        }

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            long hash = Found.begin(place);
            for (String step : new TreeMap<>(match).keySet()) {
                for (Event event : match.get(step)) {
                    hash = Found.join(hash, event.number);
                }
            }
            Found.add(hash);
        }
    }

    /** The same for rows of event numbers. */
    public static final class RowDigest implements MapFunction<Row, Long> {
        @Override
        public Long map(Row row) {
            long hash = Found.begin(0);
            for (int place = 0; place < row.getArity(); place++) {
                Object cell = row.getField(place);
                if (cell instanceof Number number) {
                    hash = Found.join(hash, number.longValue());
                }
            }
            Found.add(hash);
            return hash;
        }
    }
}
