import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.sun.management.OperatingSystemMXBean;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Runs one case on Siddhi in this process and prints one line of JSON: events to warm up, then those that are measured. */
public final class SiddhiDriver {
    private static final int BATCH = 1000;
    private static final Gson GSON = new Gson();
    private static final OperatingSystemMXBean MACHINE =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static double cpuSeconds;
    private static long matches;
    private static long digest;

    private SiddhiDriver() {
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> options = new TreeMap<>();
        for (int place = 0; place < words.length; place += 2) {
            options.put(words[place].substring(2), words[place + 1]);
        }
        String app = Files.readString(Path.of(options.get("app")));
        int patterns = Integer.parseInt(options.get("patterns"));
        boolean isInMemory = options.get("source").equals("memory");
        SiddhiManager manager = new SiddhiManager();
        double ready = System.currentTimeMillis() / 1000.0;
        double warmUp = 0.0;
        if (!options.get("warm").isEmpty()) {
            warmUp = measure(manager, app, patterns, Path.of(options.get("warm")), isInMemory);
        }
        double seconds = measure(manager, app, patterns, Path.of(options.get("events")), isInMemory);
        System.out.printf(
                "RESULT {\"ready_at\": %.3f, \"warm_up_s\": %.3f, \"seconds\": %.4f, \"cpu_s\": %.4f, \"matches\": %d, "
                        + "\"digest\": \"%016x\"}%n",
                ready, warmUp, seconds, cpuSeconds, matches, digest);
        System.exit(0);
    }

    /** Seconds from the first event to the last; an application of its own for each call. */
    private static double measure(SiddhiManager manager, String app, int patterns, Path file, boolean isInMemory)
            throws Exception {
        matches = 0;
        digest = 0;
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(app);
        for (int place = 0; place < patterns; place++) {
            runtime.addCallback("Found" + place, new Digest(place));
        }
        runtime.start();
        InputHandler input = runtime.getInputHandler("S");
        List<Event[]> held = isInMemory ? batches(file) : List.of();
        long begin = System.nanoTime();
        long spent = MACHINE.getProcessCpuTime();
        for (Event[] batch : held) {
            input.send(batch);
        }
        if (!isInMemory) {
            stream(file, input);
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        cpuSeconds = (MACHINE.getProcessCpuTime() - spent) / 1e9;
        runtime.shutdown();
        return seconds;
    }

    private static List<Event[]> batches(Path file) throws Exception {
        List<Event[]> batches = new ArrayList<>();
        List<Event> batch = new ArrayList<>();
        try (BufferedReader reader = Files.newBufferedReader(file)) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                batch.add(parsed(line));
                if (batch.size() == BATCH) {
                    batches.add(batch.toArray(new Event[0]));
                    batch.clear();
                }
            }
        }
        batches.add(batch.toArray(new Event[0]));
        return batches;
    }

    private static void stream(Path file, InputHandler input) throws Exception {
        List<Event> batch = new ArrayList<>();
        try (BufferedReader reader = Files.newBufferedReader(file)) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                batch.add(parsed(line));
                if (batch.size() == BATCH) {
                    input.send(batch.toArray(new Event[0]));
                    batch.clear();
                }
            }
        }
        input.send(batch.toArray(new Event[0]));
    }

    private static Event parsed(String line) {
        JsonObject object = GSON.fromJson(line, JsonObject.class);
        JsonElement value = object.getAsJsonObject("data").get("value");
        Object[] cells = {
            Long.parseLong(object.get("id").getAsString().substring(1)),
            object.get("type").getAsString(),
            object.get("key").getAsString(),
            value == null ? null : (Object) value.getAsDouble(),
            object.get("time").getAsLong() / 1000,
        };
        return new Event((Long) cells[4], cells);
    }

    private static long mix(long given) {
        long z = given + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** Counts and hashes what comes out of a stream of matches: rows of event numbers. */
    private static final class Digest extends StreamCallback {
        private final int place;

        Digest(int place) {
            this.place = place;
        }

        @Override
        public void receive(Event[] found) {
            for (Event event : found) {
                long hash = mix(place);
                for (Object cell : event.getData()) {
                    if (cell != null) {
                        hash = mix(hash ^ (Long) cell);
                    }
                }
                matches++;
                digest += hash;
            }
        }
    }
}
