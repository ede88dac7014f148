import java.util.concurrent.atomic.LongAdder;

/** Matches of all tasks of this process: their number and the sum of their hashes, which does not depend on order. */
public final class Found {
    private static final LongAdder MATCHES = new LongAdder();
    private static final LongAdder DIGEST = new LongAdder();

    private Found() {
    }

    public static void clear() {
        MATCHES.reset();
        DIGEST.reset();
    }

    public static long matches() {
        return MATCHES.sum();
    }

    public static String digest() {
        return String.format("%016x", DIGEST.sum());
    }

    /** The hash of the pattern's place, to which the numbers of the bound events are joined in order. */
    public static long begin(int pattern) {
        return mix(pattern);
    }

    public static long join(long hash, long number) {
        return mix(hash ^ number);
    }

    public static void add(long hash) {
        MATCHES.increment();
        DIGEST.add(hash);
    }

    private static long mix(long given) {
        long z = given + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
