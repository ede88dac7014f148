/** One event of a workload; public fields, so that Flink serialises it as a POJO. */
public class Event {
    public long number;
    public String type;
    public long timeUs;
    public String key;
    public double value;

    public Event() {
    }

    public Event(long number, String type, long timeUs, String key, double value) {
        this.number = number;
        this.type = type;
        this.timeUs = timeUs;
        this.key = key;
        this.value = value;
    }
}
