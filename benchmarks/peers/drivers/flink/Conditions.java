import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** What the queries of the cases are written with. */
public class Conditions {
    protected Conditions() {
    }

    public static AfterMatchSkipStrategy noSkip() {
        return AfterMatchSkipStrategy.noSkip();
    }

    public static SimpleCondition<Event> type(String type) {
        return SimpleCondition.of(event -> event.type.equals(type));
    }

    public static SimpleCondition<Event> typeAbove(String type, double bound) {
        return SimpleCondition.of(event -> event.type.equals(type) && event.value > bound);
    }

    /** A value above that of the last event of a step. */
    public static IterativeCondition<Event> above(String step) {
        return new IterativeCondition<>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                double before = Double.NaN;
                for (Event bound : context.getEventsForPattern(step)) {
                    before = bound.value;
                }
                return event.value > before;
            }
        };
    }
}
